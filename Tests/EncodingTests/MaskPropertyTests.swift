import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// Random rectangles on pictures of all formats. The tests compare each sample with the same picture without masks.
@Suite struct MaskPropertyTests {
  private static let images: [(file: String, kind: String)] = [
    ("exact-1fps/0006.jpg", "jpg"), ("odd-size/1767859512340.jpg", "jpg"), ("wide-colour/p3.jpg", "jpg"),
    ("colour-bars/1767859512340.png", "png"), ("colour-bars/1767859517340.png", "png"), ("wide-colour/p3.png", "png"),
    ("wide-colour/p3.webp", "webp"),
  ]

  let decoder = PictureDecoder(limits: Limits())

  init() { FFmpegLog.silence() }

  /// A picture's samples, with the masks over each pixel.
  private struct Samples {
    let planes: [UInt8]
    let width: Int
    let height: Int

    init(_ picture: Picture) throws {
      (planes, width, height) = (try picture.bytes, picture.codedWidth, picture.codedHeight)
    }

    func luma(_ x: Int, _ y: Int) -> UInt8 { planes[y * width + x] }
    func chroma(_ x: Int, _ y: Int) -> [UInt8] {
      let first = width * height + y / 2 * (width / 2) + x / 2
      return [planes[first], planes[first + width * height / 4]]
    }
  }

  @Test(arguments: Extent.of(1...50, full: 1...200))
  func maskedPixelsHaveTheMasksColourAndNothingElseChanges(seed: Int) throws {
    var random = Random(seed: seed)
    let image = Self.images[Int(random.int(0...Int64(Self.images.count - 1)))]
    var file = try Fixture(image.file).bytes()
    if image.kind != "webp", random.once(in: 2) {
      file = OrientedImage.file(file, kind: image.kind, tag: Int(random.int(1...8)), width: 0, height: 0)
    }
    let plain = try decoder.picture(from: file, masks: .none)
    // All masks share a colour. Otherwise two masks that share a chroma sample would conflict.
    let colour = random.once(in: 2) ? Colour.black : Colour(red: 200, green: 30, blue: UInt8(random.int(0...255)))
    let masks = (0..<random.int(1...4)).map { _ in
      let scale = [1, 1.25, 2, 3][Int(random.int(0...3))]
      func length(_ range: ClosedRange<Int64>) -> Double { Double(random.int(range)) / 4 }
      return Mask(
        x: length(-100...Int64(4 * plain.width)), y: length(-100...Int64(4 * plain.height)),
        width: length(0...300), height: length(0...300), colour: colour
      ).scaled(scale, scale)
    }
    let hidden = try Samples(try decoder.picture(from: file, masks: .rectangles(masks)))
    let all = try Samples(try decoder.picture(from: file, masks: .rectangles([colour.everywhere])))
    let shown = try Samples(plain)
    for y in 0..<plain.height {
      for x in 0..<plain.width {
        if masks.contains(where: { $0.covers(x, y, margin: 0) }) {
          guard hidden.luma(x, y) == all.luma(0, 0), hidden.chroma(x, y) == all.chroma(0, 0) else {
            Issue.record("\(image.file), \(masks): pixel \(x), \(y) is not masked")
            return
          }
        } else if !masks.contains(where: { $0.covers(x, y, margin: 8) }) {
          guard hidden.luma(x, y) == shown.luma(x, y), hidden.chroma(x, y) == shown.chroma(x, y) else {
            Issue.record("\(image.file), \(masks): pixel \(x), \(y) changed")
            return
          }
        }
      }
    }
  }

  @Test(arguments: images.map(\.file))
  func invalidMaskHidesTheWholePicture(image: String) throws {
    let picture = try Samples(
      try decoder.picture(from: try Fixture(image).bytes(), masks: .everything(because: "of a test")))
    #expect(picture.planes.prefix(picture.width * picture.height).allSatisfy { $0 == 16 })
    #expect(picture.planes.dropFirst(picture.width * picture.height).allSatisfy { $0 == 128 })
  }

  /// Content under a layer's mask does not affect the picture, at any scale of the layer.
  @Test(arguments: 1...60)
  func maskedPixelsOfALayerMakeNoDifference(seed: Int) throws {
    var random = Random(seed: seed)
    let (width, height) = (Int(random.int(8...90)), Int(random.int(8...90)))
    let (left, top) = (Int(random.int(0...Int64(width - 4))), Int(random.int(0...Int64(height - 4))))
    let columns = left..<left + Int(random.int(1...Int64(width - left)))
    let rows = top..<top + Int(random.int(1...Int64(height - top)))
    let opacities = (0..<width * height).map { _ in UInt8(random.once(in: 2) ? 255 : 128) }
    func pixels(_ secret: [UInt8]) -> [UInt8] {
      opacities.enumerated().flatMap { index, opacity in
        columns.contains(index % width) && rows.contains(index / width) ? secret : [0, 160, 0, opacity]
      }
    }
    let size = random.once(in: 3) ? nil : PixelSize(width: Int(random.int(4...200)), height: Int(random.int(4...200)))
    let mask = Mask(
      x: Double(columns.lowerBound), y: Double(rows.lowerBound), width: Double(columns.count),
      height: Double(rows.count)
    ).scaled(Double(size?.width ?? width) / Double(width), Double(size?.height ?? height) / Double(height))
    let layer = Layer(
      raw: RawPixels(
        format: .rgba, alpha: .straight, size: PixelSize(width: width, height: height), bytesPerRow: 4 * width,
        alphaBytesPerRow: width),
      x: Int(random.int(-20...60)), y: Int(random.int(-20...60)), size: size, opacity: Double(random.int(1...4)) / 4,
      masks: .rectangles([mask]))
    let look = FrameComposition(content: .layers([layer], width: 120, height: 100), masks: .none)
    let pictures = try [[255, 0, 0, 255], [0, 0, 255, 60]].map { try decoder.picture(from: [pixels($0)], look) }
    #expect(try pictures[0].picture.bytes == pictures[1].picture.bytes)
  }
}

extension Colour {
  fileprivate var everywhere: Mask { Mask(x: 0, y: 0, width: 1e6, height: 1e6, colour: self) }
}

extension Mask {
  fileprivate func covers(_ x: Int, _ y: Int, margin: Int) -> Bool {
    let (left, top) = (self.x.rounded(.down), self.y.rounded(.down))
    let (right, bottom) = ((self.x + width).rounded(.up), (self.y + height).rounded(.up))
    let margin = Double(margin)
    // A mask of zero width still covers the pixels that it crosses.
    return Double(x) >= left - margin && Double(x) < right + margin && Double(y) >= top - margin
      && Double(y) < bottom + margin
  }
}
