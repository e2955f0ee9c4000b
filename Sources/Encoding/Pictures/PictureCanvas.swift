// One canvas for pictures of several sizes: each is shown whole, in the middle, with black around it.

import CFFmpeg
import FrameBatches

extension Picture {
  /// Black in limited range, in each plane.
  private static let black: [UInt8] = [16, 128, 128]

  /// Returns the picture on a canvas; a larger one is scaled into it. Itself if it has the size of the canvas.
  ///
  /// - Parameter canvas: even sides.
  func placed(on canvas: PixelSize, with converter: PictureConverter) throws(FFmpegError) -> Picture {
    guard size != canvas else { return self }
    let fitted = size.fitted(into: canvas)
    let inner = fitted == size ? buffer : try converter.scaled(coded: buffer, visible: size, to: fitted)
    let result = try FrameBuffer(width: canvas.width, height: canvas.height, format: AV_PIX_FMT_YUV420P)
    // Chroma samples have two pixels: an odd edge loses its last one.
    let columns = fitted.width - fitted.width % 2
    let rows = fitted.height - fitted.height % 2
    let (left, top) = ((canvas.width - columns) / 4 * 2, (canvas.height - rows) / 4 * 2)
    for index in 0..<3 {
      let shift = index == 0 ? 0 : 1
      let (source, target) = unsafe (inner.plane(index), result.plane(index))
      for row in 0..<(canvas.height >> shift) {
        unsafe (target.start + row * target.stride).update(repeating: Self.black[index], count: canvas.width >> shift)
      }
      for row in 0..<(rows >> shift) {
        let place = unsafe target.start + (row + (top >> shift)) * target.stride + (left >> shift)
        unsafe place.update(from: source.start + row * source.stride, count: columns >> shift)
      }
    }
    return try Picture(adopting: result)
  }
}
