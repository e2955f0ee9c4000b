// The bits of an H.264 NAL unit, without its emulation prevention bytes (ITU-T H.264, 7.3.1 and 9.1).

struct BitReader {
  private let bytes: [UInt8]
  /// The number of bits read so far.
  private(set) var position = 0
  /// The number of all bits, with the stop bit and the zeros after it.
  var bitCount: Int { 8 * bytes.count }

  /// - Parameter unit: a NAL unit with its header.
  init(unit: some Sequence<UInt8>) { bytes = NALUnit.payload(of: unit) }

  /// Reads a number. The bits after the end of the unit are zeros.
  mutating func bits(_ count: Int) -> Int {
    (0..<count).reduce(0) { value, _ in value << 1 | bit() }
  }

  mutating func flag() -> Bool { bit() == 1 }

  /// Reads ue(v).
  mutating func unsigned() -> Int {
    var zeros = 0
    while zeros < 32, bit() == 0 { zeros += 1 }
    return (1 << zeros) - 1 + bits(zeros)
  }

  /// Reads se(v).
  mutating func signed() -> Int {
    let code = unsigned()
    return code % 2 == 0 ? -code / 2 : (code + 1) / 2
  }

  private mutating func bit() -> Int {
    defer { position += 1 }
    let byte = position / 8
    return byte < bytes.count ? Int(bytes[byte] >> (7 - position % 8)) & 1 : 0
  }
}

struct BitWriter {
  private var bytes: [UInt8] = []
  private var bitCount = 0

  var isAligned: Bool { bitCount % 8 == 0 }

  mutating func put(_ value: Int, bits count: Int) {
    for shift in (0..<count).reversed() {
      if isAligned { bytes.append(0) }
      bytes[bytes.count - 1] |= UInt8(value >> shift & 1) << (7 - bitCount % 8)
      bitCount += 1
    }
  }

  mutating func put(_ flag: Bool) { put(flag ? 1 : 0, bits: 1) }

  /// Writes ue(v).
  mutating func put(unsigned value: Int) {
    let length = Int.bitWidth - (value + 1).leadingZeroBitCount
    put(0, bits: length - 1)
    put(value + 1, bits: length)
  }

  /// Writes se(v).
  mutating func put(signed value: Int) { put(unsigned: value > 0 ? 2 * value - 1 : -2 * value) }

  /// Writes zeros up to the next byte.
  mutating func align() { while !isAligned { put(false) } }

  /// Writes whole bytes, from the start of a byte on.
  mutating func put(aligned more: UnsafeBufferPointer<UInt8>) {
    precondition(isAligned)
    unsafe bytes += more
    bitCount += 8 * more.count
  }

  /// Writes the stop bit and the zeros after it.
  mutating func stop() {
    put(true)
    align()
  }

  /// The unit with its emulation prevention bytes.
  var unit: [UInt8] { NALUnit.unit(of: bytes) }
}

extension NALUnit {
  /// Returns a unit without its emulation prevention bytes.
  static func payload(of unit: some Sequence<UInt8>) -> [UInt8] {
    var payload: [UInt8] = []
    var zeros = 0
    for byte in unit {
      if zeros == 2 && byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      payload.append(byte)
    }
    return payload
  }

  /// Returns a unit with its emulation prevention bytes.
  static func unit(of payload: [UInt8]) -> [UInt8] {
    var unit: [UInt8] = []
    unit.reserveCapacity(payload.count + payload.count / 64)
    var zeros = 0
    for byte in payload {
      if zeros == 2 && byte <= 3 {
        unit.append(3)
        zeros = 0
      }
      zeros = byte == 0 ? zeros + 1 : 0
      unit.append(byte)
    }
    return unit
  }
}
