import Encoding
import FileSystem
import FrameBatches

/// Small pictures of published sessions, for lists of them.
package enum SessionThumbnail {
  /// A segment's first picture, as JPEG.
  ///
  /// - Parameters:
  ///   - output: the directory that sessions are published in.
  ///   - startMs: the segment's start; nil for the session's first one.
  ///   - side: how wide and how high it may be, in pixels; a smaller picture stays as it is.
  ///   - decoders: where the segment is decoded; nil for right here, for one that can be trusted.
  /// - Returns: nil when there is no such session, or no such segment.
  /// - Throws: ``BadSession``, ``DamagedOutput`` when the segment is not what was published, ``DiskError``.
  package static func jpeg(
    output: String, session: SessionID, startMs: Int64? = nil, side: Int = 320, decoders: DecoderForkServer? = nil
  ) throws -> [UInt8]? {
    let directory = SessionDirectory(output: output, session: session, decoders: decoders)
    guard try DurableFile.isDirectory(directory.path),
      let startMs = try startMs ?? directory.publishedStarts().first,
      try DurableFile.isThere(directory.path + "/" + SegmentName.manifest(startMs))
    else { return nil }
    let segment = try directory.segment(startMs)
    let box = PixelSize(width: max(1, side), height: max(1, side))
    let pictures = try SegmentPictures(directory.reader, isRGB: false).pictures(
      of: segment, bytes: try directory.video(of: segment), frames: [0], fitting: box)
    return try ImageFile.jpeg(pictures[0])
  }
}
