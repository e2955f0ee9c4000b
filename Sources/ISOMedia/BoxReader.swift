// Boxes and tables of a segment's file that is in memory, all of them bounded by what holds them.

/// The body of a box, or a whole file (ISO/IEC 14496-12, 4.2).
package struct BoxReader {
  package let bytes: ArraySlice<UInt8>

  package init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// The boxes that fill it, which have to be these.
  package func children(_ types: String...) throws(SegmentMismatch) -> [BoxReader] {
    var found: [BoxReader] = []
    var rest = bytes
    for type in types {
      let size = try BoxReader(rest).number(at: 0)
      guard size >= 8, size <= rest.count, rest.dropFirst(4).prefix(4).elementsEqual(type.utf8) else {
        throw SegmentMismatch("another box in the place of \(type)")
      }
      found.append(BoxReader(rest.prefix(size).dropFirst(8)))
      rest = rest.dropFirst(size)
    }
    guard rest.isEmpty else { throw SegmentMismatch("more behind \(types.last ?? "")") }
    return found
  }

  /// All boxes of a type among those that fill it.
  package func all(_ type: String) throws(SegmentMismatch) -> [BoxReader] {
    var (found, rest) = ([BoxReader](), bytes)
    while !rest.isEmpty {
      let size = try BoxReader(rest).number(at: 0)
      guard size >= 8, size <= rest.count else { throw SegmentMismatch("a box of another size") }
      if rest.dropFirst(4).prefix(4).elementsEqual(type.utf8) {
        found.append(BoxReader(rest.prefix(size).dropFirst(8)))
      }
      rest = rest.dropFirst(size)
    }
    return found
  }

  /// The first box of a type among those that fill it.
  package func first(_ type: String) throws(SegmentMismatch) -> BoxReader {
    guard let first = try all(type).first else { throw SegmentMismatch("no \(type)") }
    return first
  }

  package func skipping(_ count: Int) throws(SegmentMismatch) -> BoxReader {
    guard bytes.count >= count else { throw SegmentMismatch("a box that is too small") }
    return BoxReader(bytes.dropFirst(count))
  }

  /// Big-endian, of so many bytes.
  package func number(at offset: Int, bytes count: Int = 4) throws(SegmentMismatch) -> Int {
    guard offset >= 0, offset + count <= bytes.count else { throw SegmentMismatch("a box that is too small") }
    return (bytes.startIndex + offset..<bytes.startIndex + offset + count).reduce(0) { $0 << 8 | Int(bytes[$1]) }
  }

  /// A table, row by row, behind its version, flags and the number of its rows, which fill it.
  package func numbers(columns: Int = 1, at place: Int = 4) throws(SegmentMismatch) -> [Int] {
    let count = try number(at: place) * columns
    guard try number(at: 0) == 0, bytes.count == place + 4 + count * 4 else {
      throw SegmentMismatch("a table of another size or kind")
    }
    var numbers: [Int] = []
    for index in 0..<count { numbers.append(try number(at: place + 4 + index * 4)) }
    return numbers
  }

  /// The duration of a header that tells its timescale.
  package func duration() throws(SegmentMismatch) -> Int {
    let scale = try number(at: isLong ? 20 : 12)
    guard scale == MediaTime.timescale else { throw SegmentMismatch("a timescale is \(scale)") }
    return try duration(at: 16)
  }

  /// - Parameter offset: where it is in a header whose times have 32 bits.
  package func duration(at offset: Int, flags: Int = 0) throws(SegmentMismatch) -> Int {
    guard try [0, 1].contains(number(at: 0, bytes: 1)), try number(at: 1, bytes: 3) == flags else {
      throw SegmentMismatch("a header of another kind")
    }
    // Creation and modification come before it.
    return try isLong ? number(at: offset + 8, bytes: 8) : number(at: offset)
  }

  private var isLong: Bool { bytes.first == 1 }
}
