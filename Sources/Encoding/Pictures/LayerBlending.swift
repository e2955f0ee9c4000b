// Layers become one picture: each is blended over the layers below it.

import CFFmpeg
import FrameBatches

extension FrameBuffer {
  /// An RGB24 picture of one colour.
  convenience init(width: Int, height: Int, filledWith colour: Colour) throws(FFmpegError) {
    try self.init(width: width, height: height, format: AV_PIX_FMT_RGB24)
    let all = Mask(x: 0, y: 0, width: Double(width), height: Double(height), colour: colour)
    try MaskPainter.paint(.rectangles([all]), on: self)
  }

  /// Whether a layer of this size at this position has a visible part.
  func meets(x: Int, y: Int, _ size: PixelSize) -> Bool {
    x < width && y < height && x + size.width > 0 && y + size.height > 0
  }

  /// Blends a layer over this RGB24 picture; parts outside the picture are cut off.
  ///
  /// - Parameters:
  ///   - layer: RGBA, colours multiplied by alpha.
  ///   - opacity: 0 to 1; multiplies the layer's alpha.
  func blend(_ layer: FrameBuffer, x: Int, y: Int, opacity: Double) {
    let columns = max(0, -x)..<max(max(0, -x), min(layer.width, width - x))
    let rows = max(0, -y)..<max(max(0, -y), min(layer.height, height - y))
    let strength = Int((opacity * 255).rounded())
    let (from, to) = unsafe (layer.plane(0), plane(0))
    for row in rows {
      let input = unsafe from.start + row * from.stride
      let output = unsafe to.start + (y + row) * to.stride + 3 * x
      for column in columns {
        // In 65 025ths, the square of 255.
        let cover = unsafe Int(input[4 * column + 3]) * strength
        for channel in 0..<3 {
          let (above, below) = unsafe (Int(input[4 * column + channel]), Int(output[3 * column + channel]))
          let mixed = (above * strength * 255 + below * (65_025 - cover) + 32_512) / 65_025
          // Scaling overshoots at edges.
          unsafe output[3 * column + channel] = UInt8(min(mixed, 255))
        }
      }
    }
  }

  /// Multiplies the colours of RGBA by its alpha, in place, as scaling needs them.
  func premultiply() throws(FFmpegError) {
    try makeWritable()
    let (start, stride) = unsafe plane(0)
    for row in 0..<height {
      let line = unsafe start + row * stride
      for pixel in 0..<width where unsafe line[4 * pixel + 3] != 255 {
        let alpha = unsafe Int(line[4 * pixel + 3])
        for channel in 0..<3 {
          unsafe line[4 * pixel + channel] = UInt8((Int(line[4 * pixel + channel]) * alpha + 127) / 255)
        }
      }
    }
  }
}
