import Encoding
import FrameBatches

/// The videos of the segments of a session, wherever they are.
package protocol SegmentVideos {
  /// The reader of the videos.
  var reader: VideoReader { get }
  /// Returns the video of a segment.
  ///
  /// - Throws: ``BadSession`` if it is not the one that the manifest describes.
  func video(of segment: PublishedSegment) throws -> [UInt8]
}

extension SessionDirectory: SegmentVideos {}

/// Less effort makes files that are some percent larger in a third of the time.
private let pngEffort: Int32 = 1
/// The best quality of mjpeg but one: from there on files grow, and nobody sees a difference.
private let jpegScale: Int32 = 2

extension ImageFormat {
  /// The ending of its files' names.
  package var ending: String { self == .png ? "png" : "jpg" }

  /// - Parameter picture: RGB for a PNG, the planes of the film for a JPEG.
  package func image(of picture: FrameBuffer) throws(FFmpegError) -> [UInt8] {
    switch self {
    case .png: try ImageFile.png(picture, effort: pngEffort)
    case .jpeg: try ImageFile.jpeg(picture, scale: jpegScale)
    }
  }
}

extension SegmentVideos {
  /// Returns a frame's picture as an image.
  ///
  /// - Parameters:
  ///   - frame: its index in the segment's list.
  ///   - box: the maximum size; a smaller picture keeps its own.
  /// - Throws: ``BadSession`` if the video is missing, damaged, or not the one that the manifest describes.
  package func image(
    of segment: PublishedSegment, frame: Int, fitting box: PixelSize, as format: ImageFormat
  ) throws -> [UInt8] {
    let pictures = try SegmentPictures(reader, isRGB: format == .png).pictures(
      of: segment, bytes: try video(of: segment), frames: [frame], fitting: box)
    return try format.image(of: pictures[0])
  }
}
