// Open bitstream units (OBU) of an AV1 stream (AV1 Bitstream & Decoding Process Specification, 5.3). Every read is bounded by the stream.

struct OpenBitstreamUnit {
  /// The kinds that we use (6.2.2).
  enum Kind: UInt8 {
    case sequenceHeader = 1
    case temporalDelimiter = 2
    case padding = 15
  }

  /// nil for any other kind.
  let kind: Kind?
  /// The unit with its header and its size.
  let bytes: ArraySlice<UInt8>
  /// The unit without them.
  let payload: ArraySlice<UInt8>

  /// Splits a stream.
  ///
  /// - Returns: nil unless units with sizes fill it.
  static func split(_ stream: ArraySlice<UInt8>) -> [OpenBitstreamUnit]? {
    var (units, rest): ([OpenBitstreamUnit], ArraySlice<UInt8>) = ([], stream)
    while let header = rest.first {
      // A forbidden bit, and a unit without a size.
      guard header & 0x80 == 0, header & 0x02 != 0 else { return nil }
      let behindHeader = rest.dropFirst(header & 0x04 == 0 ? 1 : 2)
      guard let (size, count) = number(behindHeader), size <= behindHeader.count - count else { return nil }
      let payload = behindHeader.dropFirst(count).prefix(size)
      units.append(
        OpenBitstreamUnit(
          kind: Kind(rawValue: header >> 3 & 0x0F), bytes: rest[rest.startIndex..<payload.endIndex], payload: payload))
      rest = rest[payload.endIndex...]
    }
    return units
  }

  /// Reads leb128() (4.10.5), in the four bytes that a sample's size needs.
  private static func number(_ bytes: ArraySlice<UInt8>) -> (value: Int, count: Int)? {
    var value = 0
    for (index, byte) in bytes.prefix(4).enumerated() {
      value |= Int(byte & 0x7F) << (7 * index)
      if byte & 0x80 == 0 { return (value, index + 1) }
    }
    return nil
  }
}

package enum AV1Sample {
  /// Returns a temporal unit as a sample: without delimiters and padding (AV1 in ISOBMFF, 2.4).
  ///
  /// - Throws: ``SegmentMismatch`` if it is none.
  package static func bytes(ofTemporalUnit unit: [UInt8]) throws(SegmentMismatch) -> [UInt8] {
    guard let units = OpenBitstreamUnit.split(unit[...]) else { throw SegmentMismatch("no AV1 temporal unit") }
    let kept = units.filter { $0.kind != .temporalDelimiter && $0.kind != .padding }
    guard !kept.isEmpty else { throw SegmentMismatch("an empty AV1 temporal unit") }
    return kept.flatMap(\.bytes)
  }
}

/// The fields of a sequence header that a container repeats (AV1, 5.5.1), of streams in one layer without decoder timing.
struct AV1SequenceHeader {
  let profile: Int
  let level: Int
  let tier: Int

  /// - Parameter payload: of the unit.
  /// - Returns: nil for other streams than our encoder's: not 4:2:0 of 8 bits.
  init?(_ payload: ArraySlice<UInt8>) {
    guard payload.count >= 6 else { return nil }
    var reader = BitReader(bytes: payload.prefix(64))
    profile = reader.bits(3)
    // No still picture, no reduced header, no timing, no display delay.
    guard profile == 0, !reader.flag(), !reader.flag(), !reader.flag(), !reader.flag(), reader.bits(5) == 0 else {
      return nil
    }
    _ = reader.bits(12)
    level = reader.bits(5)
    tier = level > 7 ? reader.bits(1) : 0
    guard Self.isOrdinary420(&reader) else { return nil }
  }

  /// - Parameter reader: before the size of frames.
  private static func isOrdinary420(_ reader: inout BitReader) -> Bool {
    let (widthBits, heightBits) = (reader.bits(4) + 1, reader.bits(4) + 1)
    _ = (reader.bits(widthBits), reader.bits(heightBits))
    guard !reader.flag() else { return false }  // frame numbers
    _ = reader.bits(3)  // superblocks, filters within pictures
    _ = reader.bits(4)  // compound tools
    let hasOrder = reader.flag()
    if hasOrder { _ = reader.bits(2) }
    // Tools for screen contents, and whole motion vectors: 2 for a choice in each picture.
    let screenTools = reader.flag() ? 2 : reader.bits(1)
    if screenTools > 0, !reader.flag() { _ = reader.bits(1) }
    if hasOrder { _ = reader.bits(3) }
    _ = reader.bits(3)  // super resolution, and two filters
    return !reader.flag() && !reader.flag()  // 8 bits, not monochrome
  }
}
