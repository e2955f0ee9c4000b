// The chunks of a WebP (RFC 9649, 2.7) that are needed for the picture: without EXIF and XMP, which libavcodec would parse. Of an
// animation, which libavcodec does not support before version 8, the first frame.

import FrameBatches

enum WebPChunks {
  /// - Returns: nil when the first frame of an animation does not fill the canvas, or cannot be found.
  static func still(of file: [UInt8]) -> [UInt8]? {
    guard file.count > 30, file[12..<16].elementsEqual("VP8X".utf8) else { return file }
    // Bits of the header: an animation 2, XMP 4, EXIF 8.
    let isAnimated = file[20] & 2 != 0
    var chunks = file[12..<20] + [file[20] & ~0b1110] + file[21..<30]
    var hasProfile = false
    var end = 30
    for chunk in ImageChunk.chunks(of: file, .webp, from: end) {
      switch chunk.name {
      case "ICCP" where !hasProfile:
        hasProfile = true
        chunks += file[chunk.range]
      case "ALPH", "VP8 ", "VP8L": if !isAnimated { chunks += file[chunk.range] }
      case "ANMF" where isAnimated:
        // The position in the canvas, the size, duration and flags; then the chunks of a still image.
        guard let body = chunk.body, body.count > 16, body.prefix(6).allSatisfy({ $0 == 0 }),
          body.dropFirst(6).prefix(6) == file[24..<30]
        else { return nil }
        return riff(chunks + body.dropFirst(16))
      default: break
      }
      end = chunk.range.upperBound
    }
    return isAnimated ? nil : riff(chunks + file[end...])
  }

  static func riff(_ chunks: ArraySlice<UInt8>) -> [UInt8] {
    let size = chunks.count + 4
    var file = Array("RIFF".utf8)
    file += (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * $0)) }
    file += Array("WEBP".utf8)
    return file + chunks
  }
}
