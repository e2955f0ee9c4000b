import Encoding

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
