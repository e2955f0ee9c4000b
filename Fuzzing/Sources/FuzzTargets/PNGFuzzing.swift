import CDeflate
import CFFmpeg

@testable import Encoding
@testable import FrameBatches

/// Compares the decoder of plain PNGs with libavcodec: it makes the same pixels, and accepts no file that libavcodec refuses for
/// another reason than a Huffman code of its stream.
package enum PNGFuzzing {
  static func compare(_ bytes: [UInt8]) {
    // Changes to the pixels' checksum or structure remain; only the chunks' checksums are corrected.
    for file in [bytes, PictureFuzzing.withValidChecksums(bytes)] { isDecodedAsPlain(file) }
  }

  /// Returns whether the decoder accepts the file; the process ends if libavcodec disagrees.
  @discardableResult
  package static func isDecodedAsPlain(_ file: [UInt8]) -> Bool {
    let limits = FuzzTarget.limits
    guard ImageKind(of: file) == .png, let size = ImageKind.png.size(of: file),
      max(size.width, size.height) <= limits.side, size.width * size.height <= limits.pixels
    else { return false }
    let essential = PNGChunks.essential(of: file).file
    guard let plain = PNGDecoder(limits: limits).decode(essential, size: size) else { return false }
    do {
      let codec = try ImageCodec(.png, limits: limits, nil)
      let same = try? codec.decode(essential)
      let reference = try same ?? codec.decode(withoutCodes(essential))
      require(plain.size == reference.size && plain.format == reference.format, "the size and format of libavcodec")
      require(plain.colourProfile == reference.colourProfile, "the colour profile of libavcodec")
      require(rows(of: plain) == rows(of: reference), "the pixels of libavcodec")
    } catch {
      fatalError("broken promise: libavcodec refuses this file: \(error)")
    }
    return true
  }

  /// Returns a file with its rows in stored blocks (RFC 1951, 3.2.4), which have no Huffman code.
  private static func withoutCodes(_ file: [UInt8]) -> [UInt8] {
    let chunks = Array(ImageChunk.chunks(of: file, .png, from: 8))
    let stream = chunks.filter { $0.name == "IDAT" }.flatMap { $0.body ?? [] }
    let inflater = libdeflate_alloc_decompressor()
    defer { libdeflate_free_decompressor(inflater) }
    let bytes = [UInt8](unsafeUninitializedCapacity: 5 * FuzzTarget.limits.pixels) { bytes, count in
      libdeflate_zlib_decompress(inflater, stream, stream.count, bytes.baseAddress, bytes.count, &count)
    }
    func number(_ value: Int, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }
    var stored: [UInt8] = [0x78, 0x01]
    for start in stride(from: 0, to: bytes.count, by: 65_535) {
      let block = bytes[start..<min(start + 65_535, bytes.count)]
      let size = number(block.count, 2)
      stored += [block.endIndex == bytes.count ? 1 : 0, size[1], size[0], ~size[1], ~size[0]] + block
    }
    stored += number(Int(libdeflate_adler32(1, bytes, bytes.count)), 4)
    let head = file[..<(chunks.first { $0.name == "IDAT" }?.range.lowerBound ?? file.count)]
    func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
      number(body.count, 4) + Array(name.utf8) + body + number(0, 4)
    }
    return PictureFuzzing.withValidChecksums(Array(head) + chunk("IDAT", stored) + chunk("IEND", []))
  }

  private static func rows(of picture: FrameBuffer) -> [UInt8] {
    let (start, stride) = picture.plane(0)
    let count = picture.width * (picture.hasAlpha ? 4 : 3)
    return (0..<picture.height).flatMap { UnsafeBufferPointer(start: start + $0 * stride, count: count) }
  }
}
