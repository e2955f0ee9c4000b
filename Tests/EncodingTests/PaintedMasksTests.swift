import FileSystem
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// The masks that manifests list: whole pixels of the published picture.
@Suite struct PaintedMasksTests {
  private static let size = PixelSize(width: 100, height: 60)

  private func listed(
    _ masks: [Mask], layers: [Layer] = [], of size: PixelSize = Self.size, as shown: PixelSize? = nil
  ) -> [PictureRegion] {
    let content: FrameComposition.Content =
      layers.isEmpty ? .image(nil) : .layers(layers, width: size.width, height: size.height)
    return FrameComposition(content: content, masks: Masks(masks)).paintedMasks(of: size, as: shown ?? size)
  }

  private func region(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> PictureRegion {
    PictureRegion(x: x, y: y, width: width, height: height)
  }

  @Test func masksAreWholePixelsOfThePicture() {
    #expect(listed([]) == [])
    #expect(listed([Mask(x: 10.5, y: 5, width: 20, height: 9.2)]) == [region(10, 5, 21, 10)])
    // A part outside of the picture, and masks that have no pixel.
    #expect(listed([Mask(x: -5, y: 50, width: 200, height: 1e9)]) == [region(0, 50, 100, 10)])
    #expect(listed([Mask(x: 100, y: 0, width: 5, height: 5), Mask(x: 5, y: 5, width: 0, height: 5)]) == [])
    // Equal ones are listed once, whatever their colours.
    let twice = [
      Mask(x: 1, y: 1, width: 4, height: 4),
      Mask(x: 1, y: 1, width: 4, height: 4, colour: Colour(red: 255, green: 0, blue: 0)),
    ]
    #expect(listed(twice) == [region(1, 1, 4, 4)])
  }

  @Test func maskThatCannotBeAppliedCoversThePicture() {
    #expect(listed([Mask(x: .nan, y: 0, width: 1, height: 1)]) == [region(0, 0, 100, 60)])
  }

  @Test func scaledMasksAreRoundedOutwards() {
    let half = PixelSize(width: 50, height: 30)
    #expect(listed([Mask(x: 3, y: 4, width: 4, height: 4)], as: half) == [region(1, 2, 3, 2)])
    #expect(listed([Mask(x: 99, y: 59, width: 1, height: 1)], as: half) == [region(49, 29, 1, 1)])
    let third = PixelSize(width: 33, height: 20)
    #expect(region(0, 0, 100, 60).scaled(from: Self.size, to: third) == region(0, 0, 33, 20))
    #expect(region(50, 30, 1, 1).scaled(from: Self.size, to: third) == region(16, 10, 1, 1))
  }

  @Test func masksOfLayersAreInThePicture() {
    func layer(_ size: PixelSize?) -> Layer {
      Layer(
        raw: nil, x: 90, y: -5, size: size, opacity: 1,
        masks: .rectangles([Mask(x: 2, y: 3, width: 50, height: 8)]))
    }
    #expect(listed([], layers: [layer(nil)]) == [region(92, 0, 8, 6)])
    // A mask ends with its layer.
    #expect(listed([], layers: [layer(PixelSize(width: 5, height: 6))]) == [region(92, 0, 3, 1)])
    #expect(
      listed([Mask(x: 0, y: 0, width: 1, height: 1)], layers: [layer(nil)]) == [
        region(0, 0, 1, 1), region(92, 0, 8, 6),
      ]
    )
  }

  @Test func numberOfAFrameHasALimit() {
    func many(_ count: Int) -> [Mask] {
      (0..<count).map { Mask(x: Double($0 % 50), y: Double($0 / 50), width: 2, height: 1) }
    }
    #expect(listed(many(PaintedMasks.maximumOfFrame)).count == PaintedMasks.maximumOfFrame)
    #expect(listed(many(PaintedMasks.maximumOfFrame + 1)) == [region(0, 0, 51, 6)])
  }

  @Test func unionListsEachOnce() {
    var union = PaintedMasks.Union()
    for _ in 0..<2 { for x in 0..<PaintedMasks.maximumOfFrame { union.add(region(x, 0, 2, 1)) } }
    #expect(union.masks.count == PaintedMasks.maximumOfFrame)
    union.add(region(400, 7, 1, 1))
    #expect(union.masks == [region(0, 0, 401, 8)])
    union.add(region(0, 9, 1, 1))
    #expect(union.masks == [region(0, 0, 401, 10)])
  }

  @Test func numberOfAManifestHasALimit() {
    let frame = [region(1, 2, 3, 4), region(10, 20, 30, 40)]
    let few = Array(repeating: frame, count: PaintedMasks.maximumOfManifest / 2)
    #expect(PaintedMasks.listed(few) == few)
    #expect(PaintedMasks.listed(few + [[], frame]).suffix(2) == [[], [region(1, 2, 39, 58)]])
  }

  @Test func masksAreReadAsTheyAreWritten() throws {
    let masks = [region(0, 0, 100, 60), region(99, 59, 1, 1)]
    let json = PaintedMasks.json(masks)
    #expect(
      json.line
        == #"[{"height":60,"width":100,"x":0,"y":0},{"height":1,"width":1,"x":99,"y":59}]"#)
    #expect(PaintedMasks.read(["masks": json], of: Self.size) == masks)
    #expect(PaintedMasks.read([:], of: Self.size) == [] && PaintedMasks.read(nil, of: Self.size) == [])
  }

  @Test(arguments: [
    #"{}"#, #"[1]"#, #"[{"x":0,"y":0,"width":101,"height":1}]"#, #"[{"x":-1,"y":0,"width":1,"height":1}]"#,
    #"[{"x":0,"y":0,"width":0,"height":1}]"#,
    #"[{"x":9223372036854775807,"y":0,"width":9223372036854775807,"height":1}]"#,
    #"[{"x":0.5,"y":0,"width":1,"height":1}]"#, #"[{"x":0,"y":0,"width":1}]"#,
  ])
  func othersAreNotRead(text: String) throws {
    #expect(PaintedMasks.read(["masks": try JSONParser.parse(Array(text.utf8))], of: Self.size) == [])
  }
}
