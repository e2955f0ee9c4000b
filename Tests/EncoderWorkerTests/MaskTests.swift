import Foundation
import TestSupport
import Testing

/// What stock ffmpeg sees of masked pictures, turned in every way, next to the same pictures without masks.
@Suite struct MaskTests {
  private static let (width, height) = (180, 320)

  private struct Rectangle {
    let x: Double
    let y: Double
    let width: Double
    let height: Double

    init(_ random: inout Random) {
      func length(_ range: ClosedRange<Int64>) -> Double { Double(random.int(range)) / 8 }
      (x, y, width, height) = (length(-200...1_400), length(-200...2_500), length(0...600), length(0...600))
    }

    func json(scale: Double) -> String {
      #"{"x":\#(x / scale),"y":\#(y / scale),"width":\#(width / scale),"height":\#(height / scale)}"#
    }

    /// Whether it has a part in the pixel, or in one so near.
    func covers(_ column: Int, _ row: Int, margin: Int) -> Bool {
      func meets(_ start: Double, _ length: Double, _ pixel: Int) -> Bool {
        Double(pixel) >= start.rounded(.down) - Double(margin)
          && Double(pixel) < (start + length).rounded(.up) + Double(margin)
      }
      return meets(x, width, column) && meets(y, height, row)
    }
  }

  @Test(arguments: [1.0, 1.25, 2, 3])
  func noMaskedPixelIsSeenAndNoOtherBlockIsTouched(scale: Double) throws {
    let scratch = try ScratchDirectory()
    var random = Random(seed: Int(scale * 100))
    var frames: [[Rectangle]] = []
    var lists: [String: [String]] = ["plain": [], "masked": []]
    for name in lists.keys { _ = try scratch.directory(name) }
    for tag in 1...8 {
      // Stored as the tag wants it, so that what is shown is upright.
      let stored = scratch.path("stored.jpg")
      try Tool.output(
        "ffmpeg",
        [
          "-v", "error", "-y", "-i", Fixture("exact-1fps").path + "/000\(tag).jpg", "-vf",
          OrientationTests.storing[tag - 1], "-map_metadata", "-1", "-q:v", "1", stored,
        ])
      let file = OrientedImage.file(
        Array(try Data(contentsOf: URL(fileURLWithPath: stored))), kind: "jpg", tag: tag, width: Self.width,
        height: Self.height)
      let rectangles = (0..<random.int(1...4)).map { _ in Rectangle(&random) }
      frames.append(rectangles)
      for name in lists.keys {
        try scratch.file("\(name)/\(tag).jpg", file)
        let masks = name == "plain" ? "" : rectangles.map { $0.json(scale: scale) }.joined(separator: ",")
        lists[name]?.append(#"{"file":"\#(tag).jpg","timeMs":\#(1_767_859_512_340 + 1_000 * tag),"masks":[\#(masks)]}"#)
      }
    }
    var pictures: [String: [Pixels]] = [:]
    for (name, list) in lists {
      let text = #"{"version":1,"scale":\#(scale),"maskColor":"4060a0","frames":[\#(list.joined(separator: ","))]}"#
      try scratch.file("\(name)/batch.json", Array(text.utf8))
      let result = try EncoderWorker.run(
        "encode", scratch.path(name), "--output", scratch.path("output"), "--quality", "sharp")
      try #require(result.status == 0, "\(result.errors)")
      let session = try PublishedSession(scratch.path("output/\(name)"))
      pictures[name] = try session.manifests.flatMap {
        try Pixels.decode(session.video($0), width: Self.width, height: Self.height)
      }
    }
    let (plain, masked) = (try #require(pictures["plain"]), try #require(pictures["masked"]))
    try #require(plain.count == 8 && masked.count == 8)
    for (index, rectangles) in frames.enumerated() {
      try Self.expect(masked[index], like: plain[index], but: rectangles, "picture \(index)")
    }
  }

  private static func expect(
    _ masked: Pixels, like plain: Pixels, but rectangles: [Rectangle], _ what: String
  ) throws {
    var edge = 0
    var inside = 0
    for y in 0..<height {
      for x in 0..<width where rectangles.contains(where: { $0.covers(x, y, margin: 0) }) {
        let difference = zip(masked[x, y], [0x40, 0x60, 0xA0]).map { abs(Int($0) - $1) }.max() ?? 255
        edge = max(edge, difference)
        if rectangles.contains(where: { $0.covers(x, y, margin: -8) }) { inside = max(inside, difference) }
      }
    }
    // Coding rings where a mask meets text; what was under it would differ by 100 and more.
    #expect(edge <= 80 && inside <= 12, "\(what): \(edge), \(inside)")
    for top in stride(from: 0, to: height, by: 16) {
      for left in stride(from: 0, to: width - 16, by: 16) {
        let block = (0..<256).map { (x: left + $0 % 16, y: top + $0 / 16) }
        guard !block.contains(where: { pixel in rectangles.contains { $0.covers(pixel.x, pixel.y, margin: 8) } }) else {
          continue
        }
        let sum = block.map { pixel in
          zip(masked[pixel.x, pixel.y], plain[pixel.x, pixel.y]).map { abs(Int($0) - Int($1)) }.reduce(0, +)
        }.reduce(0, +)
        #expect(Double(sum) / 768 < 6, "\(what): block at \(left), \(top)")
      }
    }
  }
}
