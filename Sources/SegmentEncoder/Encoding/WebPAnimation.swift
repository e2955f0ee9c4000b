// Animated WebP files (RFC 9649, 2.7), which libavcodec before 8 does not know: the first frame as a file of its own.

enum WebPAnimation {
  /// - Returns: the file itself where it is no animation; nil where the first frame does not fill the canvas, or cannot be
  ///   found.
  static func firstFrame(of file: [UInt8]) -> [UInt8]? {
    let isAnimated = file.count > 30 && file[12..<16].elementsEqual("VP8X".utf8) && file[20] & 2 != 0
    guard isAnimated else { return file }
    let canvas = file[24..<30]
    var offset = 12
    while offset + 8 <= file.count {
      let size = (0..<4).reduce(0) { $0 | Int(file[offset + 4 + $1]) << (8 * $1) }
      guard offset + 8 + size <= file.count else { return nil }
      let body = file[offset + 8..<offset + 8 + size]
      if file[offset..<offset + 4].elementsEqual("ANMF".utf8) {
        // Where it lies in the canvas, its sides, how long it is shown and how; then the chunks of a still.
        guard size > 16, body.prefix(6).allSatisfy({ $0 == 0 }), body.dropFirst(6).prefix(6) == canvas else {
          return nil
        }
        let header = file[12..<20] + [file[20] & ~2] + file[21..<30]
        let chunks = Array("WEBP".utf8) + header + body.dropFirst(16)
        return Array("RIFF".utf8) + (0..<4).map { UInt8(truncatingIfNeeded: chunks.count >> (8 * $0)) } + chunks
      }
      offset += 8 + size + size % 2
    }
    return nil
  }
}
