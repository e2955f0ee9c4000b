// Converts a paintable image to planar 4:2:0, full range, BT.601. A chroma sample is the mean of two by two pixels; at the end of
// an odd side the last pixels count twice. libswscale is no alternative: its filters span eight pixels and ring, and it stretches
// the chroma of an odd side.

import CFFmpeg
import CPixels
import FileSystem

extension FrameBuffer {
  /// - Precondition: 8-bit planar YUV, grey or RGB: a result of ``PictureConverter/paintable(_:)``.
  func subsampled() throws(FFmpegError) -> FrameBuffer {
    if format == AV_PIX_FMT_YUVJ420P || isCoded { return self }
    let result = try FrameBuffer(width: width, height: height, format: AV_PIX_FMT_YUV420P)
    if format == AV_PIX_FMT_RGB24 {
      convertRGB(into: result)
    } else {
      let (from, to) = unsafe (plane(0), result.plane(0))
      unsafe av_image_copy_plane(
        to.start, Int32(to.stride), from.start, Int32(from.stride), Int32(width), Int32(height))
      for plane in 1...2 { try averageChroma(plane, into: result) }
    }
    return result
  }

  private func convertRGB(into result: FrameBuffer) {
    let from = unsafe plane(0)
    let (luma, blue, red) = unsafe (result.plane(0), result.plane(1), result.plane(2))
    for pair in 0..<(height + 1) / 2 {
      let (upper, lower) = (2 * pair, min(2 * pair + 1, height - 1))
      unsafe cpx_subsample(
        from.start + upper * from.stride, from.start + lower * from.stride, width,
        luma.start + upper * luma.stride, luma.start + lower * luma.stride,
        blue.start + pair * blue.stride, red.start + pair * red.stride)
    }
  }

  /// Averages the samples of a chroma plane for two by two pixels; those of a grey picture are neutral.
  private func averageChroma(_ index: Int, into result: FrameBuffer) throws(FFmpegError) {
    let to = unsafe result.plane(index)
    let (columns, rows) = ((width + 1) / 2, (height + 1) / 2)
    guard format != AV_PIX_FMT_GRAY8 else {
      for row in 0..<rows { unsafe (to.start + row * to.stride).update(repeating: 128, count: columns) }
      return
    }
    let shifts = try chromaShifts()
    let (across, down) = (shifts.x == 0, shifts.y == 0)
    let from = unsafe plane(index)
    for row in 0..<rows {
      let upper = unsafe from.start + (down ? 2 * row : row) * from.stride
      let lower = unsafe down ? from.start + min(2 * row + 1, height - 1) * from.stride : upper
      let line = unsafe to.start + row * to.stride
      for column in 0..<columns {
        let left = across ? 2 * column : column
        let right = across ? min(2 * column + 1, width - 1) : left
        let sum = unsafe UInt32(upper[left]) + UInt32(upper[right]) + UInt32(lower[left]) + UInt32(lower[right])
        unsafe line[column] = UInt8((sum + 2) / 4)
      }
    }
  }
}
