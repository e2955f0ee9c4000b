// Sequence parameter sets of our encoder (ITU-T H.264, 7.3.2.1.1 and E.1.1).

struct SequenceParameterSet {
  let id: Int
  let frameNumberBits: Int
  let references: Int
  /// The size of a picture in macroblocks.
  let columns: Int
  let rows: Int
  /// The position of the frame rate's two numbers, in bits from the start of the unit; nil without a frame rate.
  let frameRatePosition: Int?

  /// - Returns: nil for a set of another kind than our encoder's.
  init?(_ unit: [UInt8]) {
    var reader = BitReader(unit: unit)
    _ = reader.bits(8)
    let profile = reader.bits(8)
    _ = reader.bits(16)  // constraints and level
    id = reader.unsigned()
    if profile >= 100 {
      let formats = (reader.unsigned(), reader.unsigned(), reader.unsigned())
      // 4:2:0 of 8 bits, neither lossless nor with scaling lists.
      guard formats == (1, 0, 0), !reader.flag(), !reader.flag() else { return nil }
    }
    frameNumberBits = 4 + reader.unsigned()
    guard reader.unsigned() == 2 else { return nil }  // pictures are in the order of their numbers
    references = reader.unsigned()
    _ = reader.flag()  // gaps
    (columns, rows) = (reader.unsigned() + 1, reader.unsigned() + 1)
    guard reader.flag() else { return nil }  // frames, no fields
    frameRatePosition = Self.frameRatePosition(reader)
  }

  /// - Parameter reader: after the flag that says that pictures are frames.
  private static func frameRatePosition(_ reader: consuming BitReader) -> Int? {
    _ = reader.flag()
    if reader.flag() { for _ in 0..<4 { _ = reader.unsigned() } }  // cropping
    guard reader.flag() else { return nil }  // no usability information
    if reader.flag(), reader.bits(8) == 255 { _ = reader.bits(32) }  // sample aspect ratio
    if reader.flag() { _ = reader.flag() }  // overscan
    if reader.flag() {
      _ = reader.bits(4)
      if reader.flag() { _ = reader.bits(24) }  // primaries, transfer, matrix
    }
    if reader.flag() { _ = (reader.unsigned(), reader.unsigned()) }  // chroma location
    // The flag behind the two numbers says whether the rate is fixed.
    guard reader.flag(), reader.position + 65 <= reader.bitCount else { return nil }
    return reader.position
  }
}

extension ParameterSets {
  /// The same sets with one frame a second in place of the encoder's 90 000. Sets without a frame rate, or of another kind than
  /// our encoder's, are returned unchanged.
  ///
  /// The containers say when each picture is shown. But WebKitGTK and GStreamer take the frame rate for the duration of samples
  /// where the container's durations are uneven; with this rate WebKitGTK's Media Source Extensions buffer whole fragments.
  package var atOneFrameASecond: ParameterSets { at(framesASecond: 1) }

  /// The same sets with another frame rate; unchanged as ``atOneFrameASecond``.
  ///
  /// - Parameter isVariable: whether to withdraw the promise that all pictures are shown equally long.
  package func at(framesASecond rate: Int, isVariable: Bool = false) -> ParameterSets {
    guard let position = SequenceParameterSet(sequence)?.frameRatePosition else { return self }
    var (reader, writer) = (BitReader(unit: sequence), BitWriter())
    func copy(_ count: Int) { for _ in 0..<count { writer.put(reader.flag()) } }
    copy(position)
    // Units in a tick and ticks a second, of which a frame has two.
    for value in [1, 2 * rate] {
      _ = reader.bits(32)
      writer.put(value, bits: 32)
    }
    let isFixed = reader.flag()
    writer.put(isFixed && !isVariable)
    copy(reader.bitCount - reader.position)
    return ParameterSets(sequence: writer.unit, picture: picture)
  }
}
