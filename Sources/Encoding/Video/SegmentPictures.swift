// The pictures of a published segment's frames, decoded from its file and made to fit a box. A picture that cannot be decoded is
// an error that names the file, never a guess.

import FileSystem
import FrameBatches
import ISOMedia

package final class SegmentPictures {
  private let reader: VideoReader
  private let isRGB: Bool
  /// Kept from segment to segment: pictures of a session mostly have one size.
  private let converter = PictureConverter()

  /// - Parameters:
  ///   - reader: where files are decoded.
  ///   - isRGB: for pictures to draw on; else they have the planes of the film, to be coded as JPEG.
  package init(_ reader: VideoReader, isRGB: Bool) {
    self.reader = reader
    self.isRGB = isRGB
  }

  /// Decodes up to the last frame that is wanted, and no further.
  ///
  /// - Parameters:
  ///   - bytes: the file that the manifest describes.
  ///   - frames: places in the segment's list of frames, in order.
  ///   - box: how large a picture may be, in pixels; smaller ones stay as they are.
  /// - Returns: a picture a frame.
  /// - Throws: ``BadSession`` when the file is not what the manifest says.
  package func pictures(of segment: PublishedSegment, bytes: [UInt8], frames: [Int], fitting box: PixelSize) throws
    -> [FrameBuffer]
  {
    let size = PixelSize(width: segment.width, height: segment.height)
    let coded = PixelSize(width: segment.codedWidth, height: segment.codedHeight)
    guard size.width <= coded.width, size.height <= coded.height, coded.isWithin(Limits()) else {
      throw BadSession(segment.file, "pictures of \(size.width)×\(size.height) pixels, coded as others")
    }
    let starts = segment.startsOfFrames
    let order = SegmentPicturesOrder(
      size: size, coded: coded, starts: frames.map { MediaTime.ticks(ms: starts[$0]) }, box: box, isRGB: isRGB)
    do {
      return try reader.pictures(of: segment, bytes, order, converter)
    } catch let failure as FFmpegError where !failure.isOutOfMemory {
      throw BadSession(segment.file, "\(failure)")
    }
  }

  /// Decodes a segment's file.
  ///
  /// - Parameters:
  ///   - name: what to call the file in messages.
  ///   - each: called with each picture that is wanted.
  package static func decode(
    _ file: any ByteSource, _ name: String, _ order: SegmentPicturesOrder, _ converter: PictureConverter,
    each: (FrameBuffer) throws -> Void
  ) throws {
    let reader = try MP4Reader(file)
    guard reader.parameterSets != nil else { throw BadSession(name, "no H.264 track first") }
    let film = try VideoPictures(reader, track: 0, limits: Limits())
    for (index, start) in order.starts.enumerated() {
      guard let picture = try film.picture(at: start) else {
        throw BadSession(name, "picture \(index) of those that are wanted has no sample at its instant")
      }
      guard (picture.width, picture.height) == (order.coded.width, order.coded.height) else {
        throw BadSession(name, "a picture of another size than its manifest says")
      }
      try each(converter.fitted(picture, as: order.size, into: order.box, isRGB: order.isRGB))
    }
  }
}

extension PublishedSegment {
  /// When each frame comes on screen, in milliseconds from the segment's start.
  package var startsOfFrames: [Int64] {
    var now: Int64 = 0
    return frames.map { frame in
      defer { now += frame.holdMs }
      return now
    }
  }
}
