import CFFmpeg

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches

/// Decodes any file as an image.
enum PictureFuzzing {
  static func decode(_ bytes: [UInt8]) {
    let file = withValidChecksums(bytes)
    let decoder = PictureDecoder(limits: FuzzTarget.limits)
    let look = FrameComposition(content: .image(nil), masks: masks[file.count % masks.count])
    let (first, again) = (outcome(of: [file], look, decoder), outcome(of: [file], look, decoder))
    require(first == again, "the same picture at the second decode of a file")
    // The buffer has no spare byte, so that a sanitizer detects writes beyond its end.
    let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 1 << 20)
    defer { memory.deallocate() }
    memory.initialize(repeating: 0xAA)
    let there = outcome(of: [file], look, decoder, into: SharedPictureBuffer(memory))
    require(first == there, "the same picture in the caller's buffer")
    decodeParts(of: file, decoder)
  }

  /// Decodes the pictures of a file that may have several: one after the other, and each by itself.
  private static func decodeParts(of file: [UInt8], _ decoder: PictureDecoder) {
    for index in 0..<3 {
      let look = FrameComposition(content: .picture(index), masks: .none)
      let inOrder = outcome(of: [file], look, decoder)
      require(
        inOrder == outcome(of: [file], look, PictureDecoder(limits: FuzzTarget.limits)),
        "the same picture for a decoder that has not seen those before it")
    }
    guard let sequence = ImageKind(of: file).flatMap({ ImageSequence(of: file, $0) }) else { return }
    let (starts, end) = sequence.offsetsMs
    require(zip(starts, starts.dropFirst() + [end]).allSatisfy { $0 <= $1 }, "rising times")
  }

  /// Draws a frame of a batch that specifies how its files become a picture.
  static func draw(_ look: FrameComposition, of images: [FrameFile]) {
    let files = images.compactMap { if case .bytes(let bytes) = $0 { withValidChecksums(bytes) } else { nil } }
    guard files.count == images.count else { return }
    _ = outcome(of: files, look, PictureDecoder(limits: FuzzTarget.limits))
  }

  /// Returns the pixels, or the reason why there are none.
  private static func outcome(
    of files: [[UInt8]], _ look: FrameComposition, _ decoder: PictureDecoder, into space: SharedPictureBuffer? = nil
  ) -> Result<[UInt8], RefusedPicture> {
    let limits = FuzzTarget.limits
    do {
      let picture = try decoder.picture(from: files, look, into: space).picture
      require((1...limits.side).contains(picture.width) && (1...limits.side).contains(picture.height), "side limits")
      require(picture.width * picture.height <= limits.pixels, "pixels within limits")
      require(picture.codedWidth == picture.width + picture.width % 2, "an even width")
      require(picture.codedHeight == picture.height + picture.height % 2, "an even height")
      return .success(try picture.withFrame(pts: 0) { pixels(of: $0.pointee) })
    } catch let refusal as RefusedPicture {
      return .failure(refusal)
    } catch {
      fatalError("broken promise: the picture's own fault, not \(error)")
    }
  }

  private static func pixels(of frame: AVFrame) -> [UInt8] {
    let planes = [
      (frame.data.0, frame.linesize.0, 0), (frame.data.1, frame.linesize.1, 1), (frame.data.2, frame.linesize.2, 1),
    ]
    return planes.flatMap { start, stride, shift in
      (0..<Int(frame.height) >> shift).flatMap { row in
        UnsafeBufferPointer(start: start.map { $0 + row * Int(stride) }, count: Int(frame.width) >> shift)
      }
    }
  }

  /// The file's length selects one of these, so that a finding is just an image.
  private static let masks: [Masks] = [
    .none, .everything(because: "fuzzed"),
    .rectangles([Mask(x: -3.5, y: 1.5, width: 7, height: 1e300), Mask(x: 1, y: 1, width: 0, height: 3)]),
    .rectangles([Mask(x: 5, y: 3, width: 2, height: 2), Mask(x: 500, y: 1e9, width: 1, height: 1)]),
  ]

  /// Writes correct checksums into the chunks of a PNG (ISO/IEC 15948, 5.3). Without them the decoder rejects nearly
  /// every mutation at once.
  static func withValidChecksums(_ bytes: [UInt8]) -> [UInt8] {
    guard ImageKind(of: bytes) == .png else { return bytes }
    var bytes = bytes
    var offset = 8
    while offset + 12 <= bytes.count {
      let length = bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
      let end = offset + 8 + length
      guard end + 4 <= bytes.count else { break }
      let checksum = crc(bytes[offset + 4..<end])
      for index in 0..<4 { bytes[end + index] = UInt8(truncatingIfNeeded: checksum >> (24 - 8 * index)) }
      offset = end + 4
    }
    return bytes
  }

  /// Returns the CRC of ISO/IEC 15948, annex D.
  private static func crc(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    ~bytes.reduce(~0) { crc, byte in
      (0..<8).reduce(crc ^ UInt32(byte)) { crc, _ in crc >> 1 ^ (crc & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
  }
}
