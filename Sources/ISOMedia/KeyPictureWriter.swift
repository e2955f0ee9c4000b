// A key frame that shows a decoded picture without any loss, so that later pictures of a film can refer to it as they did to the
// original (ITU-T H.264, 7.3.5 and 8.3). A macroblock that its neighbours predict exactly takes some bits; any other one is
// stored as it is (I_PCM). The picture has a parameter set of its own: CAVLC, and no deblocking.

/// Writes decoded pictures as key frames.
package struct KeyPictureWriter {
  /// The picture parameter set that the pictures refer to.
  package let parameterSet: [UInt8]
  /// The size of a picture in macroblocks.
  package let columns: Int
  package let rows: Int
  private let parameterSetID: Int
  private let frameNumberBits: Int

  /// - Throws: ``SegmentMismatch`` for streams of another kind than our encoder's.
  package init(for sets: ParameterSets) throws(SegmentMismatch) {
    var picture = BitReader(unit: sets.picture)
    _ = picture.bits(8)
    let used = picture.unsigned()
    guard let sequence = SequenceParameterSet(sets.sequence), sequence.frameNumberBits <= 16,
      max(sequence.columns, sequence.rows) <= 1_024
    else { throw SegmentMismatch("the encoder's streams are of another kind") }
    (columns, rows, frameNumberBits) = (sequence.columns, sequence.rows, sequence.frameNumberBits)
    parameterSetID = used == 0 ? 1 : 0
    var set = BitWriter()
    set.put(0x68, bits: 8)
    set.put(unsigned: parameterSetID)
    set.put(unsigned: sequence.id)
    set.put(0, bits: 2)  // CAVLC; no order of fields
    for _ in 0..<3 { set.put(unsigned: 0) }  // one slice group; one reference in each list
    set.put(0, bits: 3)  // no weighted prediction
    for _ in 0..<3 { set.put(signed: 0) }  // quantisers
    set.put(true)  // slices control deblocking
    set.put(0, bits: 2)  // any neighbour predicts; no redundant pictures
    set.stop()
    parameterSet = set.unit
  }

  /// The bytes of a picture's planes: Y, Cb, Cr of 4:2:0, with the columns and rows that players crop.
  package var bytes: Int { 384 * columns * rows }

  /// Returns a key frame as a NAL unit behind its length.
  ///
  /// - Parameter planes: ``bytes`` bytes.
  package func picture(_ planes: [UInt8]) throws(SegmentMismatch) -> [UInt8] {
    guard planes.count == bytes else { throw SegmentMismatch("a decoded picture has another size") }
    var slice = BitWriter()
    slice.put(0x65, bits: 8)
    slice.put(unsigned: 0)  // first macroblock
    slice.put(unsigned: 7)  // I, like all slices of the picture
    slice.put(unsigned: parameterSetID)
    slice.put(0, bits: frameNumberBits)
    // The encoder's key frames have 0, and the next one must differ.
    slice.put(unsigned: 1)
    slice.put(0, bits: 2)  // output earlier pictures; a short-term reference
    slice.put(signed: 0)  // quantiser
    slice.put(unsigned: 1)  // no deblocking
    unsafe planes.withUnsafeBufferPointer { unsafe put($0, to: &slice) }
    slice.stop()
    return NALUnit.lengthPrefixed(slice.unit)
  }

  private func put(_ planes: UnsafeBufferPointer<UInt8>, to slice: inout BitWriter) {
    let quarter = 64 * columns * rows
    func blocks(_ range: Range<Int>, side: Int) -> SampleBlocks {
      unsafe SampleBlocks(samples: UnsafeBufferPointer(rebasing: planes[range]), side: side, columns: columns)
    }
    let luma = blocks(0..<(4 * quarter), side: 16)
    let chroma = (4...5).map { blocks(($0 * quarter)..<(($0 + 1) * quarter), side: 8) }
    // Whether the macroblocks above, and those to the left in this row, are stored.
    var isStored = [Bool](repeating: false, count: columns)
    for row in 0..<rows {
      for column in 0..<columns {
        if let mode = SampleBlocks.prediction(of: [luma], row, column),
          let chromaMode = SampleBlocks.prediction(of: chroma, row, column)
        {
          slice.put(unsigned: 1 + mode.lumaNumber)  // I_16x16 without coefficients
          slice.put(unsigned: chromaMode.chromaNumber)
          slice.put(signed: 0)  // quantiser
          let neighbours = (column > 0 ? [isStored[column - 1]] : []) + (row > 0 ? [isStored[column]] : [])
          // "No coefficient" is coded by the neighbours' numbers of coefficients (table 9-5): 16 each if stored, else 0.
          if neighbours.contains(true) { slice.put(3, bits: 6) } else { slice.put(true) }
          isStored[column] = false
        } else {
          slice.put(unsigned: 25)  // I_PCM
          slice.align()
          for plane in [luma] + chroma { unsafe plane.forEachRow(row, column) { unsafe slice.put(aligned: $0) } }
          isStored[column] = true
        }
      }
    }
  }
}

