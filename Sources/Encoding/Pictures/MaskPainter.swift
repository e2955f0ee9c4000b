// Paints rectangles, in place: masks before the picture is converted or seen by anything else, and once more on the planes
// that are coded.

import CFFmpeg
import FileSystem
import FrameBatches

enum MaskPainter {
  /// - Parameter picture: 8-bit planar YUV (full range, BT.601), grey, RGB24 or RGBA; of a grey one no mask has a colour.
  static func paint(_ masks: Masks, on picture: FrameBuffer) throws(FFmpegError) {
    let all = Mask(x: 0, y: 0, width: Double(picture.width), height: Double(picture.height))
    let rectangles =
      switch masks {
      case .rectangles(let list): list
      case .everything: [all]
      }
    if rectangles.isEmpty { return }
    try picture.makeWritable()
    for mask in rectangles {
      let (columns, rows) = mask.pixels(width: picture.width, height: picture.height)
      if columns.isEmpty || rows.isEmpty { continue }
      let colour = mask.colour
      switch picture.format {
      case AV_PIX_FMT_RGB24:
        fill(picture.plane(0), columns, rows, with: [colour.red, colour.green, colour.blue])
      case AV_PIX_FMT_RGBA:
        fill(picture.plane(0), columns, rows, with: [colour.red, colour.green, colour.blue, 255])
      case AV_PIX_FMT_GRAY8:
        fill(picture.plane(0), columns, rows, with: [colour.yuv.y])
      default:
        fill(picture.plane(0), columns, rows, with: [colour.yuv.y])
        var (across, down): (Int32, Int32) = (0, 0)
        try check("av_pix_fmt_get_chroma_sub_sample", av_pix_fmt_get_chroma_sub_sample(picture.format, &across, &down))
        for (plane, value) in [(1, colour.yuv.u), (2, colour.yuv.v)] {
          fill(picture.plane(plane), outward(columns, Int(across)), outward(rows, Int(down)), with: [value])
        }
      }
    }
  }

  /// Every chroma sample that has a part in the range.
  private static func outward(_ range: Range<Int>, _ shift: Int) -> Range<Int> {
    range.lowerBound >> shift..<(range.upperBound + (1 << shift) - 1) >> shift
  }

  private static func fill(
    _ plane: (start: UnsafeMutablePointer<UInt8>, stride: Int), _ columns: Range<Int>, _ rows: Range<Int>,
    with pixel: [UInt8]
  ) {
    for row in rows {
      let line = plane.start + row * plane.stride + columns.lowerBound * pixel.count
      for (channel, value) in pixel.enumerated() {
        for column in 0..<columns.count { line[column * pixel.count + channel] = value }
      }
    }
  }
}

extension Masks {
  /// Whether a grey picture cannot hold them.
  var haveColours: Bool {
    guard case .rectangles(let list) = self else { return false }
    return list.contains { $0.colour.red != $0.colour.green || $0.colour.green != $0.colour.blue }
  }
}

extension Colour {
  /// As JFIF has it (ITU-T T.871, 7).
  fileprivate var yuv: (y: UInt8, u: UInt8, v: UInt8) {
    let (red, green, blue) = (Double(red), Double(green), Double(blue))
    func byte(_ value: Double) -> UInt8 { UInt8(min(max(value.rounded(), 0), 255)) }
    return (
      byte(0.299 * red + 0.587 * green + 0.114 * blue),
      byte(-0.168736 * red - 0.331264 * green + 0.5 * blue + 128),
      byte(0.5 * red - 0.418688 * green - 0.081312 * blue + 128)
    )
  }
}
