// Draws an overlay over a picture that is about to be coded. Masks are painted long before: an overlay covers pixels, and never
// shows any again.

import CFFmpeg
import FrameBatches

extension Picture {
  /// Black and white in limited range, and no colour (ITU-R BT.601).
  private static let (black, white, neutral) = (UInt8(16), UInt8(235), UInt8(128))

  /// Returns a copy with texts; the picture itself if there are none.
  package func overlaid(with boxes: [OverlayBox]) throws(FFmpegError) -> Picture {
    if boxes.isEmpty { return self }
    // A decoder may still need this picture, and its memory may be read-only.
    let copy = try FrameBuffer(width: codedWidth, height: codedHeight, format: AV_PIX_FMT_YUV420P)
    try unsafe check("av_frame_copy", av_frame_copy(copy.frame, buffer.frame))
    // The padding is made again of the new edge.
    copy.crop(width: width, height: height)
    copy.hasRoom = true
    for box in boxes { Self.draw(box, on: copy) }
    return try Picture(adopting: copy)
  }

  private static func draw(_ box: OverlayBox, on picture: FrameBuffer) {
    fill(box.area, 0, black, on: picture)
    let chroma = SheetArea(
      x: box.area.x / 2, y: box.area.y / 2, width: box.area.width / 2, height: box.area.height / 2)
    for plane in 1...2 { fill(chroma, plane, neutral, on: picture) }
    let (width, height) = (BitmapFont.columns * box.scale, BitmapFont.rows * box.scale)
    for (index, letter) in box.text.enumerated() {
      let left = box.origin.x + index * BitmapFont.advance * box.scale
      for y in 0..<height {
        for x in 0..<width where BitmapFont.isSet(letter, enlarged: box.scale, x: x, y: y) {
          fill(SheetArea(x: left + x, y: box.origin.y + y, width: 1, height: 1), 0, white, on: picture)
        }
      }
    }
  }

  /// Sets the samples of a plane in an area, which is cut off at the picture's edges.
  private static func fill(_ area: SheetArea, _ index: Int, _ sample: UInt8, on picture: FrameBuffer) {
    let shift = index == 0 ? 0 : 1
    let (columns, rows) = ((picture.width + shift) >> shift, (picture.height + shift) >> shift)
    let (left, right) = (max(0, area.x), min(columns, area.x + area.width))
    let (top, bottom) = (max(0, area.y), min(rows, area.y + area.height))
    guard left < right, top < bottom else { return }
    let (start, stride) = unsafe picture.plane(index)
    for row in top..<bottom { unsafe (start + row * stride + left).update(repeating: sample, count: right - left) }
  }
}
