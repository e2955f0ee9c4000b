@testable import FrameBatches
@testable import JSON

/// Parses any text as JSON.
enum JSONFuzzing {
  static func parse(_ bytes: [UInt8]) {
    guard let value = try? JSONParser.parse(bytes) else { return }
    for isPretty in [false, true] {
      require((try? JSONParser.parse(value.bytes(pretty: isPretty))) == value, "the same value after writing")
    }
    visit(value)
  }

  private static func visit(_ value: JSONValue) {
    if let integer = value.integer, let double = value.double {
      require(Double(integer) == double, "the same number as an integer and as a double")
    }
    _ = Masks(value, in: NativeUnits(value, limits: FuzzTarget.limits))
    for member in value.array ?? value.object.map({ Array($0.values) }) ?? [] { visit(member) }
  }
}
