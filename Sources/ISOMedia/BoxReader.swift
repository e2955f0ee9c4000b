// Boxes and tables of a segment's file in memory. Every read is bounded by the box that contains it.

import FileSystem

/// The body of a box, or a whole file (ISO/IEC 14496-12, 4.2).
package struct BoxReader {
  package let bytes: ArraySlice<UInt8>

  package init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// The boxes that fill this one.
  private func boxes() throws(SegmentMismatch) -> [(type: String, body: BoxReader)] {
    var boxes: [(type: String, body: BoxReader)] = []
    var rest = bytes
    while !rest.isEmpty {
      let size = try BoxReader(rest).number(at: 0)
      guard size >= 8, size <= rest.count else { throw SegmentMismatch("a box of another size") }
      let type = String(decoding: rest.dropFirst(4).prefix(4), as: UTF8.self)
      boxes.append((type, BoxReader(rest.prefix(size).dropFirst(8))))
      rest = rest.dropFirst(size)
    }
    return boxes
  }

  /// The boxes that fill this one, which must have these types.
  package func children(_ types: String...) throws(SegmentMismatch) -> [BoxReader] { try children(types) }

  package func children(_ types: [String]) throws(SegmentMismatch) -> [BoxReader] {
    let boxes = try boxes()
    guard boxes.map(\.type) == types else {
      throw SegmentMismatch("\(boxes.map(\.type).joined(separator: ", ")) instead of \(types.joined(separator: ", "))")
    }
    return boxes.map(\.body)
  }

  package func all(_ type: String) throws(SegmentMismatch) -> [BoxReader] {
    try boxes().filter { $0.type == type }.map(\.body)
  }

  package func first(_ type: String) throws(SegmentMismatch) -> BoxReader {
    guard let first = try all(type).first else { throw SegmentMismatch("no \(type)") }
    return first
  }

  package func skipping(_ count: Int) throws(SegmentMismatch) -> BoxReader {
    guard bytes.count >= count else { throw SegmentMismatch("a box that is too small") }
    return BoxReader(bytes.dropFirst(count))
  }

  /// Reads a big-endian number of `count` bytes.
  package func number(at offset: Int, bytes count: Int = 4) throws(SegmentMismatch) -> Int {
    guard offset >= 0, offset + count <= bytes.count else { throw SegmentMismatch("a box that is too small") }
    return (bytes.startIndex + offset..<bytes.startIndex + offset + count).reduce(0) { $0 << 8 | Int(bytes[$1]) }
  }

  /// Reads a table row by row. It must fill the box.
  ///
  /// - Parameter offset: where the number of its rows is; version and flags come first.
  package func numbers(columns: Int = 1, at offset: Int = 4) throws(SegmentMismatch) -> [Int] {
    let count = try number(at: offset) * columns
    guard try number(at: 0) == 0, bytes.count == offset + 4 + count * 4 else {
      throw SegmentMismatch("a table of another size or kind")
    }
    var numbers: [Int] = []
    for index in 0..<count { numbers.append(try number(at: offset + 4 + index * 4)) }
    return numbers
  }

  /// Reads the duration in a header that has a timescale.
  package func duration() throws(SegmentMismatch) -> Int {
    let scale = try number(at: isLong ? 20 : 12)
    guard scale == MediaTime.timescale else { throw SegmentMismatch("a timescale is \(scale)") }
    return try duration(at: 16)
  }

  /// - Parameter offset: the position of the duration in a header with 32-bit times.
  package func duration(at offset: Int, flags: Int = 0) throws(SegmentMismatch) -> Int {
    guard try [0, 1].contains(number(at: 0, bytes: 1)), try number(at: 1, bytes: 3) == flags else {
      throw SegmentMismatch("a header of another kind")
    }
    // Creation and modification come before it.
    return try isLong ? number(at: offset + 8, bytes: 8) : number(at: offset)
  }

  private var isLong: Bool { bytes.first == 1 }
}

/// A written segment that does not read back as intended.
package struct SegmentMismatch: ClassifiedError {
  package var kind: Failure.Kind { .input }
  package let description: String

  package init(_ cause: String) { description = "the written segment does not read back as it was meant: \(cause)" }
}
