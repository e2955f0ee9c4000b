// Paints masks in place, before other code sees or converts the picture, and again on the planes that are coded.

import CFFmpeg
import FileSystem
import FrameBatches

enum MaskPainter {
  /// - Parameter picture: 8-bit planar YUV (BT.601, full range or as coded), grey with grey masks, RGB24 or RGBA.
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
      let yuv = picture.isCoded ? colour.limitedYUV : colour.yuv
      switch picture.format {
      case AV_PIX_FMT_RGB24: fill(picture, 0, columns, rows, with: [colour.red, colour.green, colour.blue])
      case AV_PIX_FMT_RGBA: fill(picture, 0, columns, rows, with: [colour.red, colour.green, colour.blue, 255])
      case AV_PIX_FMT_GRAY8: fill(picture, 0, columns, rows, with: [yuv.y])
      default:
        fill(picture, 0, columns, rows, with: [yuv.y])
        let shifts = try picture.chromaShifts()
        for (plane, value) in [(1, yuv.u), (2, yuv.v)] {
          fill(picture, plane, outward(columns, shifts.x), outward(rows, shifts.y), with: [value])
        }
      }
    }
  }

  /// Returns all chroma samples that have a part in the range.
  private static func outward(_ range: Range<Int>, _ shift: Int) -> Range<Int> {
    range.lowerBound >> shift..<(range.upperBound + (1 << shift) - 1) >> shift
  }

  private static func fill(
    _ picture: FrameBuffer, _ index: Int, _ columns: Range<Int>, _ rows: Range<Int>, with pixel: [UInt8]
  ) {
    let plane = unsafe picture.plane(index)
    for row in rows {
      let line = unsafe plane.start + row * plane.stride + columns.lowerBound * pixel.count
      for (channel, value) in pixel.enumerated() {
        for column in 0..<columns.count { unsafe line[column * pixel.count + channel] = value }
      }
    }
  }
}

extension Masks {
  /// Whether a grey picture cannot show the masks.
  var haveColours: Bool {
    guard case .rectangles(let list) = self else { return false }
    return list.contains { $0.colour.red != $0.colour.green || $0.colour.green != $0.colour.blue }
  }
}

extension Colour {
  /// The colour in the limited range of segments.
  fileprivate var limitedYUV: (y: UInt8, u: UInt8, v: UInt8) {
    let full = yuv
    return (
      FrameBuffer.limited(full.y, isLuma: true), FrameBuffer.limited(full.u, isLuma: false),
      FrameBuffer.limited(full.v, isLuma: false)
    )
  }

  /// The colour in JFIF (ITU-T T.871, 7).
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
