@testable import FrameBatches
@testable import JSON

/// Any text as JSON.
enum JSONFuzzing {
  static func parse(_ bytes: [UInt8]) {
    guard let value = try? JSONParser.parse(bytes) else { return }
    for isPretty in [false, true] {
      require((try? JSONParser.parse(value.bytes(pretty: isPretty))) == value, "what is written is read as it was")
    }
    visit(value)
  }

  private static func visit(_ value: JSONValue) {
    if let integer = value.integer, let double = value.double {
      require(Double(integer) == double, "one number, whatever it is taken for")
    }
    _ = Masks(value, in: NativeUnits(value, limits: FuzzTarget.limits))
    for member in value.array ?? value.object.map({ Array($0.values) }) ?? [] { visit(member) }
  }
}
