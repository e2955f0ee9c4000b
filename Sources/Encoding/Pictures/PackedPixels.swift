// Pictures as bytes without gaps, for a socket; RGB24, or planar 4:2:0.

import CFFmpeg
import FrameBatches

extension FrameBuffer {
  /// The bytes of a row, and the rows, of each plane.
  private static func planeSizes(_ size: PixelSize, isRGB: Bool) -> [(columns: Int, rows: Int)] {
    let half = ((size.width + 1) / 2, (size.height + 1) / 2)
    return isRGB ? [(3 * size.width, size.height)] : [(size.width, size.height), half, half]
  }

  static func packedBytes(_ size: PixelSize, isRGB: Bool) -> Int {
    planeSizes(size, isRGB: isRGB).reduce(0) { $0 + $1.columns * $1.rows }
  }

  /// The pixels, row by row and plane by plane.
  func packed(isRGB: Bool) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.packedBytes(size, isRGB: isRGB))
    for (index, (columns, rows)) in Self.planeSizes(size, isRGB: isRGB).enumerated() {
      let (start, stride) = unsafe plane(index)
      for row in 0..<rows { unsafe bytes += UnsafeBufferPointer(start: start + row * stride, count: columns) }
    }
    return bytes
  }

  convenience init(unpacking bytes: [UInt8], _ size: PixelSize, isRGB: Bool) throws(FFmpegError) {
    try self.init(width: size.width, height: size.height, format: isRGB ? AV_PIX_FMT_RGB24 : AV_PIX_FMT_YUV420P)
    guard bytes.count == Self.packedBytes(size, isRGB: isRGB) else {
      throw FFmpegError(function: "unpack", code: cff_error_invalid_data())
    }
    unsafe bytes.withUnsafeBufferPointer { bytes in
      var source = bytes.baseAddress!
      for (index, (columns, rows)) in Self.planeSizes(size, isRGB: isRGB).enumerated() {
        let (start, stride) = unsafe plane(index)
        unsafe av_image_copy_plane(start, Int32(stride), source, Int32(columns), Int32(columns), Int32(rows))
        unsafe source += columns * rows
      }
    }
  }
}
