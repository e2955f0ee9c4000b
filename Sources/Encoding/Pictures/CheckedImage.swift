// An image file of which everything is checked that can be checked before it is decoded.

import FrameBatches

struct CheckedImage {
  let kind: ImageKind
  /// The size in the header, within the limits.
  let size: PixelSize
  /// The file's parts; nil for other kinds. Parsed once: that reads the whole file.
  let jpeg: JPEGFile?
  /// The bytes that are needed for the picture.
  let essential: [UInt8]
  let colours: PNGColours
  private let file: [UInt8]

  /// - Throws: ``RefusedPicture``.
  init(_ file: [UInt8], limits: Limits, notes: inout [String]) throws(RefusedPicture) {
    self.file = file
    kind = try Self.kind(of: file)
    jpeg = kind == .jpeg ? JPEGFile(file) : nil
    guard let size = kind == .jpeg ? jpeg?.size : kind.size(of: file) else {
      throw RefusedPicture(reason: "invalid data")
    }
    if let excess = size.excess(of: limits) { throw RefusedPicture(excess) }
    self.size = size
    switch kind {
    case .jpeg:
      if let reason = jpeg?.reasonToRefuse { throw RefusedPicture(reason: reason) }
      guard let jpeg, JPEGScans.areComplete(jpeg) else { throw RefusedPicture(reason: "incomplete") }
      (essential, colours) = (jpeg.essential, .profile)
    case .png:
      colours = PNGColours(of: file, notes: &notes)
      let isProfileUnused = colours != .profile
      let chunks = PNGChunks.essential(of: file, withoutProfile: isProfileUnused ? "unused" : nil)
      essential = chunks.file
      if let reason = chunks.lostProfile, !isProfileUnused { notes.append(Self.note(lostProfile: reason)) }
    case .webp:
      guard let still = WebPChunks.still(of: file) else {
        throw RefusedPicture(reason: "an animated WebP whose first frame does not fill it is not supported")
      }
      (essential, colours) = (still, .profile)
    }
  }

  private static func kind(of file: [UInt8]) throws(RefusedPicture) -> ImageKind {
    if let kind = ImageKind(of: file) { return kind }
    if file.isEmpty { throw RefusedPicture(reason: "an empty file") }
    if case .otherImage(let other) = FileKind(of: file) { throw RefusedPicture(other.refusal) }
    let other = FileKind(of: file).map { ", but \($0.described)" } ?? ""
    throw RefusedPicture(reason: "neither JPEG, PNG nor WebP" + other)
  }

  /// The essential bytes of a PNG without its profile; nil if it has none to leave out.
  var withoutProfile: (file: [UInt8], lostProfile: String)? {
    guard kind == .png else { return nil }
    let bare = PNGChunks.essential(of: file, withoutProfile: "damaged")
    guard let lostProfile = bare.lostProfile, bare.file != essential else { return nil }
    return (bare.file, lostProfile)
  }

  /// The note for the manifest that a picture's profile was not used.
  static func note(lostProfile reason: String) -> String {
    "shown as sRGB: its colour profile cannot be used (\(reason))"
  }
}
