// The canvas on which the pictures of a file are drawn, one after the other. A viewer's next picture costs the decoding of one.

import CFFmpeg
import FileSystem
import FrameBatches

/// The pictures of one file as viewers show them. Not thread-safe.
final class SequenceCanvas {
  let sequence: ImageSequence
  let file: [UInt8]
  /// RGBA, whose colours are not multiplied by alpha; transparent before the first picture.
  private var canvas: FrameBuffer
  /// The canvas before the last picture, if the next one needs it.
  private var saved: FrameBuffer?
  /// The picture that is drawn next.
  private var next = 0

  /// - Throws: ``RefusedPicture`` for a file without several pictures, or with a canvas beyond the limits; ``FFmpegError``.
  init(_ file: [UInt8], limits: Limits) throws {
    guard let kind = ImageKind(of: file), let sequence = ImageSequence(of: file, kind) else {
      throw RefusedPicture(reason: "invalid data")
    }
    if let excess = sequence.size.excess(of: limits) { throw RefusedPicture(excess) }
    guard min(sequence.size.width, sequence.size.height) > 0 else { throw RefusedPicture(reason: "invalid data") }
    (self.file, self.sequence) = (file, sequence)
    canvas = try Self.transparent(sequence.size)
  }

  /// Whether it is that of a file.
  func isOf(_ file: [UInt8]) -> Bool { haveEqualBytes(self.file[...], file) }

  /// Draws up to a picture.
  ///
  /// - Parameter decode: returns a file's pixels in RGBA.
  /// - Throws: errors of `decode`; ``RefusedPicture`` for a picture that the file does not have.
  /// - Returns: a copy of the canvas.
  func picture(_ index: Int, _ decode: ([UInt8]) throws -> FrameBuffer) throws -> FrameBuffer {
    guard sequence.pictures.indices.contains(index) else { throw RefusedPicture(reason: "no such picture in the file") }
    if index < next { next = 0 }
    if let start = sequence.independent(in: next...index), start > next || start == 0 {
      (canvas, saved, next) = (try Self.transparent(sequence.size), nil, start)
    }
    while next <= index {
      let pixels = try decode(sequence.still(next, of: file))
      guard pixels.size == sequence.pictures[next].size else { throw RefusedPicture(reason: "two sizes in one file") }
      try draw(pixels, sequence.pictures[next], after: next == 0 ? nil : sequence.pictures[next - 1])
      next += 1
    }
    return try Self.copy(canvas)
  }

  private func draw(
    _ pixels: FrameBuffer, _ picture: ImageSequence.Picture, after before: ImageSequence.Picture?
  ) throws(FFmpegError) {
    switch before?.disposal {
    case .clear?: if let before { canvas.clear(x: before.x, y: before.y, before.size) }
    case .restore?: if let saved { canvas = saved }
    case .keep?, nil: break
    }
    saved = picture.disposal == .restore ? try Self.copy(canvas) : nil
    canvas.draw(pixels, x: picture.x, y: picture.y, blends: picture.blends)
  }

  private static func transparent(_ size: PixelSize) throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer(width: size.width, height: size.height, format: AV_PIX_FMT_RGBA)
    result.colourRange = AVCOL_RANGE_JPEG
    result.clear(x: 0, y: 0, size)
    return result
  }

  private static func copy(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    let result = try source.blank(source.size)
    try unsafe check("av_frame_copy", av_frame_copy(result.frame, source.frame))
    return result
  }
}

extension FrameBuffer {
  /// Makes an area of RGBA transparent. Parts beyond the edges are cut off.
  fileprivate func clear(x: Int, y: Int, _ size: PixelSize) {
    let columns = x..<max(x, min(width, x + size.width))
    let (start, stride) = unsafe plane(0)
    for row in y..<max(y, min(height, y + size.height)) where !columns.isEmpty {
      unsafe (start + row * stride + 4 * columns.lowerBound).update(repeating: 0, count: 4 * columns.count)
    }
  }

  /// Draws RGBA over RGBA, or in its place. Parts beyond the edges are cut off.
  fileprivate func draw(_ picture: FrameBuffer, x: Int, y: Int, blends: Bool) {
    let count = min(picture.width, width - x)
    let (from, to) = unsafe (picture.plane(0), plane(0))
    for row in 0..<max(0, min(picture.height, height - y)) where count > 0 {
      let input = unsafe from.start + row * from.stride
      let output = unsafe to.start + (y + row) * to.stride + 4 * x
      guard blends else {
        unsafe output.update(from: input, count: 4 * count)
        continue
      }
      for column in 0..<count { unsafe Self.blend(input + 4 * column, over: output + 4 * column) }
    }
  }

  /// Blends a pixel over another one, both with colours that are not multiplied by alpha.
  private static func blend(_ above: UnsafeMutablePointer<UInt8>, over below: UnsafeMutablePointer<UInt8>) {
    let (cover, base) = unsafe (Int(above[3]), Int(below[3]))
    if cover == 255 || base == 0 {
      unsafe below.update(from: above, count: 4)
    } else if cover > 0 {
      // In 255ths of 255.
      let (own, other) = (255 * cover, base * (255 - cover))
      let all = own + other
      for channel in 0..<3 {
        unsafe below[channel] = UInt8((Int(above[channel]) * own + Int(below[channel]) * other + all / 2) / all)
      }
      unsafe below[3] = UInt8((all + 127) / 255)
    }
  }
}
