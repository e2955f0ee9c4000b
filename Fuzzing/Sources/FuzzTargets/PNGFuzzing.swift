import CFFmpeg

@testable import Encoding
@testable import FrameBatches

/// Compares the decoder of plain PNGs with libavcodec: it accepts no file that libavcodec refuses, and makes the same pixels.
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
      let reference = try ImageCodec(.png, limits: limits, nil).decode(essential)
      require(plain.size == reference.size && plain.format == reference.format, "the size and format of libavcodec")
      require(plain.colourProfile == reference.colourProfile, "the colour profile of libavcodec")
      require(rows(of: plain) == rows(of: reference), "the pixels of libavcodec")
    } catch {
      fatalError("broken promise: libavcodec refuses this file: \(error)")
    }
    return true
  }

  private static func rows(of picture: FrameBuffer) -> [UInt8] {
    let (start, stride) = picture.plane(0)
    let count = picture.width * (picture.hasAlpha ? 4 : 3)
    return (0..<picture.height).flatMap { UnsafeBufferPointer(start: start + $0 * stride, count: count) }
  }
}
