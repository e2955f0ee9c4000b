// The frame rate in a sequence parameter set (ITU-T H.264, E.1.1). It decides nothing about our files, whose containers tell
// each instant. WebKitGTK and GStreamer take it for the duration of each sample where the container's are uneven.

extension ParameterSets {
  /// The same sets with one frame a second in place of the encoder's 90 000: fragments are then buffered as a whole by
  /// WebKitGTK's Media Source Extensions. Sets without a frame rate, or of another form than our encoder's, stay as they are.
  package var atOneFrameASecond: ParameterSets {
    guard let place = Self.timingPlace(in: sequence) else { return self }
    var (reader, writer) = (BitReader(unit: sequence), BitWriter())
    func copy(_ count: Int) { for _ in 0..<count { writer.put(reader.flag()) } }
    copy(place)
    // Units in a tick and ticks a second, of which a frame has two.
    for value in [1, 2] {
      _ = reader.bits(32)
      writer.put(value, bits: 32)
    }
    copy(reader.bitCount - reader.position)
    return ParameterSets(sequence: writer.unit, picture: picture)
  }

  /// Returns where the two numbers of the frame rate are, in bits from the start of the unit; nil where there are none.
  private static func timingPlace(in unit: [UInt8]) -> Int? {
    var reader = BitReader(unit: unit)
    _ = reader.bits(8)
    let profile = reader.bits(8)
    _ = (reader.bits(16), reader.unsigned())  // constraints and level, number
    if profile >= 100 {
      let formats = (reader.unsigned(), reader.unsigned(), reader.unsigned())
      // 4:2:0 of 8 bits, neither lossless nor with scaling lists.
      guard formats == (1, 0, 0), !reader.flag(), !reader.flag() else { return nil }
    }
    _ = reader.unsigned()  // bits of a frame's number
    guard reader.unsigned() == 2 else { return nil }  // pictures are in the order of their numbers
    _ = (reader.unsigned(), reader.flag(), reader.unsigned(), reader.unsigned())  // references, gaps, columns, rows
    guard reader.flag() else { return nil }  // frames, no fields
    _ = reader.flag()
    if reader.flag() { for _ in 0..<4 { _ = reader.unsigned() } }  // cropping
    guard reader.flag() else { return nil }  // no usability information
    if reader.flag(), reader.bits(8) == 255 { _ = reader.bits(32) }  // sample aspect ratio
    if reader.flag() { _ = reader.flag() }  // overscan
    if reader.flag() {
      _ = reader.bits(4)
      if reader.flag() { _ = reader.bits(24) }  // primaries, transfer, matrix
    }
    if reader.flag() { _ = (reader.unsigned(), reader.unsigned()) }  // place of chroma
    guard reader.flag(), reader.position + 64 <= reader.bitCount else { return nil }
    return reader.position
  }
}
