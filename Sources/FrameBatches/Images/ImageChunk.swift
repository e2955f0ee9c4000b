/// A chunk of a PNG or a WebP.
package struct ImageChunk {
  package let name: String
  /// The length of the body as the chunk states it.
  package let size: Int
  /// The chunk up to the end of its checksum or padding, or to where the file breaks off.
  package let range: Range<Int>
  /// nil when the file breaks off in the body.
  package let body: ArraySlice<UInt8>?

  /// Returns the chunks of a file from an offset on. In PNG they are a length, a name, a body and a checksum (ISO/IEC 15948, 5.3);
  /// in WebP a name, a length and a body, padded to an even length (RFC 9649, 2.3).
  package static func chunks(of file: [UInt8], _ kind: ImageKind, from start: Int) -> some Sequence<ImageChunk> {
    sequence(state: start) { offset in
      let start = offset
      guard start + (kind == .png ? 12 : 8) <= file.count else { return nil }
      let (first, second) = (file[start..<start + 4], file[start + 4..<start + 8])
      let size = kind == .png ? first.bigEndian : second.littleEndian
      let bodyEnd = start + 8 + size
      offset = min(bodyEnd + (kind == .png ? 4 : size % 2), file.count)
      return ImageChunk(
        name: String(decoding: kind == .png ? second : first, as: UTF8.self), size: size, range: start..<offset,
        body: bodyEnd <= file.count ? file[start + 8..<bodyEnd] : nil)
    }
  }
}
