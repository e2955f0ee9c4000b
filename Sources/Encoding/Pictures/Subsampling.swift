// Converts a paintable image to planar 4:2:0, full range, BT.601. A chroma sample is the mean of two by two pixels; at the end of
// an odd side the last pixels count twice. libswscale is no alternative: its filters span eight pixels and ring, and it stretches
// the chroma of an odd side.

import CFFmpeg
import FileSystem

extension FrameBuffer {
  /// - Precondition: 8-bit planar YUV of full range, grey or RGB: a result of ``PictureConverter/paintable(_:)``.
  func subsampled() throws(FFmpegError) -> FrameBuffer {
    guard format != AV_PIX_FMT_YUVJ420P else { return self }
    let result = try FrameBuffer(width: width, height: height, format: AV_PIX_FMT_YUV420P)
    if format == AV_PIX_FMT_RGB24 {
      convertRGB(into: result)
    } else {
      let (from, to) = (plane(0), result.plane(0))
      av_image_copy_plane(to.start, Int32(to.stride), from.start, Int32(from.stride), Int32(width), Int32(height))
      for plane in 1...2 { try averageChroma(plane, into: result) }
    }
    return result
  }

  /// Applies JFIF's matrix (ITU-T T.871, 7), in 65 536ths.
  private func convertRGB(into result: FrameBuffer) {
    let from = plane(0)
    let (luma, blue, red) = (result.plane(0), result.plane(1), result.plane(2))
    for pair in 0..<(height + 1) / 2 {
      let rows = (2 * pair, min(2 * pair + 1, height - 1))
      let upper = UnsafePointer(from.start) + rows.0 * from.stride
      let lower = UnsafePointer(from.start) + rows.1 * from.stride
      Self.luma(of: upper, width, into: luma.start + rows.0 * luma.stride)
      Self.luma(of: lower, width, into: luma.start + rows.1 * luma.stride)
      let (blues, reds) = (blue.start + pair * blue.stride, red.start + pair * red.stride)
      for column in 0..<(width + 1) / 2 {
        let (left, right) = (6 * column, 3 * min(2 * column + 1, width - 1))
        func sum(_ channel: Int) -> Int32 {
          let (a, b) = (Int32(upper[left &+ channel]), Int32(upper[right &+ channel]))
          let (c, d) = (Int32(lower[left &+ channel]), Int32(lower[right &+ channel]))
          return a &+ b &+ c &+ d
        }
        let (r, g, b) = (sum(0), sum(1), sum(2))
        // The sums of four pixels have 262 144ths; the constant is 128.5. Pure blue or red reaches 255.5, hence the bound.
        blues[column] = UInt8(min(255, (-11_059 &* r &- 21_709 &* g &+ 32_768 &* b &+ 33_685_504) >> 18))
        reds[column] = UInt8(min(255, (32_768 &* r &- 27_439 &* g &- 5_329 &* b &+ 33_685_504) >> 18))
      }
    }
  }

  private static func luma(of row: UnsafePointer<UInt8>, _ width: Int, into luma: UnsafeMutablePointer<UInt8>) {
    for column in 0..<width {
      let (r, g, b) = (Int32(row[3 &* column]), Int32(row[3 &* column &+ 1]), Int32(row[3 &* column &+ 2]))
      luma[column] = UInt8(truncatingIfNeeded: (19_595 &* r &+ 38_470 &* g &+ 7_471 &* b &+ 32_768) >> 16)
    }
  }

  /// Averages the samples of a chroma plane for two by two pixels; those of a grey picture are neutral.
  private func averageChroma(_ index: Int, into result: FrameBuffer) throws(FFmpegError) {
    let to = result.plane(index)
    let (columns, rows) = ((width + 1) / 2, (height + 1) / 2)
    guard format != AV_PIX_FMT_GRAY8 else {
      for row in 0..<rows { (to.start + row * to.stride).update(repeating: 128, count: columns) }
      return
    }
    let shifts = try chromaShifts()
    let (across, down) = (shifts.x == 0, shifts.y == 0)
    let from = plane(index)
    for row in 0..<rows {
      let upper = from.start + (down ? 2 * row : row) * from.stride
      let lower = down ? from.start + min(2 * row + 1, height - 1) * from.stride : upper
      let line = to.start + row * to.stride
      for column in 0..<columns {
        let left = across ? 2 * column : column
        let right = across ? min(2 * column + 1, width - 1) : left
        let sum = UInt32(upper[left]) + UInt32(upper[right]) + UInt32(lower[left]) + UInt32(lower[right])
        line[column] = UInt8((sum + 2) / 4)
      }
    }
  }
}
