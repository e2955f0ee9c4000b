import FileSystem
import FrameBatches

/// A captured picture and its instant.
///
/// ```swift
/// let frame = CapturedFrame(image: jpeg, timeMs: 1_767_859_512_340, masks: [Mask(x: 0, y: 0, width: 90, height: 40)])
/// ```
public struct CapturedFrame: Sendable {
  /// An image file (JPEG, PNG, WebP, HEIC, AVIF and others), or pixels.
  let bytes: [UInt8]
  let look: FrameComposition
  /// The capture time, in unix milliseconds.
  public let timeMs: Int64
  /// The name of the frame in manifests and errors.
  public let source: String

  /// Takes an image file. An array is not copied.
  ///
  /// - Parameters:
  ///   - image: the bytes of an image file.
  ///   - timeMs: the capture time, in unix milliseconds.
  ///   - masks: the parts of the picture that must not be seen. A mask that cannot be applied blacks the whole picture out.
  ///   - source: the frame's name in manifests and errors; by default its time.
  public init(image: [UInt8], timeMs: Int64, masks: [Mask] = [], source: String? = nil) {
    self.init(image, .image(nil), timeMs, masks, source)
  }

  /// Takes an image file in memory of somebody else, which is copied: the next frame is compared with it.
  ///
  /// - Parameters:
  ///   - image: the bytes of an image file.
  ///   - timeMs: the capture time, in unix milliseconds.
  ///   - masks: the parts of the picture that must not be seen. A mask that cannot be applied blacks the whole picture out.
  ///   - source: the frame's name in manifests and errors; by default its time.
  public init(copying image: RawSpan, timeMs: Int64, masks: [Mask] = [], source: String? = nil) {
    self.init(image: image.withUnsafeBytes { [UInt8]($0) }, timeMs: timeMs, masks: masks, source: source)
  }

  /// Takes pixels of four bytes each, as a screen grabber has them in memory. An array is not copied.
  ///
  /// - Parameters:
  ///   - pixels: the rows, the top one first.
  ///   - isBGRA: whether the order of the bytes is blue, green, red, alpha, instead of red, green, blue, alpha.
  ///   - isPremultiplied: whether the colours are already multiplied by alpha.
  ///   - width: of the picture, in pixels.
  ///   - height: of the picture, in pixels.
  ///   - bytesPerRow: bytes from the start of a row to the start of the next; by default four a pixel.
  ///   - timeMs: the capture time, in unix milliseconds.
  ///   - masks: the parts of the picture that must not be seen. A mask that cannot be applied blacks the whole picture out.
  ///   - source: the frame's name in manifests and errors; by default its time.
  public init(
    pixels: [UInt8], isBGRA: Bool, isPremultiplied: Bool, width: Int, height: Int, bytesPerRow: Int? = nil,
    timeMs: Int64, masks: [Mask] = [], source: String? = nil
  ) {
    let layout = RawPixels(
      format: isBGRA ? .bgra : .rgba, alpha: isPremultiplied ? .premultiplied : .straight,
      size: PixelSize(width: width, height: height),
      bytesPerRow: bytesPerRow ?? width.multipliedReportingOverflow(by: 4).partialValue, alphaBytesPerRow: width)
    self.init(pixels, .image(layout), timeMs, masks, source)
  }

  private init(
    _ bytes: [UInt8], _ content: FrameComposition.Content, _ timeMs: Int64, _ masks: [Mask], _ source: String?
  ) {
    self.bytes = bytes
    self.timeMs = timeMs
    self.source = source ?? "\(timeMs)"
    look = FrameComposition(content: content, masks: Masks(masks))
  }

  /// A frame of a batch.
  ///
  /// - Parameter bytes: of its only file.
  init(_ frame: Frame, _ bytes: [UInt8]) {
    (self.bytes, look, timeMs, source) = (bytes, frame.look, frame.timeMs, frame.source)
  }

  /// The frame as a batch has it.
  var frame: Frame { Frame(source: source, paths: [source], timeMs: timeMs, look: look) }

  /// The reason why the bytes cannot be the frame's, before they are decoded; nil if they may.
  func refusal(_ limits: Limits) -> Refusal? {
    guard case .image(let pixels) = look.content else { return nil }
    let limit = pixels == nil ? limits.fileBytes : limits.frameBytes
    guard bytes.count <= limit else {
      return Refusal(FileRefusal(size: bytes.count, limit: limit), isImage: pixels == nil, limits)
    }
    return pixels?.refusal(limits)
  }
}
