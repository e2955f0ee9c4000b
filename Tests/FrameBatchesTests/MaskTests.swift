import Testing

@testable import FrameBatches
@testable import JSON

@Suite struct MaskTests {
  private func masks(_ json: String, batch: String = "{}") throws -> Masks {
    Masks(
      try JSONParser.parse(Array(json.utf8)), in: NativeUnits(try JSONParser.parse(Array(batch.utf8)), limits: Limits())
    )
  }

  @Test func rectanglesAreRoundedOutwardsAndClipped() {
    let mask = Mask(x: 1.2, y: 3, width: 4.5, height: 0.1)
    let pixels = mask.pixels(width: 100, height: 100)
    #expect(pixels.x == 1..<6)
    #expect(pixels.y == 3..<4)
    let large = Mask(x: -5, y: 90, width: 1_000, height: 1e300).pixels(width: 50, height: 100)
    #expect(large.x == 0..<50)
    #expect(large.y == 90..<100)
    #expect(Mask(x: 200, y: 0, width: 5, height: 5).pixels(width: 100, height: 100).x.isEmpty)
  }

  /// -∞ + ∞ is not a number. Fuzzing found this case.
  @Test func maskThatOverflowsWhenScaledHidesItsPossibleArea() {
    let mask = Mask(x: -1e308, y: 0, width: 1e308, height: 1)
    #expect(mask.pixels(width: 100, height: 100).x == 0..<0)
    #expect(mask.scaled(16, 16).pixels(width: 100, height: 100).x == 0..<100)
  }

  @Test(arguments: [
    #"[{"x":NaN,"y":0,"width":1,"height":1}]"#, #"[{"x":0,"y":0,"width":Infinity,"height":1}]"#,
    #"[{"x":0,"y":0,"width":1}]"#, #"[{"x":0,"y":"0","width":1,"height":1}]"#,
    #"[{"x":0,"y":0,"width":1e999,"height":1}]"#,
    #"[{"x":0,"y":0,"width":-1,"height":1}]"#, #"[null]"#, #"[[1,2,3,4]]"#, #"{"x":0}"#, #""all""#, "null", "1",
    #"[{"x":0,"y":0,"width":1,"height":1},{}]"#, #"[{"x":1e308,"y":0,"width":1e308,"height":1}]"#,
    #"[{"x":-8.988465674311579e307,"y":0,"width":1.7976931348623157e308,"height":1}]"#,
    #"[{"x":-100000000000000000000,"y":0,"width":100000000000000000064,"height":1}]"#,
  ])
  func aMaskThatCannotBeAppliedHidesEverything(json: String) throws {
    guard case .everything = try masks(json) else {
      Issue.record("\(json) was accepted")
      return
    }
  }

  @Test func validMasksAreAccepted() throws {
    #expect(try masks("[]") == .none)
    #expect(
      try masks(#"[{"x":1,"y":2,"width":3,"height":4.5}]"#) == .rectangles([Mask(x: 1, y: 2, width: 3, height: 4.5)]))
  }

  /// Recorders that measure in points state the pixels per point. An invalid scale hides the whole picture.
  @Test func masksMayBeInPoints() throws {
    func scaled(_ scale: String) throws -> Masks {
      try masks(#"[{"x":1.5,"y":2,"width":3,"height":4.25}]"#, batch: #"{"scale":\#(scale)}"#)
    }
    #expect(try scaled("2") == .rectangles([Mask(x: 3, y: 4, width: 6, height: 8.5)]))
    #expect(try scaled("1.25") == .rectangles([Mask(x: 1.875, y: 2.5, width: 3.75, height: 5.3125)]))
    for scale in ["0", "-1", "17", "NaN", "Infinity", "\"2\"", "null", "[]"] {
      guard case .everything = try scaled(scale) else {
        Issue.record("scale \(scale)")
        continue
      }
    }
  }

  @Test func masksMayHaveAColour() throws {
    let one = #"[{"x":1,"y":2,"width":3,"height":4}]"#
    let grey = Colour(red: 128, green: 128, blue: 128)
    #expect(
      try masks(one, batch: ##"{"maskColor":"#808080"}"##)
        == .rectangles([Mask(x: 1, y: 2, width: 3, height: 4, colour: grey)]))
    #expect(
      try masks(
        ##"[{"x":1,"y":2,"width":3,"height":4,"color":"FF0000"}]"##, batch: ##"{"maskColor":"#808080"}"##)
        == .rectangles([Mask(x: 1, y: 2, width: 3, height: 4, colour: Colour(red: 255, green: 0, blue: 0))]))
    for colour in ["7", "null", "\"red\"", "\"#12345\"", "[]"] {
      guard case .everything = try masks(one, batch: #"{"maskColor":\#(colour)}"#) else {
        Issue.record("maskColor \(colour)")
        continue
      }
    }
  }
}
