/// Reads big-endian numbers, one after another; nil at the end.
struct NumberReader {
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= rest.count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  /// - Parameter count: the bytes of the number, 0 to 8; without bytes it is 0.
  mutating func number(_ count: Int) -> Int? {
    guard let digits = bytes(count), count < 8 || digits.first.map({ $0 < 0x80 }) == true else { return nil }
    return digits.bigEndian
  }

  /// Reads the start of a full box (ISO/IEC 14496-12, 4.2).
  mutating func versionAndFlags() -> (version: Int, flags: Int)? {
    guard let version = number(1), let flags = number(3) else { return nil }
    return (version, flags)
  }
}
