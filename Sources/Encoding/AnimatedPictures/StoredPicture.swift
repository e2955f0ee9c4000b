/// A picture as it is stored, without its hold.
package struct StoredPicture: Equatable {
  private let bytes: [UInt8]
  /// Where the hold is, the lowest byte first.
  private let holdRange: Range<Int>

  init(_ bytes: [UInt8], holdAt offset: Int, size: Int) {
    self.bytes = bytes
    holdRange = offset..<offset + size
  }

  package var count: Int { bytes.count }

  /// Returns the bytes with a hold in units of the format, which has room for it.
  package func held(for hold: Int64) -> [UInt8] {
    var bytes = bytes
    for (place, index) in holdRange.enumerated() { bytes[index] = UInt8(truncatingIfNeeded: hold >> (8 * place)) }
    return bytes
  }
}
