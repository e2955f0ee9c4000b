// An image file of which everything is checked that can be checked before it is decoded.

import FrameBatches

struct CheckedImage {
  let kind: ImageKind
  /// The size in the header, within the limits.
  let size: PixelSize
  /// The file's parts; nil for other kinds. Parsed once: that reads the whole file.
  let jpeg: JPEGFile?
  /// A picture in boxes; nil for other kinds.
  let heif: CheckedHEIF?
  /// The bytes that are needed for the picture.
  let essential: [UInt8]
  let colours: ImageColours
  let alpha: StoredAlpha
  /// A TIFF's highest sample, as it states it.
  private var highestSample: Int?
  private let file: [UInt8]

  /// - Throws: ``RefusedPicture``.
  init(_ file: [UInt8], limits: Limits, notes: inout [String]) throws(RefusedPicture) {
    self.file = file
    kind = try Self.kind(of: file)
    jpeg = kind == .jpeg ? JPEGFile(file) : nil
    let boxes = kind == .heic || kind == .avif ? HEIFFile(file) : nil
    guard let size = kind == .jpeg ? jpeg?.size : boxes?.size ?? kind.size(of: file) else {
      // 43 is the number of TIFFs with offsets of 64 bits.
      let isBig = kind == .tiff && file[2...3].contains(43)
      throw RefusedPicture(reason: isBig ? "a BigTIFF is not supported" : "invalid data")
    }
    if let excess = size.excess(of: limits) { throw RefusedPicture(excess) }
    self.size = size
    heif = try boxes.map { (file) throws(RefusedPicture) in try CheckedHEIF(file, limits: limits) }
    switch kind {
    case .jpeg:
      if let reason = jpeg?.reasonToRefuse { throw RefusedPicture(reason: reason) }
      guard let jpeg, JPEGScans.areComplete(jpeg) else { throw RefusedPicture(reason: "incomplete") }
      (essential, colours, alpha) = (jpeg.essential, .profile, .straight)
    case .png:
      colours = ImageColours(ofPNG: file, notes: &notes)
      let isProfileUnused = colours != .profile
      let chunks = PNGChunks.essential(of: file, withoutProfile: isProfileUnused ? "unused" : nil)
      (essential, alpha) = (chunks.file, .straight)
      if let reason = chunks.lostProfile, !isProfileUnused { notes.append(Self.note(lostProfile: reason)) }
    case .webp:
      guard let still = WebPChunks.still(of: file) else {
        throw RefusedPicture(reason: "an animated WebP whose first frame does not fill it is not supported")
      }
      (essential, colours, alpha) = (still, .profile, .straight)
    case .gif: (essential, colours, alpha) = (try GIFBlocks.first(of: file), .standard, .straight)
    case .bmp:
      guard let header = BMPHeader(file), header.compression != .other else {
        throw RefusedPicture(reason: "a compressed BMP is not supported")
      }
      // libavcodec would shear a picture whose end is missing.
      guard header.byteCount <= file.count else { throw RefusedPicture(reason: "invalid data") }
      (essential, colours, alpha) = (file, .standard, header.compression == .bitFields ? .straight : .unused)
    case .tiff:
      let strips = try TIFFStrips(file, size: size)
      (essential, colours, alpha) = (strips.essential, .profile, strips.alpha)
      highestSample = strips.highestSample
    case .heic, .avif: (essential, colours, alpha) = (file, .profile, .straight)
    case .jpegXL:
      // libavcodec would wait without end for the rest of a box that breaks off.
      guard let codestream = JPEGXLFile(file)?.codestream else { throw RefusedPicture(reason: "invalid data") }
      (essential, colours, alpha) = (Array(codestream), .profile, .straight)
    }
  }

  private static func kind(of file: [UInt8]) throws(RefusedPicture) -> ImageKind {
    if let kind = ImageKind(of: file) { return kind }
    if file.isEmpty { throw RefusedPicture(reason: "an empty file") }
    if case .otherImage(let other) = FileKind(of: file) { throw RefusedPicture(other.refusal) }
    throw RefusedPicture(reason: FileKind(of: file)?.fault ?? FileKind.unknown)
  }

  /// The bits that samples of 16 bits use, if the file states them.
  var statedDepth: StatedDepth? {
    kind == .png ? StatedDepth(ofPNG: file) : StatedDepth(highest: highestSample)
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
