// Pictures as bytes without gaps, for a socket.

import CFFmpeg
import FrameBatches

extension FrameBuffer {
  /// How many bytes a picture's pixels take, row by row and plane by plane.
  static func packedBytes(_ size: PixelSize, isRGB: Bool) -> Int {
    isRGB ? 3 * size.width * size.height : rows(size, isRGB: false).reduce(0) { $0 + $1.columns * $1.count }
  }

  /// Of each plane, of RGB24 or 4:2:0: bytes in a row, and rows.
  private static func rows(_ size: PixelSize, isRGB: Bool) -> [(columns: Int, count: Int)] {
    let half = ((size.width + 1) / 2, (size.height + 1) / 2)
    return isRGB ? [(3 * size.width, size.height)] : [(size.width, size.height), half, half]
  }

  /// Its pixels without gaps; of RGB24 or 4:2:0.
  func packed(isRGB: Bool) -> [UInt8] {
    let size = PixelSize(width: width, height: height)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.packedBytes(size, isRGB: isRGB))
    for (index, rows) in Self.rows(size, isRGB: isRGB).enumerated() {
      let (start, stride) = plane(index)
      for row in 0..<rows.count {
        bytes += UnsafeBufferPointer(start: start + row * stride, count: rows.columns)
      }
    }
    return bytes
  }

  /// From pixels without gaps, as many as there have to be.
  package convenience init(unpacking bytes: [UInt8], _ size: PixelSize, isRGB: Bool) throws(FFmpegError) {
    try self.init(width: size.width, height: size.height, format: isRGB ? AV_PIX_FMT_RGB24 : AV_PIX_FMT_YUV420P)
    guard bytes.count == Self.packedBytes(size, isRGB: isRGB) else {
      throw FFmpegError(function: "unpack", code: cff_error_invalid_data())
    }
    bytes.withUnsafeBufferPointer { bytes in
      var offset = 0
      for (index, rows) in Self.rows(size, isRGB: isRGB).enumerated() {
        let (start, stride) = plane(index)
        for row in 0..<rows.count {
          (start + row * stride).update(from: bytes.baseAddress! + offset, count: rows.columns)
          offset += rows.columns
        }
      }
    }
  }
}
