// Pictures that repeat the one before: P slices in which every macroblock is skipped (ITU-T H.264, 7.3.3, 7.3.4, 9.3.4). They
// depend on the size of the picture and on their number only, so writing them here saves an encoder's look at every pixel.

/// Numbers a segment's pictures, and writes those that repeat the one before.
package struct SkipSliceWriter {
  private let pictureParameterSet: Int
  private let frameNumberBits: Int
  private let overridesReferenceCount: Bool
  private let qpDelta: Int
  private let controlsDeblocking: Bool
  private let macroblocks: Int

  /// - Throws: ``SegmentMismatch`` for streams of another kind than ours: one slice a picture, one reference, CABAC.
  package init(after sets: ParameterSets) throws(SegmentMismatch) {
    let mismatch = SegmentMismatch("the encoder's streams are of another kind")
    var picture = BitReader(unit: sets.picture)
    _ = picture.bits(8)
    pictureParameterSet = picture.unsigned()
    guard let sequence = SequenceParameterSet(sets.sequence), sequence.references == 1,
      sequence.frameNumberBits <= 16,
      max(sequence.columns, sequence.rows) <= 1_024, picture.unsigned() == sequence.id, picture.flag(), !picture.flag(),
      picture.unsigned() == 0
    else { throw mismatch }
    frameNumberBits = sequence.frameNumberBits
    macroblocks = sequence.columns * sequence.rows
    overridesReferenceCount = picture.unsigned() != 0
    _ = picture.unsigned()
    guard !picture.flag(), picture.bits(2) == 0 else { throw mismatch }
    qpDelta = Self.qp - 26 - picture.signed()
    _ = (picture.signed(), picture.signed())
    controlsDeblocking = picture.flag()
    guard !picture.flag(), !picture.flag() else { throw mismatch }
  }

  /// Returns a repeat as a NAL unit behind its length.
  ///
  /// - Parameter number: how many pictures of the segment come before it; not 0.
  package func picture(_ number: Int) -> [UInt8] {
    var slice = BitWriter()
    slice.put(0x41, bits: 8)  // a slice that later pictures refer to
    slice.put(unsigned: 0)  // first macroblock
    slice.put(unsigned: 5)  // P, like all slices of the picture
    slice.put(unsigned: pictureParameterSet)
    slice.put(number & (1 << frameNumberBits - 1), bits: frameNumberBits)
    slice.put(overridesReferenceCount)
    if overridesReferenceCount { slice.put(unsigned: 0) }
    slice.put(false)  // references in their own order
    slice.put(false)  // this picture replaces the reference before
    slice.put(unsigned: 0)  // the first of CABAC's three tables
    slice.put(signed: qpDelta)
    if controlsDeblocking { slice.put(unsigned: 1) }  // no deblocking
    while !slice.isAligned { slice.put(true) }
    var coder = SkipCoder(slice)
    for macroblock in 1...macroblocks { coder.skip(isLast: macroblock == macroblocks) }
    return NALUnit.lengthPrefixed(coder.slice.unit)
  }

  /// Sets the number of a coded picture among all pictures of the segment. Later pictures refer to each of them: only so do numbers count.
  ///
  /// - Parameter unit: a P slice of the encoder's as a NAL unit behind its length.
  package func renumber(_ unit: inout [UInt8], _ number: Int) throws(SegmentMismatch) {
    var slice = BitReader(unit: unit.dropFirst(4).prefix(8))
    let (header, first, kind, set) = (slice.bits(8), slice.unsigned(), slice.unsigned(), slice.unsigned())
    let start = 32 + slice.position
    let bytes = start / 8...(start + frameNumberBits - 1) / 8
    guard header & 0x1F == NALUnit.Kind.slice.rawValue, header & 0x60 != 0, first == 0, kind == 5,
      set == pictureParameterSet,
      unit.prefix(4).reduce(0, { $0 << 8 | Int($1) }) == unit.count - 4, bytes.upperBound < unit.count
    else { throw SegmentMismatch("a coded picture is of another kind") }
    // Without zeros at its number, before or after, its emulation prevention bytes stay the same.
    var head = Array(unit[...bytes.upperBound])
    setNumber(number, in: &head, at: start)
    if !unit[bytes].contains(0), !head[bytes].contains(0) {
      unit.replaceSubrange(bytes, with: head[bytes])
    } else {
      var payload = NALUnit.payload(of: unit[4...])
      setNumber(number, in: &payload, at: slice.position)
      unit = NALUnit.lengthPrefixed(NALUnit.unit(of: payload))
    }
  }

  /// Whether a coded picture is a repeat, of any number.
  ///
  /// - Parameter repeated: a repeat with the number 1.
  package func isRepeat(_ unit: [UInt8], as repeated: [UInt8]) -> Bool {
    // Emulation prevention adds some bytes to a number with zeros.
    guard abs(unit.count - repeated.count) <= 4 else { return false }
    var unit = unit
    return (try? renumber(&unit, 1)) != nil && unit == repeated
  }

  private func setNumber(_ number: Int, in bytes: inout [UInt8], at start: Int) {
    for bit in 0..<frameNumberBits {
      let (byte, mask) = ((start + bit) / 8, UInt8(0x80) >> ((start + bit) % 8))
      let isSet = number >> (frameNumberBits - 1 - bit) & 1 == 1
      bytes[byte] = isSet ? bytes[byte] | mask : bytes[byte] & ~mask
    }
  }

  /// The quantiser. Nothing is quantised with it, but it selects the coder's initial states: at 51, skips are the likeliest.
  private static let qp = 51
}

