import FileSystem

/// The order of names in which numbers count, and not their digits.
enum NaturalOrder {
  /// Returns a name with `#` for each run of digits. Those of a counter differ in numbers only.
  static func form(of name: String) -> String {
    var form: [UInt8] = []
    for byte in name.utf8 where !(byte.isDigit && form.last == UInt8(ascii: "#")) {
      form.append(byte.isDigit ? UInt8(ascii: "#") : byte)
    }
    return String(decoding: form, as: UTF8.self)
  }

  static func precedes(_ one: String, _ other: String) -> Bool {
    var (some, others) = (one.utf8[...], other.utf8[...])
    while let first = some.first, let second = others.first {
      guard first.isDigit, second.isDigit else {
        // A folder comes before the names that it begins.
        guard first == second else { return rank(first) < rank(second) }
        (some, others) = (some.dropFirst(), others.dropFirst())
        continue
      }
      let (number, otherNumber) = (some.prefix(while: \.isDigit), others.prefix(while: \.isDigit))
      let (digits, otherDigits) = (number.drop { $0 == 48 }, otherNumber.drop { $0 == 48 })
      guard digits.elementsEqual(otherDigits) else {
        return digits.count != otherDigits.count
          ? digits.count < otherDigits.count : digits.lexicographicallyPrecedes(otherDigits)
      }
      (some, others) = (some.dropFirst(number.count), others.dropFirst(otherNumber.count))
    }
    guard some.isEmpty, others.isEmpty else { return some.isEmpty }
    // Equal numbers with other zeros.
    return one.utf8.lexicographicallyPrecedes(other.utf8)
  }

  private static func rank(_ byte: UInt8) -> UInt8 { byte == UInt8(ascii: "/") ? 0 : byte }
}

extension UInt8 {
  /// Whether it is a decimal digit in ASCII.
  var isDigit: Bool { (48...57).contains(self) }
}
