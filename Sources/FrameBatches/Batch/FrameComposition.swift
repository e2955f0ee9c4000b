// How a frame's files become its picture: one image file in most batches; else pixels without a file format, or layers.

/// All facts, apart from the files, that decide how a frame looks.
package struct FrameComposition: Sendable, Equatable {
  package enum Content: Sendable, Equatable {
    /// The only file is the picture: an image file (nil), or pixels with this layout.
    case image(RawPixels?)
    /// The only file has several pictures, of which this is one, counted from 0.
    case picture(Int)
    /// Each file is a layer of a picture of this size in pixels, the lowest first.
    case layers([Layer], width: Int, height: Int)
  }

  package let content: Content
  /// The masks of the whole picture.
  package let masks: Masks

  package init(content: Content, masks: Masks) {
    self.content = content
    self.masks = masks
  }

  /// How each file's pixels are laid out; nil for image files.
  package var raws: [RawPixels?] {
    switch content {
    case .image(let raw): [raw]
    case .picture: [nil]
    case .layers(let layers, _, _): layers.map(\.raw)
    }
  }

  /// The reason why the whole picture is hidden; nil if it is not.
  package var blackout: String? { if case .everything(let reason) = masks { reason } else { nil } }

  /// Whether a mask of the picture, or of a layer, hides a part of it.
  package var hidesAnything: Bool {
    guard masks.areEmpty, case .layers(let layers, _, _) = content else { return !masks.areEmpty }
    return layers.contains { !$0.masks.areEmpty }
  }

  /// Whether a part of a line on the picture is hidden. A mask of a layer hides what lies under it, and also what other layers show
  /// over it.
  package func hides(_ line: PointerLine) -> Bool {
    if masks.hide(line) { return true }
    guard case .layers(let layers, _, _) = content else { return false }
    return layers.contains { $0.masks.hide(line.moved(x: -Double($0.x), y: -Double($0.y))) }
  }

  /// The composition as a text for the batch's digest. Equal compositions have equal texts, in every version of this program.
  var canonicalText: String {
    switch content {
    case .image(nil): masks.canonicalText
    case .image(let raw?): masks.canonicalText + " " + raw.canonicalText
    case .picture(let index): masks.canonicalText + " picture \(index)"
    case .layers(let layers, let width, let height):
      masks.canonicalText + " \(width)×\(height) " + layers.map(\.canonicalText).joined(separator: " ")
    }
  }
}

/// One of the images that make a picture, for example a window.
package struct Layer: Sendable, Equatable {
  /// How its pixels are laid out; nil for an image file.
  package let raw: RawPixels?
  /// Its upper left corner in the picture; it may lie outside.
  package let x: Int
  package let y: Int
  /// The size to fit it into; nil for the image's own size.
  package let size: PixelSize?
  /// 0 to 1; multiplied by the image's own opacity.
  package let opacity: Double
  /// The masks, in pixels of the picture, relative to the layer's upper left corner.
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
    /// The colours are already multiplied by alpha, as graphics systems keep them.
    case premultiplied
    case straight
    /// Alpha is ignored: nothing is transparent.
    case opaque
  }

  package let format: Format
  package let alpha: Alpha
  package let size: PixelSize
  /// Bytes from the start of a row to the start of the next.
  package let bytesPerRow: Int
  /// Bytes from one row of the alpha plane to the next; unused in formats without that plane.
  package let alphaBytesPerRow: Int

  package init(format: Format, alpha: Alpha, size: PixelSize, bytesPerRow: Int, alphaBytesPerRow: Int) {
    self.format = format
    self.alpha = alpha
    self.size = size
    self.bytesPerRow = bytesPerRow
    self.alphaBytesPerRow = alphaBytesPerRow
  }

  /// The reason why no picture can have this layout; nil if one can. Its sums do not overflow then.
  package func refusal(_ limits: Limits) -> Refusal? {
    guard min(size.width, size.height) > 0 else { return Refusal("\(size.width)×\(size.height) pixels", nil) }
    return size.excess(of: limits) ?? rowFault.map { Refusal($0, nil) }
  }

  /// The reason why rows of this size cannot have so many bytes; nil if they can.
  var rowFault: String? {
    guard bytesPerRow >= 4 * size.width, alphaBytesPerRow >= size.width,
      max(bytesPerRow / 4, alphaBytesPerRow) <= size.width + 4_096
    else {
      return "rows of \(bytesPerRow) bytes for \(size.width) pixels"
    }
    return nil
  }

  /// The minimum size of the file, in bytes.
  package var byteCount: Int { size.height * (bytesPerRow + (format == .bgr10a8 ? alphaBytesPerRow : 0)) }

  fileprivate var canonicalText: String {
    "\(format.rawValue) \(alpha.rawValue) \(size.width)×\(size.height) \(bytesPerRow) \(alphaBytesPerRow)"
  }
}
