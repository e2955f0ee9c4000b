// The chunks of a WebP (RFC 9649, 2.7) that a picture is made of: of an animation, which libavcodec before 8 does not know,
// those of the first frame; EXIF and XMP, which it parses needlessly, left out.

enum WebPChunks {
  /// - Returns: nil where the first frame of an animation does not fill the canvas, or cannot be found.
  package static func still(of file: [UInt8]) -> [UInt8]? {
    guard file.count > 30, file[12..<16].elementsEqual("VP8X".utf8) else { return file }
    // Bits of the header: an animation 2, XMP 4, EXIF 8.
    let isAnimated = file[20] & 2 != 0
    var chunks = file[12..<20] + [file[20] & ~0b1110] + file[21..<30]
    var hasProfile = false
    var offset = 30
    while offset + 8 <= file.count {
      let size = (0..<4).reduce(0) { $0 | Int(file[offset + 4 + $1]) << (8 * $1) }
      let end = min(offset + 8 + size + size % 2, file.count)
      switch String(decoding: file[offset..<offset + 4], as: UTF8.self) {
      case "ICCP" where !hasProfile:
        hasProfile = true
        chunks += file[offset..<end]
      case "ALPH", "VP8 ", "VP8L": if !isAnimated { chunks += file[offset..<end] }
      case "ANMF" where isAnimated:
        guard offset + 8 + size <= file.count else { return nil }
        let body = file[offset + 8..<offset + 8 + size]
        // Where it lies in the canvas, its sides, how long it is shown and how; then the chunks of a still.
        guard size > 16, body.prefix(6).allSatisfy({ $0 == 0 }), body.dropFirst(6).prefix(6) == file[24..<30] else {
          return nil
        }
        return riff(chunks + body.dropFirst(16))
      default: break
      }
      offset = end
    }
    return isAnimated ? nil : riff(chunks + file[offset...])
  }

  private static func riff(_ chunks: ArraySlice<UInt8>) -> [UInt8] {
    let size = chunks.count + 4
    return Array("RIFF".utf8) + (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * $0)) } + Array("WEBP".utf8)
      + chunks
  }
}
