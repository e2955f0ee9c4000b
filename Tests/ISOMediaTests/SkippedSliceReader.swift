@testable import ISOMedia

/// Reads a P slice in which every macroblock is skipped, by the decoding process of ITU-T H.264: 7.3.3, 7.3.4, 9.3.1 and 9.3.3.2.
struct SkippedSliceReader {
  /// A reason why a unit is no repeat.
  struct Fault: Error, CustomStringConvertible {
    let description: String
  }

  let macroblocks: Int
  let frameNumberBits: Int
  let quantiser: Int
  private let references: Int
  private let controlsDeblocking: Bool

  init(_ sets: ParameterSets) throws {
    guard let sequence = SequenceParameterSet(sets.sequence) else { throw Fault(description: "seq_parameter_set") }
    (macroblocks, frameNumberBits) = (sequence.columns * sequence.rows, sequence.frameNumberBits)
    var picture = BitReader(unit: sets.picture)
    _ = (picture.bits(8), picture.unsigned(), picture.unsigned())
    guard picture.flag(), !picture.flag(), picture.unsigned() == 0 else {
      throw Fault(description: "CABAC and one slice group")
    }
    references = picture.unsigned() + 1
    _ = (picture.unsigned(), picture.bits(3))
    quantiser = 26 + picture.signed()
    _ = (picture.signed(), picture.signed())
    controlsDeblocking = picture.flag()
  }

  /// - Parameters:
  ///   - unit: a NAL unit, without its length.
  ///   - number: the pictures of the segment before it.
  func read(_ unit: [UInt8], number: Int) throws {
    func expect(_ isRight: Bool, _ what: String) throws { if !isRight { throw Fault(description: what) } }
    var slice = BitReader(unit: unit)
    try expect(slice.bits(1) == 0, "forbidden_zero_bit")
    try expect(slice.bits(2) == 2, "nal_ref_idc is that of the encoder's slices")
    try expect(slice.bits(5) == 1, "nal_unit_type")
    try expect(slice.unsigned() == 0, "first_mb_in_slice")
    try expect(slice.unsigned() == 5, "slice_type")
    try expect(slice.unsigned() == 0, "pic_parameter_set_id")
    try expect(slice.bits(frameNumberBits) == number % (1 << frameNumberBits), "frame_num")
    let isOverridden = slice.flag()
    try expect((isOverridden ? slice.unsigned() + 1 : references) == 1, "one reference")
    try expect(!slice.flag(), "ref_pic_list_modification_flag_l0")
    try expect(!slice.flag(), "adaptive_ref_pic_marking_mode_flag")
    let table = slice.unsigned()
    try expect(table <= 2, "cabac_init_idc")
    let sliceQuantiser = quantiser + slice.signed()
    try expect((0...51).contains(sliceQuantiser), "slice_qp_delta")
    // With no deblocking, no offsets follow.
    try expect(!controlsDeblocking || slice.unsigned() == 1, "disable_deblocking_filter_idc")
    while slice.position % 8 != 0 { try expect(slice.flag(), "cabac_alignment_one_bit") }

    var decoder = Decoder(slice, table, sliceQuantiser)
    for macroblock in 1...macroblocks {
      try expect(decoder.isSkipped(), "mb_skip_flag of macroblock \(macroblock)")
      try expect(decoder.isEnd() == (macroblock == macroblocks), "end_of_slice_flag of macroblock \(macroblock)")
    }
    try expect(decoder.lastBit, "rbsp_stop_one_bit")
    slice = decoder.slice
    let rest = slice.bitCount - slice.position
    try expect((0..<8).contains(rest) && slice.bits(rest) == 0, "rbsp_alignment_zero_bit")
  }

  /// The arithmetic decoder (9.3.1.2, 9.3.3.2), for the one context of slices without a macroblock of their own.
  private struct Decoder {
    private(set) var slice: BitReader
    private var range = 510
    private var offset: Int
    private var state: Int
    private let valueOfMostProbable: Bool
    /// Only likely symbols were read, so that the offset still ends with the bits as they were read.
    var lastBit: Bool { offset & 1 == 1 }

    init(_ slice: BitReader, _ table: Int, _ quantiser: Int) {
      self.slice = slice
      offset = self.slice.bits(9)
      // ctxIdx 11 (tables 9-13 and 9-14): neighbours that are skipped or missing select it.
      let (m, n) = [(23, 33), (22, 25), (29, 16)][table]
      let before = min(126, max(1, ((m * quantiser) >> 4) + n))
      valueOfMostProbable = before > 63
      state = before > 63 ? before - 64 : 63 - before
    }

    mutating func isSkipped() -> Bool {
      // Less likely states are of other slices than ours.
      guard valueOfMostProbable, let row = state < 42 ? nil : Self.ranges[state - 42] else { return false }
      range -= row[range >> 6 & 3]
      guard offset < range else { return false }
      state = min(state + 1, 62)
      renormalise()
      return true
    }

    mutating func isEnd() -> Bool {
      range -= 2
      if offset < range {
        renormalise()
        return false
      }
      // Nothing is read any more: the last bit of the offset is the stop bit.
      return true
    }

    private mutating func renormalise() {
      while range < 256 {
        (range, offset) = (range << 1, offset << 1 | slice.bits(1))
      }
    }

    /// `rangeTabLPS` for the states from 42 on (table 9-44), a column for each quarter of the range.
    private static let ranges: [[Int]] = {
      let columns = [
        [16, 15, 14, 14, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8, 7, 7, 7, 6, 6, 6],
        [20, 19, 18, 17, 16, 15, 14, 14, 13, 12, 12, 11, 11, 10, 9, 9, 9, 8, 8, 7, 7],
        [23, 22, 21, 20, 19, 18, 17, 16, 15, 15, 14, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8],
        [27, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 14, 13, 12, 12, 11, 11, 10, 9],
      ]
      return (0..<21).map { state in columns.map { $0[state] } }
    }()
  }
}
