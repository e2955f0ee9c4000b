// Encodes an animated WebP (RFC 9649, 2.7). A picture is the rectangle of the blocks that change, transparent where none does,
// encoded by libavcodec's libwebp as a still image. The container is ours: that of libwebp holds the last picture for as long as the
// others on average, and all of them in memory.

import CFFmpeg
import FrameBatches

final class WebPEncoder: AnimatedPictureEncoder {
  let headBytes = 44
  let tail = FilmMark.webPTail
  private let size: PixelSize
  private var canvas: AnimationCanvas
  private var hasTransparency = false

  init(_ size: PixelSize) throws(MissingEncoder) {
    try Self.requireLibrary()
    self.size = size
    canvas = AnimationCanvas(size, grain: .block)
  }

  static func requireLibrary() throws(MissingEncoder) {
    _ = try unsafe ImageFile.encoder(named: ImageFile.webpEncoder)
  }

  func head(pictureBytes: Int) -> [UInt8] {
    var head = Array("RIFF".utf8)
    head.append(littleEndian: headBytes - 8 + pictureBytes + tail.count, bytes: 4)
    head += Array("WEBPVP8X".utf8)
    head.append(littleEndian: 10, bytes: 4)
    // An animation, which may have transparent parts.
    let flags: UInt8 = hasTransparency ? 0x12 : 0x02
    head += [flags, 0, 0, 0]
    head.append(littleEndian: size.width - 1, bytes: 3)
    head.append(littleEndian: size.height - 1, bytes: 3)
    head += Array("ANIM".utf8)
    head.append(littleEndian: 6, bytes: 4)
    // Black behind the pictures; 0 repeats for ever.
    return head + [0, 0, 0, 0xFF, 0, 0]
  }

  func encode(_ picture: FrameBuffer) throws -> StoredPicture? {
    guard let change = canvas.draw(picture) else { return nil }
    let image = try FrameBuffer(width: change.area.width, height: change.area.height, format: AV_PIX_FMT_BGRA)
    let (start, stride) = unsafe image.plane(0)
    for (pixel, isDrawn) in change.isDrawn.enumerated() {
      let (y, x) = pixel.quotientAndRemainder(dividingBy: change.area.width)
      let target = unsafe start + y * stride + 4 * x
      for channel in 0..<3 { unsafe target[channel] = change.pixels[3 * pixel + 2 - channel] }
      unsafe target[3] = isDrawn ? 255 : 0
    }
    return try frame(image, change.area, isWhole: change.isWhole)
  }

  func unchanged() throws -> StoredPicture {
    let pixel = try FrameBuffer(width: 1, height: 1, format: AV_PIX_FMT_BGRA)
    let start = unsafe pixel.plane(0).start
    for channel in 0..<4 { unsafe start[channel] = 0 }
    return try frame(pixel, SheetArea(x: 0, y: 0, width: 1, height: 1), isWhole: false)
  }

  private func frame(_ image: FrameBuffer, _ area: SheetArea, isWhole: Bool) throws -> StoredPicture {
    let file = try ImageFile.webp(image)
    hasTransparency = hasTransparency || !isWhole
    let chunks = ImageChunk.chunks(of: file, .webp, from: 12).filter { ["ALPH", "VP8 ", "VP8L"].contains($0.name) }
    var body: [UInt8] = []
    // Positions are in pairs of pixels.
    for value in [area.x / 2, area.y / 2, area.width - 1, area.height - 1, 0] {
      body.append(littleEndian: value, bytes: 3)
    }
    // A whole rectangle replaces the pixels below it, others are blended.
    body.append(isWhole ? 2 : 0)
    for chunk in chunks { body += file[chunk.range] }
    var bytes = Array("ANMF".utf8)
    bytes.append(littleEndian: body.count, bytes: 4)
    return StoredPicture(bytes + body, holdAt: 8 + 12, size: 3)
  }
}
