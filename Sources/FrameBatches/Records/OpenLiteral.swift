import Glibc

/// A string in a text that is not read to its end.
struct OpenLiteral {
  let start: Int
  let isKey: Bool
  /// Whether the bytes before the current part end in a backslash that escapes.
  var isEscaped = false

  /// Whether the text up to the end of a range ends with an odd number of backslashes.
  func escapes(_ part: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> Bool {
    var first = range.upperBound
    while first > range.lowerBound, unsafe part[first - 1] == UInt8(ascii: "\\") { first -= 1 }
    let isOdd = (range.upperBound - first) % 2 == 1
    return first == range.lowerBound && isEscaped ? !isOdd : isOdd
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Returns the offset of an ASCII character in a range.
  func find(_ character: Unicode.Scalar, in range: Range<Int>) -> Int? {
    guard let start = baseAddress, !range.isEmpty,
      let found = unsafe memchr(start + range.lowerBound, Int32(character.value), range.count)
    else { return nil }
    return unsafe UnsafeRawPointer(found) - UnsafeRawPointer(start)
  }
}
