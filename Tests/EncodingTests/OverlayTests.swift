import CFFmpeg
import FrameBatches
import TestSupport
import Testing

@testable import Encoding

/// The places of an overlay's texts, and their pixels.
@Suite struct OverlayTests {
  private static let clock = ["2026-01-08 09:05:12 +01:00", "09:05:12 +01:00", "09:05:12"]

  private static func layout(
    _ width: Int, _ height: Int, name: String? = nil, events: String? = nil, caption: String? = nil
  ) -> OverlayLayout {
    OverlayLayout(
      OverlayTexts(clock: clock, name: name, events: events, caption: caption),
      in: PixelSize(width: width, height: height))
  }

  private static func texts(_ layout: OverlayLayout) -> [String] {
    layout.boxes.map { String(decoding: $0.text, as: UTF8.self) }
  }

  private static func texts(in width: Int, _ height: Int, name: String? = nil, events: String? = nil) -> [String] {
    texts(layout(width, height, name: name, events: events))
  }

  /// A picture of another colour in each pixel.
  private static func picture(_ width: Int, _ height: Int) throws -> Picture {
    let frame = try FrameBuffer(width: width, height: height, format: AV_PIX_FMT_YUV420P)
    for index in 0..<3 {
      let (start, stride) = frame.plane(index)
      let (columns, rows) = index == 0 ? (width, height) : ((width + 1) / 2, (height + 1) / 2)
      for row in 0..<rows {
        for column in 0..<columns { start[row * stride + column] = UInt8(20 + (7 * column + 13 * row + index) % 200) }
      }
    }
    return try Picture(adopting: frame)
  }

  private static func sample(_ picture: Picture, _ plane: Int, _ x: Int, _ y: Int) -> UInt8 {
    let (start, stride) = picture.buffer.plane(plane)
    return start[y * stride + x]
  }

  @Test func boxesAreInThePictureAndDoNotMeet() {
    for (width, height) in [(375, 667), (750, 1_334), (1_334, 750), (1_921, 1_081), (180, 320), (64, 64), (53, 21)] {
      let layout = Self.layout(width, height, name: "walk", events: "down 1,2; 12 moves", caption: "Add to cart")
      for (index, box) in layout.boxes.enumerated() {
        let area = box.area
        #expect(area.x >= 0 && area.y >= 0 && area.x + area.width <= width && area.y + area.height <= height)
        #expect([area.x, area.y, area.width, area.height].allSatisfy { $0 % 2 == 0 }, "\(area)")
        #expect(box.origin.x + BitmapFont.advance * box.scale * box.text.count <= area.x + area.width)
        for other in layout.boxes[..<index].map(\.area) {
          let isBeside = other.x + other.width <= area.x || area.x + area.width <= other.x
          #expect(isBeside || other.y + other.height <= area.y || area.y + area.height <= other.y)
        }
      }
    }
  }

  /// Seven rows of a letter's pixels make a digit.
  @Test func digitsAreTwelvePixelsHighWhereThePictureIsShown375Wide() {
    for width in 60...4_096 {
      guard let scale = Self.layout(width, 2_000).boxes.first?.scale else {
        Issue.record("no clock in \(width) pixels")
        return
      }
      #expect(7 * scale * 375 >= 12 * width)
    }
  }

  @Test func clockIsShortenedUntilItFits() {
    #expect(Self.texts(in: 375, 667) == [Self.clock[0]])
    #expect(Self.texts(in: 180, 320) == [Self.clock[0]])
    #expect(Self.texts(in: 120, 320) == [Self.clock[1]])
    #expect(Self.texts(in: 60, 60) == [Self.clock[2]])
  }

  @Test func nameIsBesideTheClockOrAboveIt() {
    let beside = Self.layout(375, 667, name: "ab").boxes
    #expect(beside.map(\.area.y) == [beside[0].area.y, beside[0].area.y])
    #expect(beside[1].area.x + beside[1].area.width == 370)
    let above = Self.layout(375, 667, name: "a-long-name", events: "up 1,2").boxes
    #expect(above.map { $0.area.y - above[0].area.y } == [0, -22, -44])
  }

  @Test func longTextIsCutAtThePicturesWidth() {
    let long = String(repeating: "abcd", count: 32)
    #expect(Self.texts(in: 180, 320, name: long)[1] == long.prefix(26) + "...")
    #expect(Self.texts(in: 180, 320, events: "down – \u{1F600}\n").last == "down ? ??")
  }

  @Test func partsWithoutRoomAreOmitted() {
    #expect(Self.layout(16, 16, name: "walk", events: "up 1,2").omitted == [.clock, .name, .events])
    #expect(Self.layout(16, 16, name: "walk").boxes.isEmpty)
    #expect(Self.layout(180, 32, name: "walk", events: "up 1,2").omitted == [.events])
    #expect(Self.layout(180, 13, name: "walk").omitted == [.clock, .name])
    #expect(Self.layout(375, 667, name: "walk", events: "up 1,2").omitted.isEmpty)
  }

  @Test(arguments: [(375, 667), (374, 666), (750, 1_334), (181, 99), (60, 17)])
  func onlyTheBoxesChangeAndTheirLettersCanBeRead(width: Int, height: Int) throws {
    let plain = try Self.picture(width, height)
    let before = try Self.picture(width, height)
    let boxes = Self.layout(width, height, name: "~{Qg}|").boxes
    let drawn = try plain.overlaid(with: boxes)
    #expect(plain.looksLike(before))
    #expect((drawn.width, drawn.height) == (width, height))
    #expect((drawn.codedWidth, drawn.codedHeight) == (plain.codedWidth, plain.codedHeight))
    var wrong = 0
    for y in 0..<drawn.codedHeight {
      for x in 0..<drawn.codedWidth {
        let isBox = boxes.contains { box in
          (box.area.x..<box.area.x + box.area.width).contains(x)
            && (box.area.y..<box.area.y + box.area.height).contains(y)
        }
        let luma = Self.sample(drawn, 0, x, y)
        wrong += (isBox ? luma == 16 || luma == 235 : luma == Self.sample(plain, 0, x, y)) ? 0 : 1
        for plane in 1...2 {
          let wanted = isBox ? 128 : Self.sample(plain, plane, x / 2, y / 2)
          wrong += Self.sample(drawn, plane, x / 2, y / 2) == wanted ? 0 : 1
        }
      }
    }
    #expect(wrong == 0)
    for box in boxes {
      let text = OverlayReader(box, in: width).text(of: box.text.count) { Int(Self.sample(drawn, 0, $0, $1)) }
      #expect(text == String(decoding: box.text, as: UTF8.self))
    }
  }

  @Test func pictureWithoutTextsStaysTheSame() throws {
    let plain = try Self.picture(32, 32)
    #expect(try plain.overlaid(with: []) === plain)
  }

  /// An enlarged letter differs from the small one at corners only.
  @Test(arguments: [1, 2, 3, 4, 9]) func enlargedLettersKeepTheirShape(scale: Int) {
    for letter in UInt8(ascii: " ")...UInt8(ascii: "~") {
      for row in 0..<BitmapFont.rows {
        for column in 0..<BitmapFont.columns {
          let isSet = BitmapFont.isSet(letter, column: column, row: row)
          let equal = (0..<scale * scale).count { index in
            isSet
              == BitmapFont.isSet(
                letter, enlarged: scale, x: column * scale + index % scale, y: row * scale + index / scale)
          }
          #expect(2 * equal >= scale * scale, "\(letter) at \(column), \(row)")
        }
      }
    }
  }
}
