// Layers become one picture: each over what lies below it.

import CFFmpeg
import FrameBatches

/// A picture that layers are laid on, the lowest first.
struct Canvas {
  /// RGB24.
  package let picture: FrameBuffer

  /// - Parameter background: what shows where no layer is.
  init(width: Int, height: Int, background: Colour) throws(FFmpegError) {
    picture = try FrameBuffer(width: width, height: height, format: AV_PIX_FMT_RGB24)
    let all = Mask(x: 0, y: 0, width: Double(width), height: Double(height), colour: background)
    try MaskPainter.paint(.rectangles([all]), on: picture)
  }

  /// Whether anything of an image of this size would be seen.
  func meets(x: Int, y: Int, _ size: PixelSize) -> Bool {
    x < picture.width && y < picture.height && x + size.width > 0 && y + size.height > 0
  }

  /// Lays an image on the picture; what lies outside is cut off.
  ///
  /// - Parameters:
  ///   - image: RGBA, colours multiplied by alpha.
  ///   - x: where its left column goes.
  ///   - y: where its top row goes.
  ///   - opacity: 0 to 1, times the image's own.
  package func lay(_ image: FrameBuffer, x: Int, y: Int, opacity: Double) {
    let columns = max(0, -x)..<max(max(0, -x), min(image.width, picture.width - x))
    let rows = max(0, -y)..<max(max(0, -y), min(image.height, picture.height - y))
    let strength = Int((opacity * 255).rounded())
    let (from, to) = (image.plane(0), picture.plane(0))
    for row in rows {
      let input = from.start + row * from.stride
      let output = to.start + (y + row) * to.stride + 3 * x
      for column in columns {
        // In 255ths of a 255th.
        let cover = Int(input[4 * column + 3]) * strength
        for channel in 0..<3 {
          let (above, below) = (Int(input[4 * column + channel]), Int(output[3 * column + channel]))
          let mixed = (above * strength * 255 + below * (65_025 - cover) + 32_512) / 65_025
          // Scaling overshoots at edges.
          output[3 * column + channel] = UInt8(min(mixed, 255))
        }
      }
    }
  }
}

extension FrameBuffer {
  /// Multiplies the colours of RGBA by its alpha, in place: only so can they be scaled.
  func premultiply() throws(FFmpegError) {
    try makeWritable()
    let (start, stride) = plane(0)
    for row in 0..<height {
      let line = start + row * stride
      for pixel in 0..<width where line[4 * pixel + 3] != 255 {
        let alpha = Int(line[4 * pixel + 3])
        for channel in 0..<3 {
          line[4 * pixel + channel] = UInt8((Int(line[4 * pixel + channel]) * alpha + 127) / 255)
        }
      }
    }
  }
}
