/// Base64 (RFC 4648, section 4) as recorders write images and webhooks write keys.
package enum Base64 {
  /// Decodes a text; returns nil if it is not base64.
  package static func decode(_ text: String) -> [UInt8]? { decode(text.utf8[...]) }

  /// Returns the text for these bytes, with padding.
  package static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
      for digit in 0..<4 {
        text.append(digit <= group.count ? digits[Int(bits >> UInt32(18 - 6 * digit) & 63)] : UInt8(ascii: "="))
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes an image, with or without a `data:` URI before it.
  ///
  /// - Returns: nil for a text that is not base64.
  static func image(_ text: String) -> [UInt8]? {
    guard text.hasPrefix("data:") else { return decode(text.utf8[...]) }
    guard let comma = text.utf8.prefix(128).firstIndex(of: UInt8(ascii: ",")),
      text.utf8[..<comma].suffix(7).elementsEqual(";base64".utf8)
    else { return nil }
    return decode(text.utf8[comma...].dropFirst())
  }

  private static func decode(_ text: Substring.UTF8View) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3 + 3)
    var (group, digits, padding) = (UInt32(0), 0, 0)
    for character in text {
      let value = values[Int(character)]
      if value == Self.space { continue }
      if character == UInt8(ascii: "=") {
        padding += 1
        continue
      }
      guard value < 64, padding == 0 else { return nil }
      group = group << 6 | UInt32(value)
      digits += 1
      if digits % 4 == 0 {
        bytes.append(UInt8(truncatingIfNeeded: group >> 16))
        bytes.append(UInt8(truncatingIfNeeded: group >> 8))
        bytes.append(UInt8(truncatingIfNeeded: group))
      }
    }
    switch digits % 4 {
    case 2: bytes.append(UInt8(truncatingIfNeeded: group >> 4))
    case 3:
      bytes.append(UInt8(truncatingIfNeeded: group >> 10))
      bytes.append(UInt8(truncatingIfNeeded: group >> 2))
    case 1: return nil
    default: break
    }
    // Some writers leave the padding out.
    return padding == 0 || (digits + padding) % 4 == 0 ? bytes : nil
  }

  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  private static let space: UInt8 = 64

  /// The value of each character: a digit of base 64, ``space``, or 255.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, character) in digits.enumerated() { values[Int(character)] = UInt8(value) }
    for character in " \r\n\t".utf8 { values[Int(character)] = space }
    return values
  }()
}
