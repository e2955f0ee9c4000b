// Image files become pictures: bytes in, 4:2:0 planes out, through libavcodec. A file that is broken anywhere is
// refused as a whole; a half picture is never shown.

import CFFmpeg
import FileSystem
import FrameBatches
import Glibc

/// Why an image file is not shown.
struct RefusedPicture: Error, Equatable {
  package let reason: String
}

/// A picture, and what is to be said of it.
package struct DecodedPicture {
  package let picture: Picture
  package let notes: [String]
  /// The time of decoding the files, and of converting the pixels.
  package var work = DecodingWork()
}

/// Decodes the frames of one batch, one after another. Not thread-safe: one a thread.
package final class PictureDecoder {
  private let limits: Limits
  private let background: Colour
  private let converter: PictureConverter
  private let colours = ColourManagement()
  private let profile: Profile?
  /// The decoding time of the current picture so far.
  private var decoding = Profile.Span()

  init(limits: Limits, background: Colour = .black, profile: Profile? = nil) {
    self.profile = profile
    self.limits = limits
    self.background = background
    converter = PictureConverter(background: background)
  }

  /// - Parameters:
  ///   - files: of one frame, as many as its look says.
  ///   - look: its masks are painted before anything else sees the picture.
  ///   - space: where the picture is decoded to, if that saves a copy. Nothing else may lie there.
  /// - Throws: ``RefusedPicture`` when a file is to blame.
  package func picture(
    from files: [[UInt8]], _ look: FrameComposition, into space: SharedPictureBuffer?
  ) throws -> DecodedPicture {
    let start = Profile.Span.now
    decoding = Profile.Span()
    var decoded = try shown(files, look, into: space)
    decoded.work = DecodingWork(decoding: decoding, converting: .now - start - decoding)
    profile?.add(decoded.work)
    return decoded
  }

  private func shown(_ files: [[UInt8]], _ look: FrameComposition, into space: SharedPictureBuffer?) throws
    -> DecodedPicture
  {
    var notes: [String] = []
    let paintable: FrameBuffer
    switch look.content {
    case .image(let raw):
      let still = try still(from: files[0], raw, into: space, notes: &notes)
      // Masks are said of the picture as it is shown.
      paintable = try converted { () throws(FFmpegError) in
        try converter.oriented(converter.paintable(still.pixels), still.orientation)
      }
    case .layers(let layers, let width, let height):
      paintable = try blended(layers, files, width: width, height: height, notes: &notes)
    }
    return try converted { () throws(FFmpegError) in
      let masks = look.masks
      let hidden =
        paintable.format == AV_PIX_FMT_GRAY8 && masks.haveColours ? try converter.rgb(paintable) : paintable
      try MaskPainter.paint(masks, on: hidden)
      let planar = try hidden.subsampled()
      // Chroma is shared by pixels on both sides of an edge; the mask's side decides.
      if planar !== hidden { try MaskPainter.paint(masks, on: planar) }
      try planar.limitRange()
      return DecodedPicture(picture: try Picture(adopting: planar), notes: notes)
    }
  }

  private func blended(
    _ layers: [Layer], _ files: [[UInt8]], width: Int, height: Int, notes: inout [String]
  ) throws -> FrameBuffer {
    try requireFewPixels(layers, files)
    let canvas = try Canvas(width: width, height: height, background: background)
    for (index, (layer, file)) in zip(layers, files).enumerated() {
      do {
        let still = try still(from: file, layer.raw, into: nil, notes: &notes)
        let image = try converted { () throws(FFmpegError) in
          try converter.rgba(still.pixels).oriented(still.orientation)
        }
        let size = layer.size ?? PixelSize(width: image.width, height: image.height)
        guard canvas.meets(x: layer.x, y: layer.y, size) else { continue }
        try converted { () throws(FFmpegError) in
          // Hidden pixels must not be smeared by scaling, nor what is not hidden cover it again.
          let (across, down) = (Double(image.width) / Double(size.width), Double(image.height) / Double(size.height))
          try MaskPainter.paint(layer.masks.scaled(across, down), on: image)
          try image.premultiply()
          let fitted = try converter.scaled(image, to: size)
          if fitted !== image { try MaskPainter.paint(layer.masks, on: fitted) }
          canvas.lay(fitted, x: layer.x, y: layer.y, opacity: layer.opacity)
        }
      } catch let refusal as RefusedPicture {
        throw RefusedPicture(reason: "layer \(index): \(refusal.reason)")
      }
    }
    return canvas.picture
  }

  /// Counts the pixels of all layers, as stored and as laid down, by what their headers say: before any of them is decoded.
  private func requireFewPixels(_ layers: [Layer], _ files: [[UInt8]]) throws {
    var pixels = 0
    for (index, (layer, file)) in zip(layers, files).enumerated() {
      let stored =
        layer.raw.map { ($0.size.width, $0.size.height) } ?? ImageKind(of: file).flatMap { $0.size(of: file) } ?? (0, 0)
      // The decoder refuses layers with an impossible size.
      guard max(stored.0, stored.1) <= limits.side else { continue }
      let size = layer.size ?? PixelSize(width: stored.0, height: stored.1)
      pixels += stored.0 * stored.1 + size.width * size.height
      guard pixels <= 4 * limits.pixels else {
        throw RefusedPicture(reason: "layer \(index): too many pixels in all layers")
      }
    }
  }

  /// An image in sRGB, as it is stored, and how it is to be turned.
  private func still(
    from file: [UInt8], _ raw: RawPixels?, into space: SharedPictureBuffer?, notes: inout [String]
  ) throws -> (pixels: FrameBuffer, orientation: Orientation) {
    if let raw { return (try raw.picture(from: file), .upright) }
    let start = Profile.Span.now
    let (decoded, orientation) = try decode(file, into: space, notes: &notes)
    decoding = decoding + (.now - start)
    switch colours.demand(of: decoded) {
    case .none: return (decoded, orientation)
    case .unusable(let reason):
      notes.append(Self.note(lostProfile: reason))
      return (decoded, orientation)
    case .transform(let transform):
      return try converted { () throws(FFmpegError) in
        let rgb = try decoded.hasAlpha ? converter.rgba(decoded) : converter.rgb(decoded)
        try transform.apply(to: rgb)
        return (rgb, orientation)
      }
    }
  }

  /// The reason to refuse a file that is no image, or an image of another kind.
  private static func unknown(_ file: [UInt8]) -> String {
    "neither JPEG, PNG nor WebP" + (FileKind(of: file).map { ", but \($0.described)" } ?? "")
  }

  private func decode(
    _ file: [UInt8], into space: SharedPictureBuffer?, notes: inout [String]
  ) throws -> (pixels: FrameBuffer, orientation: Orientation) {
    guard let kind = ImageKind(of: file) else {
      throw RefusedPicture(reason: file.isEmpty ? "an empty file" : Self.unknown(file))
    }
    // Taken apart once, for all who look into it: that goes over the whole file.
    let jpeg = kind == .jpeg ? JPEGFile(file) : nil
    guard let size = kind == .jpeg ? jpeg?.size : kind.size(of: file) else {
      throw RefusedPicture(reason: "invalid data")
    }
    guard max(size.width, size.height) <= limits.side, size.width * size.height <= limits.pixels else {
      throw RefusedPicture(
        reason:
          "\(size.width)×\(size.height) pixels, more than the limit of \(limits.side) a side, \(limits.pixels) in all")
    }
    let still: [UInt8]
    switch kind {
    case .jpeg:
      if let reason = jpeg?.reasonToRefuse { throw RefusedPicture(reason: reason) }
      guard let jpeg, JPEGScans.areComplete(jpeg) else { throw RefusedPicture(reason: "incomplete") }
      still = jpeg.essential
    case .png:
      let chunks = PNGChunks.essential(of: file)
      still = chunks.file
      if let reason = chunks.lostProfile { notes.append(Self.note(lostProfile: reason)) }
    case .webp:
      guard let first = WebPChunks.still(of: file) else {
        throw RefusedPicture(reason: "an animated WebP whose first frame does not fill it is not supported")
      }
      still = first
    }
    // One decoder a file: JPEG's keeps tables, so that a file without its own would be decoded with another's.
    let decoded: FrameBuffer
    do {
      decoded = try ImageCodec(kind, limits: limits, space).decode(still)
    } catch let refusal as RefusedPicture {
      // libavcodec refuses a picture for a profile that cannot be unpacked.
      let bare = kind == .png ? PNGChunks.essential(of: file, withoutProfile: "damaged") : nil
      guard let bare, let reason = bare.lostProfile, bare.file != still else { throw refusal }
      decoded = try ImageCodec(kind, limits: limits, space).decode(bare.file)
      notes.append(Self.note(lostProfile: reason))
    }
    guard (decoded.width, decoded.height) == size else { throw RefusedPicture(reason: "two sizes in one file") }
    let orientation = Orientation(of: file, kind: kind, jpeg: jpeg)
    guard kind == .png, let grey = PNGChunks.transparentGrey(of: file) else { return (decoded, orientation) }
    if decoded.colourProfile != nil { notes.append(Self.note(lostProfile: "with a transparent grey")) }
    let rgba = try converted { () throws(FFmpegError) in try converter.rgba(decoded) }
    rgba.makeTransparent(grey: grey)
    return (rgba, orientation)
  }

  private static func note(lostProfile reason: String) -> String {
    "shown as sRGB: its colour profile cannot be used (\(reason))"
  }

  /// Does what can only fail for a lack of memory, or because the picture is of an unforeseen kind.
  private func converted<Result>(_ body: () throws(FFmpegError) -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      if error.isOutOfMemory { throw error }
      throw RefusedPicture(reason: "a kind of picture that cannot be converted: \(error.cause)")
    }
  }
}
