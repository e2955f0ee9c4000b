import CFFmpeg
import Testing

@testable import Encoding

/// The conversion from full range to limited range.
@Suite struct LimitedRangeTests {
  @Test(arguments: [(256, 2), (255, 3), (2, 256)]) func eachSampleIsTheNearest(width: Int, height: Int) throws {
    let picture = try FrameBuffer(width: width, height: height, format: AV_PIX_FMT_YUVJ420P)
    for index in 0..<3 {
      let (start, stride) = picture.plane(index)
      let (columns, rows) = index == 0 ? (width, height) : ((width + 1) / 2, (height + 1) / 2)
      for row in 0..<rows {
        for column in 0..<columns { start[row * stride + column] = UInt8((row + 2 * column) % 256) }
      }
    }
    try picture.limitRange()
    #expect(picture.format == AV_PIX_FMT_YUV420P && picture.frame.pointee.color_range == AVCOL_RANGE_MPEG)
    for index in 0..<3 {
      let (start, stride) = picture.plane(index)
      let (columns, rows) = index == 0 ? (width, height) : ((width + 1) / 2, (height + 1) / 2)
      for row in 0..<rows {
        for column in 0..<columns {
          let value = Double((row + 2 * column) % 256)
          let wanted = index == 0 ? 16 + 219 * value / 255 : 128 + 224 * (value - 128) / 255
          #expect(abs(Double(start[row * stride + column]) - wanted) <= 0.5)
        }
      }
    }
  }
}
