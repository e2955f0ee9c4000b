import Encoding
import FileSystem
import FrameBatches
import Sessions

/// Thumbnails of published sessions, for lists.
package enum SessionThumbnail {
  /// Returns a segment's first picture as JPEG.
  ///
  /// - Parameters:
  ///   - output: the directory that sessions are published in.
  ///   - startMs: the segment's start; nil for the first segment.
  ///   - side: maximum width and height in pixels; a smaller picture keeps its size.
  ///   - decoders: the sandbox; nil to decode a trusted segment in this process.
  /// - Returns: nil if there is no such session or segment.
  /// - Throws: ``BadSession``, ``DamagedOutput`` if the segment is not as it was published, ``DiskError``.
  package static func jpeg(
    output: String, session: SessionID, startMs: Int64? = nil, side: Int = 320, decoders: DecoderForkServer? = nil
  ) throws -> [UInt8]? {
    let directory = SessionDirectory(output: output, session: session, decoders: decoders)
    return try jpeg(of: directory, startMs: startMs, side: side)
  }

  /// Returns the first picture of a segment of a session.
  ///
  /// Parameters, result and errors as of ``jpeg(output:session:startMs:side:decoders:)``.
  static func jpeg(of directory: SessionDirectory, startMs: Int64? = nil, side: Int = 320) throws -> [UInt8]? {
    guard try DurableFile.isDirectory(directory.path),
      let startMs = try startMs ?? directory.publishedStarts().first,
      try DurableFile.isThere(directory.path + "/" + SegmentName.manifest(startMs))
    else { return nil }
    return try jpeg(of: directory.segment(startMs), in: directory, side: side)
  }

  /// Returns a picture of a segment as JPEG. It reads the segment's video only, up to the picture.
  ///
  /// - Parameter frame: its index in the segment's list.
  /// - Throws: ``BadSession`` if the video is not as it was published, ``DiskError``.
  static func jpeg(
    of segment: PublishedSegment, frame: Int = 0, in directory: SessionDirectory, side: Int = 320
  ) throws -> [UInt8] {
    let box = PixelSize(width: max(1, side), height: max(1, side))
    let pictures = try SegmentPictures(directory.reader, isRGB: false).pictures(
      of: segment, bytes: try directory.video(of: segment), frames: [frame], fitting: box)
    return try ImageFile.jpeg(pictures[0])
  }
}
