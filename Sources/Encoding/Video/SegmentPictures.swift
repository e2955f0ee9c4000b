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
    let size = PixelSize(width: segment.width, height: segment.height)
    let coded = PixelSize(width: segment.codedWidth, height: segment.codedHeight)
    guard size.width <= coded.width, size.height <= coded.height, coded.isWithin(.published) else {
      throw BadSession(segment.file, "pictures of \(size.width)×\(size.height) pixels do not fit their coded size")
    }
    let starts = segment.startsOfFrames
    let order = SegmentPicturesOrder(
      digest: segment.sha256, size: size, coded: coded, starts: frames.map { MediaTime.ticks(ms: starts[$0]) },
      box: box, isRGB: isRGB)
    do {
      return try reader.pictures(of: segment, bytes, order, converter)
    } catch let failure as FFmpegError where !failure.isOutOfMemory {
      throw BadSession(segment.file, "\(failure)")
    }
  }

  /// Opens a segment's video.
  ///
  /// - Parameter name: names the file in errors.
  static func film(of file: any ByteSource, _ name: String) throws -> VideoPictures {
    let reader = try MP4Reader(file)
    guard reader.parameterSets != nil else { throw BadSession(name, "no H.264 track first") }
    return try VideoPictures(reader, track: 0, limits: .published)
  }

  /// Decodes a segment's video and calls `each` with each wanted picture.
  ///
  /// - Parameters:
  ///   - film: decoded up to the first wanted picture at most.
  ///   - name: names the file in errors.
  static func decode(
    _ film: VideoPictures, _ name: String, _ order: SegmentPicturesOrder, _ converter: PictureConverter,
    each: (FrameBuffer) throws -> Void
  ) throws {
    for (index, start) in order.starts.enumerated() {
      guard let picture = try film.picture(at: start) else {
        throw BadSession(name, "wanted picture \(index) has no sample at its instant")
      }
      guard (picture.width, picture.height) == (order.coded.width, order.coded.height) else {
        throw BadSession(name, "a picture of another size than its manifest says")
      }
      try each(converter.fitted(picture, as: order.size, into: order.box, isRGB: order.isRGB))
    }
  }
}
