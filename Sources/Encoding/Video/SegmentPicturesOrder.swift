import FileSystem
import FrameBatches
import ISOMedia

/// The pictures of a published segment that a sheet, a thumbnail or a single image shows.
package struct SegmentPicturesOrder: Equatable {
  /// The digest of the file: a decoder that has it open goes on where it is.
  let digest: String
  /// The size as captured, and as coded.
  let size: PixelSize
  let coded: PixelSize
  /// The starts of the wanted frames, in order, in ticks from the segment's start.
  let starts: [Int64]
  /// Maximum size of a picture; smaller ones keep their size.
  let box: PixelSize
  /// Whether the pictures are RGB, for drawing; otherwise they keep the planes of the film, for JPEG.
  let isRGB: Bool

  var fitted: PixelSize { size.fitted(into: box) }
}

extension SegmentPicturesOrder {
  /// Decodes a segment's video and calls `each` with each wanted picture.
  ///
  /// - Parameters:
  ///   - film: decoded up to the first wanted picture at most.
  ///   - name: names the file in errors.
  func decode(
    _ film: VideoPictures, _ name: String, _ converter: PictureConverter, each: (FrameBuffer) throws -> Void
  ) throws {
    for (index, start) in starts.enumerated() {
      guard let picture = try film.picture(at: start) else {
        throw BadSession(name, "wanted picture \(index) has no sample at its instant")
      }
      guard (picture.width, picture.height) == (coded.width, coded.height) else {
        throw BadSession(name, "a picture of another size than its manifest says")
      }
      try each(converter.fitted(picture, as: size, into: box, isRGB: isRGB))
    }
  }
}

extension VideoPictures {
  /// Opens a segment's video.
  ///
  /// - Parameters:
  ///   - name: names the file in errors.
  ///   - isCropped: whether pictures lack the columns and rows that players crop.
  ///   - step: called for each sample that is read.
  static func ofSegment(
    _ file: any ByteSource, _ name: String, isCropped: Bool = true, step: @escaping () -> Void = {}
  ) throws -> VideoPictures {
    let reader = try MP4Reader(file)
    guard reader.codec != nil else { throw BadSession(name, "no H.264 or AV1 track first") }
    return try VideoPictures(reader, track: 0, limits: .published, isCropped: isCropped, step: step)
  }
}