/// A plane in square blocks, one for each macroblock. It is safe: ``KeyPictureWriter`` makes it while the memory of the
/// plane is valid, and passes only rows and columns of the picture.
@safe private struct SampleBlocks {
  let samples: UnsafeBufferPointer<UInt8>
  let side: Int
  let columns: Int

  /// The predictions that we use (8.3.3, 8.3.4).
  enum Prediction: CaseIterable {
    case vertical, horizontal, mean

    var lumaNumber: Int { self == .vertical ? 0 : self == .horizontal ? 1 : 2 }
    var chromaNumber: Int { self == .mean ? 0 : self == .horizontal ? 1 : 2 }
  }

  private var stride: Int { side * columns }

  private func start(_ row: Int, _ column: Int) -> Int { row * side * stride + column * side }

  func forEachRow(_ row: Int, _ column: Int, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
    let start = start(row, column)
    for line in 0..<side {
      unsafe body(UnsafeBufferPointer(rebasing: samples[(start + line * stride)..<(start + line * stride + side)]))
    }
  }

  /// Returns a prediction that is exact in all planes; nil if there is none.
  static func prediction(of planes: [SampleBlocks], _ row: Int, _ column: Int) -> Prediction? {
    Prediction.allCases.first { prediction in planes.allSatisfy { $0.isPredicted(prediction, row, column) } }
  }

  private func isPredicted(_ prediction: Prediction, _ row: Int, _ column: Int) -> Bool {
    let start = start(row, column)
    func isEach(_ value: (_ line: Int, _ place: Int) -> UInt8) -> Bool {
      for line in 0..<side {
        for place in 0..<side where unsafe samples[start + line * stride + place] != value(line, place) { return false }
      }
      return true
    }
    switch prediction {
    case .vertical: return row > 0 && isEach { _, place in unsafe samples[start - stride + place] }
    case .horizontal: return column > 0 && isEach { line, _ in unsafe samples[start + line * stride - 1] }
    case .mean:
      // Chroma has a mean for each quarter of the block.
      let part = side == 16 ? 16 : 4
      let parts = side / part
      let means = (0..<parts * parts).map { mean(of: part, $0 / parts, $0 % parts, start, row > 0, column > 0) }
      return isEach { line, place in means[line / part * parts + place / part] }
    }
  }

  /// - Parameters:
  ///   - part: the side of the part.
  ///   - down: the place of the part in the block, as `across`.
  private func mean(
    of part: Int, _ down: Int, _ across: Int, _ start: Int, _ hasAbove: Bool, _ hasLeft: Bool
  ) -> UInt8 {
    let above = { (0..<part).reduce(0) { unsafe $0 + Int(samples[start - stride + across * part + $1]) } }
    let left = { (0..<part).reduce(0) { unsafe $0 + Int(samples[start + (down * part + $1) * stride - 1]) } }
    // The parts beside one edge only take their mean from there.
    let (usesAbove, usesLeft) = (
      hasAbove && !(hasLeft && down > across), hasLeft && !(hasAbove && across > down)
    )
    switch (usesAbove, usesLeft) {
    case (true, true): return UInt8((above() + left() + part) / (2 * part))
    case (true, false): return UInt8((above() + part / 2) / part)
    case (false, true): return UInt8((left() + part / 2) / part)
    case (false, false): return 128
    }
  }
}
