/// Compresses symbols as GIF does (GIF89a, appendix F). Memory and time are bounded: a dictionary has 4 096 codes.
struct LZWEncoder {
  private static let mostCodes: UInt32 = 1 << 12
  private static let slots = 1 << 14
  /// A string and its next symbol, `code << 8 | symbol`, plus 1; 0 is free.
  private var keys = [UInt32](repeating: 0, count: slots)
  private var codes = [UInt32](repeating: 0, count: slots)

  /// Returns the data of an image: the size of a symbol, blocks of up to 255 bytes, and an empty one.
  ///
  /// - Parameters:
  ///   - symbols: at least one.
  ///   - bits: the size of a symbol, 2 to 8.
  mutating func encode(_ symbols: [UInt8], bits: Int) -> [UInt8] {
    precondition((2...8).contains(bits))
    let clear: UInt32 = 1 << UInt32(bits)
    var output = CodeBlocks(bits: bits)
    var (width, next) = (bits + 1, clear + 2)
    output.append(clear, width)
    reset()
    var string = UInt32(symbols[0])
    for symbol in symbols.dropFirst() {
      let key = (string << 8 | UInt32(symbol)) + 1
      var slot = Int((key &* 0x9E37_79B1) >> 18)
      while keys[slot] != 0, keys[slot] != key { slot = (slot + 1) % Self.slots }
      if keys[slot] == key {
        string = codes[slot]
        continue
      }
      output.append(string, width)
      // The decoder is one code behind.
      if next >= 1 << UInt32(width), width < 12 { width += 1 }
      if next < Self.mostCodes {
        (keys[slot], codes[slot]) = (key, next)
        next += 1
      } else {
        output.append(clear, width)
        reset()
        (width, next) = (bits + 1, clear + 2)
      }
      string = UInt32(symbol)
    }
    output.append(string, width)
    if next >= 1 << UInt32(width), width < 12 { width += 1 }
    output.append(clear + 1, width)
    return output.finish()
  }

  private mutating func reset() { for slot in keys.indices { keys[slot] = 0 } }
}

/// Codes of changing width, the lowest bit first, in blocks of up to 255 bytes behind their lengths.
private struct CodeBlocks {
  private var bytes: [UInt8]
  /// Where the length of the open block is.
  private var length = 1
  private var (pending, count): (UInt32, Int) = (0, 0)

  init(bits: Int) { bytes = [UInt8(bits), 0] }

  mutating func append(_ code: UInt32, _ width: Int) {
    pending |= code << UInt32(count)
    count += width
    while count >= 8 { flush() }
  }

  private mutating func flush() {
    bytes.append(UInt8(truncatingIfNeeded: pending))
    (pending, count) = (pending >> 8, count - 8)
    if bytes.count - length == 256 {
      bytes[length] = 255
      length = bytes.count
      bytes.append(0)
    }
  }

  mutating func finish() -> [UInt8] {
    if count > 0 { flush() }
    bytes[length] = UInt8(bytes.count - length - 1)
    if bytes[length] > 0 { bytes.append(0) }
    return bytes
  }
}
