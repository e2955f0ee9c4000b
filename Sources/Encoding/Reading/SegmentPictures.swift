import FileSystem
import FrameBatches
import ISOMedia

/// Decodes frames of published segments and scales them into a box. A picture that cannot be decoded is an error that names
/// the file.
package final class SegmentPictures {
  private let reader: VideoReader
  private let isRGB: Bool
  /// Reused for all segments: most pictures of a session have one size.
  private let converter = PictureConverter()

  /// - Parameter isRGB: true for pictures to draw on; false for the planes of the film, to be encoded as JPEG.
  package init(_ reader: VideoReader, isRGB: Bool) {
    self.reader = reader
    self.isRGB = isRGB
  }

  /// Decodes a segment up to the last of the wanted frames.
  ///
  /// - Parameters:
  ///   - bytes: the segment's video.
  ///   - frames: indexes in the segment's list of frames, in order.
  ///   - box: the maximum size of a picture; smaller pictures keep their size.
  /// - Returns: one picture for each of `frames`.
  /// - Throws: ``BadSession`` if the video does not match its manifest.
  package func pictures(of segment: PublishedSegment, bytes: [UInt8], frames: [Int], fitting box: PixelSize) throws
    -> [FrameBuffer]
  {
    let order = try order(segment, frames, box)
    return try requiringSound(segment) { try reader.pictures(of: segment, bytes, order, converter) }
  }

  /// Bytes of pictures that are decoded at once.
  private static let batchBytes = 16 << 20

  /// Decodes a segment up to the last of the wanted frames, with few pictures in memory at a time.
  ///
  /// - Parameter body: called for each of `frames`. Its errors are thrown as they are.
  /// - Throws: ``BadSession`` if the video does not match its manifest.
  package func forEachPicture(
    of segment: PublishedSegment, bytes: [UInt8], frames: [Int], fitting box: PixelSize,
    _ body: (FrameBuffer) throws -> Void
  ) throws {
    let picture = try FrameBuffer.packedBytes(order(segment, [], box).fitted, isRGB: isRGB)
    let count = max(1, Self.batchBytes / picture)
    let batches = stride(from: 0, to: frames.count, by: count).map { frames[$0..<min($0 + count, frames.count)] }
    guard reader.decoders == nil else {
      // A decoder keeps the video open.
      for frames in batches {
        try pictures(of: segment, bytes: bytes, frames: Array(frames), fitting: box).forEach(body)
      }
      return
    }
    try bytes.withFile { file in
      let film = try requiringSound(segment) { try VideoPictures.ofSegment(file, segment.file) }
      for frames in batches {
        let order = try order(segment, Array(frames), box)
        var decoded: [FrameBuffer] = []
        try requiringSound(segment) {
          try order.decode(film, segment.file, converter) { decoded.append($0) }
        }
        try decoded.forEach(body)
      }
    }
  }

  private func order(_ segment: PublishedSegment, _ frames: [Int], _ box: PixelSize) throws -> SegmentPicturesOrder {
    let size = PixelSize(width: segment.width, height: segment.height)
    let coded = PixelSize(width: segment.codedWidth, height: segment.codedHeight)
    guard size.width <= coded.width, size.height <= coded.height, coded.isWithin(.published) else {
      throw BadSession(segment.file, "pictures of \(size.width)×\(size.height) pixels do not fit their coded size")
    }
    let starts = segment.startsOfFrames
    return SegmentPicturesOrder(
      digest: segment.sha256, size: size, coded: coded, starts: frames.map { MediaTime.ticks(ms: starts[$0]) },
      box: box, isRGB: isRGB)
  }

  private func requiringSound<R>(_ segment: PublishedSegment, _ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch let failure as FFmpegError where !failure.isOutOfMemory {
      throw BadSession(segment.file, "\(failure)")
    }
  }
}
