// Decodes lossless WebPs in their plain form, which encoders of screenshots write, in a third of libavcodec's instructions. It never
// refuses a file: it leaves all other kinds, and everything unusual or damaged, to libavcodec.

import CFFmpeg
import CPixels
import FrameBatches

enum LosslessWebPDecoder {
  /// Maximum pixels of a picture, far below libavcodec's.
  private static let maximumPixels = 64 << 20

  /// Decodes a whole and plain file, to the colours and the alpha that libavcodec makes of it.
  ///
  /// - Parameter size: the picture's size, which is within the limits; it bounds the memory.
  /// - Returns: RGB24, or RGBA of a picture with alpha; nil when libavcodec has to decide about the file.
  static func decode(_ file: [UInt8], size: PixelSize) -> FrameBuffer? {
    guard let coded = codedPicture(in: file), min(size.width, size.height) > 0,
      size.width * size.height <= maximumPixels
    else { return nil }
    // Behind the signature, and 14 bits each of width and height.
    let hasAlpha = file[coded.lowerBound + 4] & 0x10 != 0
    guard
      let result = try? FrameBuffer(
        width: size.width, height: size.height, format: hasAlpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24)
    else { return nil }
    result.colourRange = AVCOL_RANGE_JPEG
    let (start, stride) = unsafe result.plane(0)
    let isDecoded = unsafe file.withUnsafeBufferPointer { file in
      let data = unsafe UnsafeBufferPointer(rebasing: file[coded])
      return unsafe cpx_decode_webp(data.baseAddress, data.count, size.width, size.height, hasAlpha, start, stride)
    }
    return isDecoded ? result : nil
  }

  /// Returns the coded picture of a container that has nothing else (RFC 9649, 2.6), with the right sizes.
  private static func codedPicture(in file: [UInt8]) -> Range<Int>? {
    guard file.count > 25, file[..<4].elementsEqual("RIFF".utf8), file[8..<16].elementsEqual("WEBPVP8L".utf8) else {
      return nil
    }
    func number(at start: Int) -> Int { (0..<4).reduce(0) { $0 | Int(file[start + $1]) << (8 * $1) } }
    let count = number(at: 16)
    guard count > 5, number(at: 4) == file.count - 8, 20 + count + count % 2 == file.count else { return nil }
    return 20..<20 + count
  }
}
