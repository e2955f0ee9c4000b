// The pictures of a published segment's frames, decoded from its file and made to fit a box. What cannot be decoded is an
// error that names the file, never a guess.

final class SegmentPictures {
  /// What the pictures are wanted for.
  enum Form {
    /// To be coded as JPEG: the planes are those of the film.
    case planar
    /// To be drawn on.
    case rgb
  }

  private let form: Form
  /// Kept from segment to segment: pictures of a session mostly have one size.
  private let converter = PictureConverter()

  init(_ form: Form) { self.form = form }

  /// Decodes up to the last frame that is wanted, and no further.
  ///
  /// - Parameters:
  ///   - bytes: the file that the manifest describes.
  ///   - frames: places in the segment's list of frames, in order.
  ///   - box: how large a picture may be, in pixels; smaller ones stay as they are.
  /// - Returns: a picture a frame.
  /// - Throws: ``BadSession`` when the file is not what the manifest says.
  func pictures(of segment: PublishedSegment, bytes: [UInt8], frames: [Int], fitting box: PixelSize) throws
    -> [FrameBuffer]
  {
    let limits = Limits()
    let size = PixelSize(width: segment.width, height: segment.height)
    let coded = PixelSize(width: segment.codedWidth, height: segment.codedHeight)
    guard size.width <= coded.width, size.height <= coded.height, coded.isWithin(limits) else {
      throw BadSession(segment.file, "pictures of \(size.width)×\(size.height) pixels, coded as others")
    }
    let starts = segment.startsOfFrames
    return try bytes.withUnsafeBytes { buffer in
      try blaming(segment.file) {
        let reader = try MP4Reader(buffer)
        guard reader.parameterSets != nil else { throw BadSession(segment.file, "no H.264 track first") }
        let film = try VideoPictures(reader, track: 0, limits: limits)
        return try frames.map { frame in
          guard let picture = try film.picture(at: MediaTime.ticks(ms: starts[frame])) else {
            throw BadSession(segment.file, "frame \(frame) has no sample at its instant")
          }
          guard (picture.width, picture.height) == (coded.width, coded.height) else {
            throw BadSession(segment.file, "a picture of another size than its manifest says")
          }
          return try converter.fitted(picture, as: size, into: box, isRGB: form == .rgb)
        }
      }
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
  var startsOfFrames: [Int64] {
    var now: Int64 = 0
    return frames.map { frame in
      defer { now += frame.holdMs }
      return now
    }
  }
}
