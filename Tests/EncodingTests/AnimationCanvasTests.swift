import CFFmpeg
import FrameBatches
import TestSupport
import Testing

@testable import Encoding

/// The macros of tests call no mutating functions.
private final class Screen {
  private var canvas: AnimationCanvas

  init(_ width: Int, _ height: Int, _ grain: AnimationCanvas.Grain) {
    canvas = AnimationCanvas(PixelSize(width: width, height: height), grain: grain)
  }

  func draw(_ picture: FrameBuffer) -> AnimationCanvas.Change? { canvas.draw(picture) }
}

/// The part of a picture that an animated picture draws.
@Suite struct AnimationCanvasTests {
  /// Returns a picture of RGB.
  private func picture(
    _ width: Int, _ height: Int, _ colour: (Int, Int) -> (Int, Int, Int)
  ) throws -> FrameBuffer {
    let bytes = (0..<height).flatMap { y in
      (0..<width).flatMap { x in
        let (red, green, blue) = colour(x, y)
        return [UInt8(red), UInt8(green), UInt8(blue)]
      }
    }
    return try FrameBuffer(unpacking: bytes, PixelSize(width: width, height: height), isRGB: true)
  }

  private func area(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> SheetArea {
    SheetArea(x: x, y: y, width: width, height: height)
  }

  @Test func firstPictureIsDrawnWhole() throws {
    let canvas = Screen(20, 10, .pixel)
    let change = try #require(canvas.draw(picture(20, 10) { x, y in (x, y, 7) }))
    #expect(change.area == area(0, 0, 20, 10) && change.isWhole)
    #expect(change.pixels[3 * 25..<3 * 26] == [5, 1, 7])
    #expect(try canvas.draw(picture(20, 10) { x, y in (x, y, 7) }) == nil)
  }

  @Test(arguments: [(0, 0, 1, 1), (17, 9, 3, 1), (3, 2, 13, 6)])
  func changedRectangleIsDrawn(x: Int, y: Int, width: Int, height: Int) throws {
    let canvas = Screen(20, 10, .pixel)
    _ = canvas.draw(try picture(20, 10) { _, _ in (200, 200, 200) })
    let next = try picture(20, 10) { column, row in
      (x..<x + width).contains(column) && (y..<y + height).contains(row) ? (200, 100, 200) : (200, 200, 200)
    }
    let change = try #require(canvas.draw(next))
    #expect(change.area == area(x, y, width, height) && change.isWhole)
    #expect(canvas.draw(next) == nil)
  }

  @Test func pixelsBetweenTwoChangesAreNotDrawn() throws {
    let canvas = Screen(40, 40, .pixel)
    _ = canvas.draw(try picture(40, 40) { _, _ in (0, 0, 0) })
    let corners = try picture(40, 40) { x, y in (x, y) == (2, 3) || (x, y) == (36, 30) ? (255, 255, 255) : (0, 0, 0) }
    let change = try #require(canvas.draw(corners))
    #expect(change.area == area(2, 3, 35, 28))
    #expect(change.isDrawn.enumerated().filter(\.element).map(\.offset) == [0, 35 * 28 - 1])
  }

  @Test func wholeBlocksAreDrawnWhereThatIsTheGrain() throws {
    let canvas = Screen(21, 21, .block)
    _ = canvas.draw(try picture(21, 21) { _, _ in (0, 0, 0) })
    let change = try #require(
      canvas.draw(picture(21, 21) { x, y in (x, y) == (10, 1) || (x, y) == (20, 20) ? (255, 0, 0) : (0, 0, 0) }))
    #expect(change.area == area(8, 0, 13, 21))
    #expect(change.isDrawn.count(where: { $0 }) == 8 * 8 + 5 * 5)
  }

  @Test func noiseThatNobodySeesIsNoChange() throws {
    var random = Random(seed: 6)
    func noisy() throws -> FrameBuffer {
      try picture(64, 64) { x, y in
        let level = (x / 8 + y / 8) % 2 == 0 ? 220 : 40
        return (level + Int(random.int(-3...3)), level + Int(random.int(-3...3)), level + Int(random.int(-3...3)))
      }
    }
    let canvas = Screen(64, 64, .pixel)
    #expect(canvas.draw(try noisy()) != nil)
    for _ in 0..<20 { #expect(canvas.draw(try noisy()) == nil) }
  }

  /// The squares have much contrast, where a coder makes larger errors than in plain areas.
  @Test func texturedPictureThatBrightensIsDrawn() throws {
    let canvas = Screen(64, 64, .pixel)
    for level in stride(from: 0, to: 45, by: 3) {
      let squares = try picture(64, 64) { x, y in
        let shade = ((x / 8 + y / 8) % 2 == 0 ? 200 : 40) + level
        return (shade, shade, shade)
      }
      #expect(canvas.draw(squares)?.isWhole == true, "\(level)")
    }
  }

  /// A letter that changes its form, and a paler button: a few units, all to one side.
  @Test func smallChangeOfAPageIsDrawn() throws {
    func page(_ letter: Int, _ button: Int) throws -> FrameBuffer {
      try picture(64, 64) { x, y in
        if (16..<32).contains(x), y < 8 { return (240, button, 240) }
        return (40..<44).contains(x) && y == 30 + letter ? (20, 20, 20) : (240, 240, 240)
      }
    }
    let canvas = Screen(64, 64, .pixel)
    _ = canvas.draw(try page(0, 240))
    let paler = try #require(canvas.draw(page(0, 237)))
    #expect(paler.area == area(16, 0, 16, 8))
    let changed = try #require(canvas.draw(page(1, 237)))
    #expect(changed.area == area(40, 30, 4, 2))
  }

  /// A slow fade is drawn before it is far from what is on screen.
  @Test func smallChangesThatAddUpAreDrawn() throws {
    let canvas = Screen(16, 16, .pixel)
    var shown = 100
    for level in 100...160 {
      if canvas.draw(try picture(16, 16) { _, _ in (level, level, level) }) != nil { shown = level }
      #expect(level - shown <= 2)
    }
  }

  @Test func smallerPictureLiesInTheMiddleOnBlack() throws {
    let canvas = Screen(10, 9, .pixel)
    let first = try #require(canvas.draw(picture(4, 9) { _, _ in (255, 255, 255) }))
    let bright = (0..<90).filter { first.pixels[3 * $0] == 255 }
    #expect(bright == (0..<90).filter { (3..<7).contains($0 % 10) })
    // The next one is wide: black replaces what it does not cover.
    let second = try #require(canvas.draw(picture(10, 3) { _, _ in (255, 255, 255) }))
    #expect(second.area == area(0, 0, 10, 9))
    #expect(second.pixels[3 * 4] == 0 && second.isDrawn[4] && !second.isDrawn[0])
  }
}