/// The arithmetic coder, limited to likely symbols (9.3.4.2 to 9.3.4.5).
private struct SkipCoder {
  private(set) var slice: BitWriter
  private var low = 0
  private var range = 510
  private var outstanding = 0
  private var isFirst = true
  /// `mb_skip_flag` after skipped neighbours, at quantiser 51 (table 9-13): 106, which is 42 for "yes".
  private var state = 42

  init(_ slice: BitWriter) { self.slice = slice }

  mutating func skip(isLast: Bool) {
    range -= Self.unlikely[state - 42][range >> 6 & 3]
    state = min(state + 1, 62)
    renormalise()
    range -= 2
    if isLast {
      low += range
      range = 2
      renormalise()
      put(low >> 9 & 1)
      // With the stop bit.
      slice.put(low >> 7 & 3 | 1, bits: 2)
    } else {
      renormalise()
    }
  }

  private mutating func renormalise() {
    while range < 256 {
      if low < 256 {
        put(0)
      } else if low >= 512 {
        low -= 512
        put(1)
      } else {
        low -= 256
        outstanding += 1
      }
      range <<= 1
      low <<= 1
    }
  }

  private mutating func put(_ bit: Int) {
    if isFirst { isFirst = false } else { slice.put(bit, bits: 1) }
    while outstanding > 0 {
      slice.put(1 - bit, bits: 1)
      outstanding -= 1
    }
  }

  /// `rangeTabLPS` for the states from 42 (table 9-44).
  private static let unlikely: [[Int]] = [
    [16, 20, 23, 27], [15, 19, 22, 25], [14, 18, 21, 24], [14, 17, 20, 23], [13, 16, 19, 22], [12, 15, 18, 21],
    [12, 14, 17, 20], [11, 14, 16, 19], [11, 13, 15, 18], [10, 12, 15, 17], [10, 12, 14, 16], [9, 11, 13, 15],
    [9, 11, 12, 14], [8, 10, 12, 14], [8, 9, 11, 13], [7, 9, 11, 12], [7, 9, 10, 12], [7, 8, 10, 11],
    [6, 8, 9, 11], [6, 7, 9, 10], [6, 7, 8, 9],
  ]
}
