// How a frame's files become its picture: one image file in most batches; else pixels without a file format, or layers.

/// With the same files, all that decides what a frame looks like.
struct Look: Sendable, Equatable {
  enum Content: Sendable, Equatable {
    /// The one file is the picture: an image file, or pixels laid out like this.
    case image(RawPixels?)
    /// Each file is a layer of a picture of this size in pixels, the lowest first.
    case layers([Layer], width: Int, height: Int)
  }

  let content: Content
  /// Rectangles of the whole picture.
  let masks: Masks

  /// How each file's pixels are laid out; nil for image files.
  var raws: [RawPixels?] {
    switch content {
    case .image(let raw): [raw]
    case .layers(let layers, _, _): layers.map(\.raw)
    }
  }

  /// Why the whole picture is hidden; nil where it is not.
  var blackout: String? { if case .everything(let reason) = masks { reason } else { nil } }

  /// The same for the same look, in every version of this program.
  var canonicalText: String {
    switch content {
    case .image(nil): masks.canonicalText
    case .image(let raw?): masks.canonicalText + " " + raw.canonicalText
    case .layers(let layers, let width, let height):
      masks.canonicalText + " \(width)×\(height) " + layers.map(\.canonicalText).joined(separator: " ")
    }
  }
}

/// One image of several that make a picture: a window, say.
struct Layer: Sendable, Equatable {
  /// How its pixels are laid out; nil for an image file.
  let raw: RawPixels?
  /// Its upper left corner in the picture; it may lie outside.
  let x: Int
  let y: Int
  /// What it is made to fit; nil for the image's own size.
  let size: PixelSize?
  /// 0 to 1, times the image's own.
  let opacity: Double
  /// In pixels of the picture, from the layer's upper left corner.
  let masks: Masks

  fileprivate var canonicalText: String {
    let size = size.map { "\($0.width)×\($0.height)" } ?? ""
    return
      "[\(x),\(y) \(size) \(String(opacity.bitPattern, radix: 16)) \(masks.canonicalText) \(raw?.canonicalText ?? "")]"
  }
}

struct PixelSize: Sendable, Equatable {
  let width: Int
  let height: Int

  /// Whether a picture may be so large, and is at least one pixel.
  func isWithin(_ limits: Limits) -> Bool {
    min(width, height) > 0 && max(width, height) <= limits.side && width * height <= limits.pixels
  }
}

/// Pixels as a screen grabber has them in memory, top row first.
struct RawPixels: Sendable, Equatable {
  enum Format: String, Sendable, CaseIterable {
    /// Four bytes a pixel, in this order.
    case bgra = "BGRA"
    case rgba = "RGBA"
    /// iOS's wide colour: a plane of 32-bit words, the lowest byte first, with blue in bits 0–9, green in 10–19 and red in
    /// 20–29, each (value − 384) / 510 of sRGB and beyond; behind it a plane of 8-bit alpha.
    case bgr10a8 = "BGR10A8"
  }

  enum Alpha: String, Sendable, CaseIterable {
    /// The colours are already multiplied by it, as graphics systems keep them.
    case premultiplied
    case straight
    /// Whatever it says, nothing is transparent.
    case opaque
  }

  let format: Format
  let alpha: Alpha
  let size: PixelSize
  /// From one row to the next, in bytes.
  let bytesPerRow: Int
  /// The same in the plane of alpha, where there is one.
  let alphaBytesPerRow: Int

  /// What a file has at least.
  var byteCount: Int { size.height * (bytesPerRow + (format == .bgr10a8 ? alphaBytesPerRow : 0)) }

  fileprivate var canonicalText: String {
    "\(format.rawValue) \(alpha.rawValue) \(size.width)×\(size.height) \(bytesPerRow) \(alphaBytesPerRow)"
  }
}
