// Converts pixels without a file format to RGBA whose colours are not multiplied by alpha.

import CFFmpeg
import FrameBatches

extension RawPixels {
  /// - Throws: ``RefusedPicture`` when the file is too short.
  func picture(from file: [UInt8]) throws -> FrameBuffer {
    guard file.count >= byteCount else {
      throw RefusedPicture(
        reason: "\(file.count) bytes; \(size.width)×\(size.height) \(format.rawValue) has \(byteCount)")
    }
    let result = try FrameBuffer(width: size.width, height: size.height, format: AV_PIX_FMT_RGBA)
    let plane = unsafe result.plane(0)
    unsafe file.withUnsafeBytes { bytes in
      for row in 0..<size.height {
        let start = row * bytesPerRow
        let input = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<start + 4 * size.width])
        let output = unsafe plane.start + row * plane.stride
        switch format {
        case .rgba: unsafe convert(input, red: 0, blue: 2, to: output)
        case .bgra: unsafe convert(input, red: 2, blue: 0, to: output)
        case .bgr10a8:
          let alphaAt = size.height * bytesPerRow + row * alphaBytesPerRow
          let alphas = unsafe UnsafeRawBufferPointer(rebasing: bytes[alphaAt..<alphaAt + size.width])
          unsafe convertWide(input, alphas, to: output)
        }
      }
    }
    return result
  }

  private func convert(_ input: UnsafeRawBufferPointer, red: Int, blue: Int, to output: UnsafeMutablePointer<UInt8>) {
    for pixel in Swift.stride(from: 0, to: input.count, by: 4) {
      let transparency = unsafe alpha == .opaque ? 255 : Int(input[pixel + 3])
      for (channel, source) in [(0, red), (1, 1), (2, blue)] {
        unsafe output[pixel + channel] = straight(2 * Int(input[pixel + source]), transparency)
      }
      unsafe output[pixel + 3] = UInt8(transparency)
    }
  }

  /// Clamps colours beyond sRGB, each channel separately.
  private func convertWide(
    _ input: UnsafeRawBufferPointer, _ alphas: UnsafeRawBufferPointer, to output: UnsafeMutablePointer<UInt8>
  ) {
    for column in 0..<alphas.count {
      let word = unsafe Int(UInt32(littleEndian: input.loadUnaligned(fromByteOffset: 4 * column, as: UInt32.self)))
      let transparency = unsafe alpha == .opaque ? 255 : Int(alphas[column])
      for (channel, shift) in [(0, 20), (1, 10), (2, 0)] {
        // 510 steps from black to white: half steps of 1/255.
        unsafe output[4 * column + channel] = straight((word >> shift & 1023) - 384, transparency)
      }
      unsafe output[4 * column + 3] = UInt8(transparency)
    }
  }

  /// Returns a channel, not multiplied by alpha, in 255ths.
  private func straight(_ halfSteps: Int, _ transparency: Int) -> UInt8 {
    let isMultiplied = alpha == .premultiplied && transparency != 255
    if isMultiplied, transparency == 0 { return 0 }
    let value = isMultiplied ? (halfSteps * 255 + transparency) / (2 * transparency) : (halfSteps + 1) >> 1
    return UInt8(min(max(value, 0), 255))
  }
}
