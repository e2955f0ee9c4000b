import CDeflate
import CPixels
import CZlib
import Glibc
import TestSupport
import Testing

/// Of the streams that libdeflate reads, the check accepts those that zlib reads.
@Suite struct StrictDeflateTests {
  private static func isStrict(_ stream: [UInt8]) -> Bool { cpx_is_strict_deflate(stream, stream.count) }

  private static func isReadByLibdeflate(_ stream: [UInt8]) -> Bool {
    let inflater = libdeflate_alloc_decompressor()
    defer { libdeflate_free_decompressor(inflater) }
    var output = [UInt8](repeating: 0, count: 1 << 16)
    var count = 0
    return libdeflate_deflate_decompress(inflater, stream, stream.count, &output, output.count, &count)
      == LIBDEFLATE_SUCCESS
  }

  private static func isReadByZlib(_ stream: [UInt8]) -> Bool {
    var stream = stream
    var output = [UInt8](repeating: 0, count: 1 << 16)
    var state = z_stream()
    // Without a header.
    guard inflateInit2_(&state, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else { return false }
    defer { inflateEnd(&state) }
    return stream.withUnsafeMutableBufferPointer { stream in
      output.withUnsafeMutableBufferPointer { output in
        (state.next_in, state.avail_in) = (stream.baseAddress, UInt32(stream.count))
        (state.next_out, state.avail_out) = (output.baseAddress, UInt32(output.count))
        return inflate(&state, Z_FINISH) == Z_STREAM_END
      }
    }
  }

  private static func deflated(_ bytes: [UInt8], level: Int32, strategy: Int32) -> [UInt8] {
    var bytes = bytes
    var output = [UInt8](repeating: 0, count: bytes.count + 1_024)
    var state = z_stream()
    guard
      deflateInit2_(
        &state, level, Z_DEFLATED, -15, 8, strategy, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return [] }
    defer { deflateEnd(&state) }
    bytes.withUnsafeMutableBufferPointer { bytes in
      output.withUnsafeMutableBufferPointer { output in
        (state.next_in, state.avail_in) = (bytes.baseAddress, UInt32(bytes.count))
        (state.next_out, state.avail_out) = (output.baseAddress, UInt32(output.count))
        _ = deflate(&state, Z_FINISH)
      }
    }
    return Array(output.prefix(output.count - Int(state.avail_out)))
  }

  /// Most streams with one to three flipped bits are read by neither; of the others the check must know which zlib reads.
  @Test(arguments: 1...Extent.of(4, full: 64)) func changedStreamsAreAcceptedAsByZlib(seed: Int) {
    var random = Random(seed: seed)
    var (read, refused) = (0, 0)
    for _ in 0..<1_500 {
      let kind = random.int(0...4)
      // The frequencies of the last kind halve from value to value, so that its codes are long.
      let count = kind == 4 && random.once(in: 20) ? 20_000 : 400
      let bytes = (0..<Int(random.int(1...Int64(count)))).map { index -> UInt8 in
        switch kind {
        case 4: UInt8(random.next().trailingZeroBitCount)
        case 0: UInt8(random.int(0...255))
        case 1: UInt8(random.int(0...2))
        case 2: UInt8(index / 7)
        default: UInt8(97 + random.int(0...4) % 3)
        }
      }
      let stream = Self.deflated(bytes, level: Int32(random.int(0...9)), strategy: Int32(random.int(0...4)))
      #expect(Self.isStrict(stream))
      for _ in 0..<6 {
        var changed = stream
        for _ in 0..<random.int(1...3) {
          // The codes stand at the start.
          let place = Int(random.int(0...Int64(min(changed.count, random.once(in: 2) ? 40 : changed.count) - 1)))
          changed[place] ^= 1 << UInt8(random.int(0...7))
        }
        guard Self.isReadByLibdeflate(changed) else { continue }
        read += 1
        let expected = Self.isReadByZlib(changed)
        if !expected { refused += 1 }
        #expect(Self.isStrict(changed) == expected, "\(changed)")
      }
    }
    // Otherwise the test would show nothing.
    #expect(read > 500 && refused > 0)
  }

  /// Bits of a stream, the first one lowest.
  private static func stream(_ fields: (value: Int, bits: Int)...) -> [UInt8] {
    let bits = fields.flatMap { field in (0..<field.bits).map { field.value >> $0 & 1 } }
    return stride(from: 0, to: bits.count, by: 8).map { start in
      bits[start..<min(start + 8, bits.count)].enumerated().reduce(0) { $0 | UInt8($1.element) << UInt8($1.offset) }
    }
  }

  @Test func unusedDistanceIsRefused() {
    // The last block, of fixed codes: a literal of zero, a match of three bytes at distance 1 or of number 30, the end.
    let good = Self.stream((1, 1), (1, 2), (0b00001100, 8), (0b1000000, 7), (0, 5), (0, 7))
    let bad = Self.stream((1, 1), (1, 2), (0b00001100, 8), (0b1000000, 7), (0b01111, 5), (0, 7))
    #expect(Self.isStrict(good) && Self.isReadByZlib(good))
    #expect(!Self.isStrict(bad) && !Self.isReadByZlib(bad))
  }

  @Test func brokenStreamsAreRefused() {
    let whole = Self.deflated((0..<400).map { UInt8($0 % 251) }, level: 6, strategy: Z_DEFAULT_STRATEGY)
    for count in 0..<whole.count { #expect(!Self.isStrict(Array(whole[..<count])), "\(count)") }
    // A block of an unknown kind; a stored one whose length does not fit its complement, or the stream.
    for stream: [UInt8] in [[7], [1, 1, 0, 0xFF, 0xFF, 9], [1, 2, 0, 0xFD, 0xFF, 9]] {
      #expect(!Self.isStrict(stream), "\(stream)")
    }
    #expect(Self.isStrict([1, 1, 0, 0xFE, 0xFF, 9]))
  }
}
