// The pictures of a published segment's frames, decoded from its file and made to fit a box. What cannot be decoded is an
// error that names the file, never a guess.

import FileSystem
import FrameBatches
import ISOMedia

package final class SegmentPictures {
  /// What the pictures are wanted for.
  package enum Form {
    /// To be coded as JPEG: the planes are those of the film.
    case planar
    /// To be drawn on.
    case rgb
  }

  private let form: Form
  private let reader: VideoReader
  /// Kept from segment to segment: pictures of a session mostly have one size.
  private let converter = PictureConverter()

  /// - Parameter reader: where files are decoded.
  package init(_ form: Form, _ reader: VideoReader) {
    self.form = form
    self.reader = reader
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
      size: size, coded: coded, starts: frames.map { MediaTime.ticks(ms: starts[$0]) }, box: box, isRGB: form == .rgb)
    return try blaming(segment.file) { try reader.pictures(of: segment, bytes, order, converter) }
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

  /// What FFmpeg cannot read is the file's fault; lack of memory is not.
  private func blaming<R>(_ file: String, _ work: () throws -> R) throws -> R {
    do {
      return try work()
    } catch let failure as FFmpegError where !failure.isOutOfMemory {
      throw BadSession(file, "\(failure)")
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
