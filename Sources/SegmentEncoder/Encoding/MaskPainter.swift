// Paints masks black, in place, before the picture is converted or seen by anything else.

import CFFmpeg

enum MaskPainter {
  /// - Parameter picture: 8-bit planar YUV, grey, or RGB, as ``PictureConverter/paintable(_:)`` gives it.
  static func paint(_ masks: Masks, on picture: FrameBuffer) throws(FFmpegError) {
    let rectangles: [(x: Range<Int>, y: Range<Int>)]
    switch masks {
    case .none: return
    case .rectangles(let list):
      rectangles = list.map { $0.pixels(width: picture.width, height: picture.height) }
    case .everything: rectangles = [(0..<picture.width, 0..<picture.height)]
    }
    try picture.makeWritable()
    for rectangle in rectangles where !rectangle.x.isEmpty && !rectangle.y.isEmpty {
      if picture.format == AV_PIX_FMT_RGB24 {
        let bytes = rectangle.x.lowerBound * 3..<rectangle.x.upperBound * 3
        fill(picture.plane(0), bytes, rectangle.y, with: 0)
        continue
      }
      fill(picture.plane(0), rectangle.x, rectangle.y, with: 0)
      guard picture.format != AV_PIX_FMT_GRAY8 else { continue }
      var (acrossShift, downShift): (Int32, Int32) = (0, 0)
      try check(
        "av_pix_fmt_get_chroma_sub_sample", av_pix_fmt_get_chroma_sub_sample(picture.format, &acrossShift, &downShift))
      for plane in 1...2 {
        fill(
          picture.plane(plane), outward(rectangle.x, Int(acrossShift)), outward(rectangle.y, Int(downShift)), with: 128)
      }
    }
  }

  /// Every chroma sample that has a part in the range.
  private static func outward(_ range: Range<Int>, _ shift: Int) -> Range<Int> {
    range.lowerBound >> shift..<(range.upperBound + (1 << shift) - 1) >> shift
  }

  private static func fill(
    _ plane: (start: UnsafeMutablePointer<UInt8>, stride: Int), _ bytes: Range<Int>, _ rows: Range<Int>,
    with value: UInt8
  ) {
    for row in rows {
      (plane.start + row * plane.stride + bytes.lowerBound).update(repeating: value, count: bytes.count)
    }
  }
}
