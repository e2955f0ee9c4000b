// How a frame's files become its picture: one image file in most batches; else pixels without a file format, or layers.

/// With the same files, all that decides what a frame looks like.
package struct FrameComposition: Sendable, Equatable {
  package enum Content: Sendable, Equatable {
    /// The one file is the picture: an image file, or pixels laid out like this.
    case image(RawPixels?)
    /// Each file is a layer of a picture of this size in pixels, the lowest first.
    case layers([Layer], width: Int, height: Int)
  }

  package let content: Content
  /// Rectangles of the whole picture.
  package let masks: Masks

  package init(content: Content, masks: Masks) {
    self.content = content
    self.masks = masks
  }

  /// How each file's pixels are laid out; nil for image files.
  var raws: [RawPixels?] {
    switch content {
    case .image(let raw): [raw]
    case .layers(let layers, _, _): layers.map(\.raw)
    }
  }

  /// Why the whole picture is hidden; nil where it is not.
  package var blackout: String? { if case .everything(let reason) = masks { reason } else { nil } }

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
package struct Layer: Sendable, Equatable {
  /// How its pixels are laid out; nil for an image file.
  package let raw: RawPixels?
  /// Its upper left corner in the picture; it may lie outside.
  package let x: Int
  package let y: Int
  /// The size to fit it into; nil for the image's own size.
  package let size: PixelSize?
  /// 0 to 1, times the image's own.
  package let opacity: Double
  /// In pixels of the picture, from the layer's upper left corner.
  package let masks: Masks

  package init(raw: RawPixels?, x: Int, y: Int, size: PixelSize?, opacity: Double, masks: Masks) {
    self.raw = raw
    self.x = x
    self.y = y
    self.size = size
    self.opacity = opacity
    self.masks = masks
  }

  fileprivate var canonicalText: String {
    let size = size.map { "\($0.width)×\($0.height)" } ?? ""
    return
      "[\(x),\(y) \(size) \(String(opacity.bitPattern, radix: 16)) \(masks.canonicalText) \(raw?.canonicalText ?? "")]"
  }
}

package struct PixelSize: Sendable, Equatable {
  package let width: Int
  package let height: Int

  package init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// Whether a picture may be so large, and is at least one pixel.
  package func isWithin(_ limits: Limits) -> Bool {
    min(width, height) > 0 && max(width, height) <= limits.side && width * height <= limits.pixels
  }

  /// As large as it can be in a box, in its own proportions, but not larger than it is.
  package func fitted(into box: PixelSize) -> PixelSize {
    guard width > box.width || height > box.height else { return self }
    // By the side that is the tighter one; the other is rounded to the nearest.
    if width * box.height >= height * box.width {
      return PixelSize(width: box.width, height: max(1, (2 * height * box.width + width) / (2 * width)))
    }
    return PixelSize(width: max(1, (2 * width * box.height + height) / (2 * height)), height: box.height)
  }
}

/// Pixels as a screen grabber has them in memory, top row first.
package struct RawPixels: Sendable, Equatable {
  package enum Format: String, Sendable, CaseIterable {
    /// Four bytes a pixel, in this order.
    case bgra = "BGRA"
    case rgba = "RGBA"
    /// iOS's wide colour: a plane of 32-bit words, the lowest byte first, with blue in bits 0–9, green in 10–19 and red in
    /// 20–29, each (value − 384) / 510 of sRGB and beyond; behind it a plane of 8-bit alpha.
    case bgr10a8 = "BGR10A8"
  }

  package enum Alpha: String, Sendable, CaseIterable {
    /// The colours are already multiplied by it, as graphics systems keep them.
    case premultiplied
    case straight
    /// Whatever it says, nothing is transparent.
    case opaque
  }

  package let format: Format
  package let alpha: Alpha
  package let size: PixelSize
  /// From one row to the next, in bytes.
  package let bytesPerRow: Int
  /// The same in the plane of alpha, where there is one.
  package let alphaBytesPerRow: Int

  package init(format: Format, alpha: Alpha, size: PixelSize, bytesPerRow: Int, alphaBytesPerRow: Int) {
    self.format = format
    self.alpha = alpha
    self.size = size
    self.bytesPerRow = bytesPerRow
    self.alphaBytesPerRow = alphaBytesPerRow
  }

  /// Minimum number of bytes of a file.
  package var byteCount: Int { size.height * (bytesPerRow + (format == .bgr10a8 ? alphaBytesPerRow : 0)) }

  fileprivate var canonicalText: String {
    "\(format.rawValue) \(alpha.rawValue) \(size.width)×\(size.height) \(bytesPerRow) \(alphaBytesPerRow)"
  }
}
