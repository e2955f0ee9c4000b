/// A network abstraction layer unit of an H.264 byte stream (ITU-T H.264, 7.3.1 and annex B).
/// It is safe to keep. Only reading its bytes is unsafe, because the stream may be gone.
@safe package struct NALUnit {
  /// The kinds that we use.
  package enum Kind: UInt8 {
    case slice = 1
    case keySlice = 5
    case sequenceParameterSet = 7
    case pictureParameterSet = 8
  }

  package let bytes: UnsafeBufferPointer<UInt8>.SubSequence

  @unsafe package var kind: Kind? { unsafe bytes.first.flatMap { Kind(rawValue: $0 & 0x1F) } }

  /// Splits a stream at its start codes, 00 00 01. Zeros before a start code belong to no unit.
  package static func split(_ stream: UnsafeBufferPointer<UInt8>) -> [NALUnit] {
    var units: [NALUnit] = []
    var start: Int?
    var index = 0
    while index + 2 < stream.count {
      if unsafe stream[index + 2] > 1 {
        index += 3
      } else if unsafe stream[index] == 0 && stream[index + 1] == 0 && stream[index + 2] == 1 {
        if let start { unsafe units.append(NALUnit(bytes: stream[start..<index].droppingTrailingZeros)) }
        start = index + 3
        index += 3
      } else {
        index += 1
      }
    }
    if let start { unsafe units.append(NALUnit(bytes: stream[start...].droppingTrailingZeros)) }
    return units
  }

  /// Returns a unit behind its length in 4 bytes.
  static func lengthPrefixed(_ unit: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    result.append(bigEndian: UInt32(unit.count))
    return result + unit
  }

  /// Returns the units that carry pictures, each behind its length in 4 bytes. This leaves out x264's 700 bytes of settings
  /// before every first picture, and the parameter sets, which are in the sample description.
  @unsafe package static func lengthPrefixed(_ units: [NALUnit]) -> [UInt8] {
    let slices = units.filter { unsafe $0.kind == .slice || $0.kind == .keySlice }
    var result: [UInt8] = []
    result.reserveCapacity(slices.reduce(0) { unsafe $0 + 4 + $1.bytes.count })
    for unit in slices {
      unsafe result.append(bigEndian: UInt32(unit.bytes.count))
      unsafe result.append(contentsOf: unit.bytes)
    }
    return result
  }
}

extension UnsafeBufferPointer<UInt8>.SubSequence {
  fileprivate var droppingTrailingZeros: Self {
    var end = unsafe endIndex
    while unsafe end > startIndex && self[end - 1] == 0 { end -= 1 }
    return unsafe self[startIndex..<end]
  }
}
