/// A colour in sRGB, 8 bits a channel.
public struct Colour: Sendable, Hashable, CustomStringConvertible {
  /// Red, 0 to 255.
  public let red: UInt8
  /// Green, 0 to 255.
  public let green: UInt8
  /// Blue, 0 to 255.
  public let blue: UInt8

  /// Black, `#000000`.
  public static let black = Colour(red: 0, green: 0, blue: 0)

  /// Creates a colour from its channels, 0 to 255 each.
  public init(red: UInt8, green: UInt8, blue: UInt8) {
    self.red = red
    self.green = green
    self.blue = blue
  }

  /// Reads six hexadecimal digits, with or without a `#` before them; nil for any other text.
  public init?(_ text: String) {
    let digits = text.hasPrefix("#") ? text.dropFirst() : text[...]
    guard digits.utf8.count == 6, digits.allSatisfy(\.isHexDigit), let value = UInt32(digits, radix: 16) else {
      return nil
    }
    self.init(red: UInt8(value >> 16), green: UInt8(value >> 8 & 255), blue: UInt8(value & 255))
  }

  /// The colour as `#` and six lower-case hexadecimal digits.
  public var description: String {
    let digits = String(UInt32(red) << 16 | UInt32(green) << 8 | UInt32(blue), radix: 16)
    return "#" + String(repeating: "0", count: 6 - digits.count) + digits
  }
}
