// Decodes image files to 4:2:0 planes, through libavcodec and `PNGDecoder`. A file with any damage is refused: no part of its
// picture is shown.

import CFFmpeg
import FileSystem
import FrameBatches
import Glibc

/// A picture, with notes for the manifest.
package struct DecodedPicture {
  let picture: Picture
  let notes: [String]
  let facts: PictureFacts
  let work: DecodingWork
}

/// Decodes the frames of one batch, one after another. Not thread-safe: use one for each thread.
package final class PictureDecoder {
  private let limits: Limits
  private let converter: PictureConverter
  private let profiles = ColourManagement()
  private let spaces = ColourSpaceConverter()
  private let plainPNGs: PNGDecoder
  private let profile: Profile?
  /// The decoding time of the current picture so far.
  private var decoding = Profile.Span()
  /// The facts of the current picture so far.
  private var facts = PictureFacts()
  /// The bits that samples of 16 bits use, if the user states them.
  var sampleBits: Int?
  /// The last file of which one of several pictures was shown.
  private var canvas: SequenceCanvas?

  init(limits: Limits, background: Colour = .black, profile: Profile? = nil) {
    self.profile = profile
    self.limits = limits
    converter = PictureConverter(background: background)
    plainPNGs = PNGDecoder(limits: limits)
  }

  /// - Parameters:
  ///   - files: the files of one frame, as many as `look` says.
  ///   - look: the composition; its masks are painted before any other code sees the picture.
  ///   - buffer: memory to decode the picture into, if that saves a copy. It must not hold another picture.
  /// - Throws: ``RefusedPicture`` when a file is to blame.
  package func picture(
    from files: [[UInt8]], _ look: FrameComposition, into buffer: SharedPictureBuffer?
  ) throws -> DecodedPicture {
    let start = Profile.Span.now
    decoding = Profile.Span()
    facts = PictureFacts()
    var notes: [String] = []
    let composed = try composed(files, look, into: buffer, notes: &notes)
    let picture = try converting { try masked(composed, look.masks) }
    let work = DecodingWork(decoding: decoding, converting: .now - start - decoding)
    profile?.add(work)
    return DecodedPicture(picture: picture, notes: notes, facts: facts, work: work)
  }

  private func composed(
    _ files: [[UInt8]], _ look: FrameComposition, into buffer: SharedPictureBuffer?, notes: inout [String]
  ) throws -> FrameBuffer {
    switch look.content {
    case .layers(let layers, let width, let height):
      return try blended(layers, files, width: width, height: height, notes: &notes)
    case .image, .picture:
      let (pixels, orientation) = try image(from: files[0], look.content, into: buffer, notes: &notes)
      return try converting {
        let paintable = try converter.paintable(visible(pixels, notes: &notes))
        // Masks have the coordinates of the picture as it is shown.
        return orientation == .upright ? paintable : try converter.rgb(paintable).oriented(orientation)
      }
    }
  }

  /// Returns a picture, with a note if its drawing has the colour of the background.
  private func visible(_ pixels: FrameBuffer, notes: inout [String]) throws(FFmpegError) -> FrameBuffer {
    guard pixels.hasAlpha else { return pixels }
    let rgba = try converter.rgba(pixels)
    if rgba.isInvisible(on: converter.background) {
      let other = converter.background.green < 128 ? "white" : "black"
      notes.append("drawn in the colour of the background, so that nothing is seen: try --background \(other)")
    }
    return rgba
  }

  private func masked(_ picture: FrameBuffer, _ masks: Masks) throws(FFmpegError) -> Picture {
    let paintable = picture.format == AV_PIX_FMT_GRAY8 && masks.haveColours ? try converter.rgb(picture) : picture
    try MaskPainter.paint(masks, on: paintable)
    let planar = try paintable.subsampled()
    // Pixels on both sides of a mask's edge share chroma, which gets the mask's colour.
    if planar !== paintable { try MaskPainter.paint(masks, on: planar) }
    if !planar.isCoded { try planar.limitRange() }
    return try Picture(adopting: planar)
  }

  private func blended(
    _ layers: [Layer], _ files: [[UInt8]], width: Int, height: Int, notes: inout [String]
  ) throws -> FrameBuffer {
    try requireFewPixels(layers, files)
    let canvas = try FrameBuffer(width: width, height: height, filledWith: converter.background)
    for (index, (layer, file)) in zip(layers, files).enumerated() {
      do {
        let (pixels, orientation) = try image(from: file, .image(layer.raw), into: nil, notes: &notes)
        try converting {
          let image = try converter.rgba(pixels).oriented(orientation)
          let size = layer.size ?? image.size
          guard canvas.meets(x: layer.x, y: layer.y, size) else { return }
          // Paint before scaling, which would mix hidden pixels into others, and after it, which mixes others into the mask.
          let (across, down) = (Double(image.width) / Double(size.width), Double(image.height) / Double(size.height))
          try MaskPainter.paint(layer.masks.scaled(across, down), on: image)
          try image.premultiply()
          let fitted = try converter.scaled(image, to: size)
          if fitted !== image { try MaskPainter.paint(layer.masks, on: fitted) }
          canvas.blend(fitted, x: layer.x, y: layer.y, opacity: layer.opacity)
        }
      } catch let refusal as RefusedPicture {
        throw RefusedPicture(refusal.refusal.at("layer \(index)"))
      }
    }
    return canvas
  }

  /// Limits the pixels of all layers, as stored and as shown, by their headers, before any layer is decoded.
  private func requireFewPixels(_ layers: [Layer], _ files: [[UInt8]]) throws {
    var pixels = 0
    var excess: Int?
    for (index, (layer, file)) in zip(layers, files).enumerated() {
      let stored = layer.raw?.size ?? ImageKind(of: file)?.size(of: file) ?? PixelSize(width: 0, height: 0)
      // The decoder refuses layers with an impossible size.
      guard max(stored.width, stored.height) <= limits.side else { continue }
      let size = layer.size ?? stored
      pixels += stored.width * stored.height + size.width * size.height
      if excess == nil, pixels > 4 * limits.pixels { excess = index }
    }
    guard let excess else { return }
    let needed = (pixels + 3) / 4
    throw RefusedPicture(
      Refusal("layer \(excess): too many pixels in all layers", LimitAdvice(pixels: needed).map { .raise($0) }))
  }

  /// Returns an image in sRGB as it is stored, and its orientation.
  private func image(
    from file: [UInt8], _ content: FrameComposition.Content, into buffer: SharedPictureBuffer?, notes: inout [String]
  ) throws -> (pixels: FrameBuffer, orientation: Orientation) {
    if case .image(let raw?) = content { return (try raw.picture(from: file), .upright) }
    let start = Profile.Span.now
    let (decoded, orientation, colours): (FrameBuffer, Orientation, ImageColours)
    if case .picture(let index) = content {
      (decoded, orientation, colours) = try decode(index, of: file, notes: &notes)
    } else {
      (decoded, orientation, colours) = try decode(file, into: buffer, notes: &notes)
      countPictures(in: file, notes: &notes)
    }
    decoding = decoding + (.now - start)
    if case .other(let space) = colours {
      if let note = space.note, !notes.contains(note) { notes.append(note) }
      return (try converting { try spaces.converted(decoded, from: space, converter) }, orientation)
    }
    switch profiles.conversion(of: decoded) {
    case .none: return (decoded, orientation)
    case .unusable(let reason):
      notes.append(CheckedImage.note(lostProfile: reason))
      return (decoded, orientation)
    case .transform(let transform):
      return try converting {
        let rgb = try decoded.hasAlpha ? converter.rgba(decoded) : converter.rgb(decoded)
        try transform.apply(to: rgb)
        return (rgb, orientation)
      }
    }
  }

  /// Decodes one of the pictures of a file, counted from 0.
  private func decode(
    _ index: Int, of file: [UInt8], notes: inout [String]
  ) throws -> (pixels: FrameBuffer, orientation: Orientation, colours: ImageColours) {
    let canvas = try canvas.flatMap { $0.isOf(file) ? $0 : nil } ?? SequenceCanvas(file, limits: limits)
    self.canvas = canvas
    // The pages of a TIFF have nothing in common.
    if canvas.sequence.kind == .tiff {
      guard canvas.sequence.pictures.indices.contains(index) else { throw RefusedPicture(reason: "invalid data") }
      return try decode(canvas.sequence.still(index, of: file), into: nil, notes: &notes)
    }
    var colours = ImageColours.profile
    let pixels = try canvas.picture(index) { still in
      let decoded = try decode(still, into: nil, notes: &notes)
      colours = decoded.colours
      return try converting { try converter.rgba(decoded.pixels).withProperties(of: decoded.pixels) }
    }
    return (pixels, .upright, colours)
  }

  /// Notes that a file has more pictures than the one that is shown.
  private func countPictures(in file: [UInt8], notes: inout [String]) {
    guard let kind = ImageKind(of: file), case let count = ImageSequence.count(in: file, kind), count > 1 else {
      return
    }
    facts.several += 1
    facts.leftOut += count - 1
    if kind == .heic || kind == .avif { facts.unread += 1 }
    notes.append("shown by the first of its \(count) pictures")
  }

  private func decode(
    _ file: [UInt8], into buffer: SharedPictureBuffer?, notes: inout [String]
  ) throws -> (pixels: FrameBuffer, orientation: Orientation, colours: ImageColours) {
    if ImageKind(of: file) == .tiff, let raw = CameraRaw(file) {
      guard let preview = raw.preview else {
        throw RefusedPicture(
          Refusal("a camera raw image without a large preview is not supported", .convert(.cameraRaw)))
      }
      let (pixels, own, colours) = try decode(Array(preview), into: buffer, notes: &notes)
      notes.append("shown by the preview in its camera raw file, \(pixels.width)×\(pixels.height)")
      let orientation = Orientation(of: file, kind: .tiff, jpeg: nil)
      return (pixels, orientation == .upright ? own : orientation, colours)
    }
    let image = try CheckedImage(file, limits: limits, notes: &notes)
    if let heif = image.heif {
      let (pixels, colours) = try converting { try HEIFDecoder(converter: converter).decode(heif, notes: &notes) }
      return (pixels, Orientation(heif.picture.turns), colours)
    }
    let decoded = try pixels(of: image, into: buffer, notes: &notes)
    guard decoded.size == image.size else { throw RefusedPicture(reason: "two sizes in one file") }
    if let highest = try converting({ try decoded.scaleSamples(bits: sampleBits, stated: image.statedDepth) }) {
      facts.wide += 1
      facts.highest = max(facts.highest, highest)
    }
    if image.kind == .jpegXL {
      // libavcodec turns the picture, and names its colours where it has no profile.
      let (primaries, transfer) = (decoded.coded.primaries, decoded.coded.transfer)
      let colours =
        decoded.colourProfile == nil
        ? ImageColours(primaries: primaries, transfer: transfer, isFullRange: true, notes: &notes) : .profile
      return (decoded, .upright, colours)
    }
    let orientation = Orientation(of: file, kind: image.kind, jpeg: image.jpeg)
    if image.alpha != .straight {
      return (
        try converting { try decoded.withStraightAlpha(image.alpha, converter) }, orientation, image.colours
      )
    }
    guard image.kind == .png, let grey = PNGChunks.transparentGrey(of: file) else {
      return (decoded, orientation, image.colours)
    }
    if decoded.colourProfile != nil { notes.append(CheckedImage.note(lostProfile: "with a transparent grey")) }
    let rgba = try converting { try converter.rgba(decoded) }
    rgba.makeTransparent(grey: grey)
    return (rgba, orientation, image.colours)
  }

  /// Decodes an image. libavcodec refuses a picture whose profile cannot be unpacked; then it gets the picture without its profile.
  private func pixels(
    of image: CheckedImage, into buffer: SharedPictureBuffer?, notes: inout [String]
  ) throws -> FrameBuffer {
    // One decoder a file: a JPEG decoder keeps tables, and would use them for a file without tables.
    func decoded(_ file: [UInt8]) throws -> FrameBuffer {
      try ImageCodec(image.kind, limits: limits, buffer).decode(file)
    }
    let refusal: RefusedPicture
    do {
      let plain = image.kind == .png ? plainPNGs.decode(image.essential, size: image.size) : nil
      return try plain ?? decoded(image.essential)
    } catch let refused as RefusedPicture {
      refusal = refused
    }
    guard let bare = image.withoutProfile else { throw refusal }
    let picture = try decoded(bare.file)
    notes.append(CheckedImage.note(lostProfile: bare.lostProfile))
    return picture
  }

  /// Runs a conversion, which fails only for a lack of memory, or for an unforeseen kind of picture.
  private func converting<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as FFmpegError where !error.isOutOfMemory {
      throw RefusedPicture(reason: "a kind of picture that cannot be converted: \(error.cause)")
    }
  }
}
