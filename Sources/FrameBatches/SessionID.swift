/// A session's name: 1–128 of `A–Z a–z 0–9 . _ -`, not starting with a dot, so that it can be a directory's name.
public struct SessionID: Sendable, Hashable, CustomStringConvertible {
  /// The rule that a refused session ID breaks.
  public static let rule = "use 1 to 128 of A–Z a–z 0–9 . _ -, not starting with a dot"

  /// The ID as text.
  public let description: String

  /// Creates an ID; nil if the text breaks ``rule``. Invalid IDs are refused, never changed.
  public init?(_ text: String) {
    let allowed = { (byte: UInt8) in
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy(allowed), !text.hasPrefix(".") else { return nil }
    description = text
  }
}
