// Thumbnails of a session for players: a sprite a segment, and the track that says which part is shown when. A view, like
// session.json: the names of sprites change with their contents, and the track is written last.

import Encoding
import FileSystem
import Glibc

struct ThumbnailPackage {
  /// The name of the package's directory in the session's.
  static let directory = "thumbnails"

  /// The package's directory; created if it is missing.
  let path: String
  /// A path to write files under that no other process uses, on the same file system.
  private let temporary: String
  private let session: SessionDirectory
  private let films: SegmentPictures

  init(of session: SessionDirectory, temporary: String) {
    path = session.path + "/" + Self.directory
    self.temporary = temporary
    self.session = session
    films = SegmentPictures(session.reader, isRGB: false)
  }

  /// Brings all files up to date. Existing sprites are kept.
  ///
  /// - Parameters:
  ///   - segments: at least one, in the order of their starts.
  ///   - progress: called with the segments done and their number; an error that it throws ends the work.
  func update(_ segments: [PublishedSegment], progress: (Int, Int) throws -> Void) throws {
    try DurableFile.makeDirectories(path)
    try write(segments, after: ThumbnailTrack(startMs: segments[0].startMs), progress: progress)
  }

  /// Adds segments behind those of the track.
  ///
  /// - Parameters:
  ///   - new: in the order of their starts.
  ///   - last: the last segment of the track.
  /// - Returns: false if all has to be made from all segments.
  func extend(
    by new: [PublishedSegment], after last: PublishedSegment, sessionStartMs startMs: Int64
  ) throws -> Bool {
    guard let text = try DurableFile.contents(of: path + "/" + ThumbnailTrack.file, limit: IndexText.maximumBytes),
      let track = ThumbnailTrack(startMs: startMs, continuing: text, after: last)
    else { return false }
    try write(new, after: track) { _, _ in }
    return true
  }

  /// Takes the first segments out of the track. Their sprites go with their videos.
  ///
  /// - Parameters:
  ///   - startMs: the start of the first segment that stays, in unix milliseconds.
  ///   - sessionStartMs: the start of the session before.
  /// - Returns: false if all has to be made from all segments.
  func removeFirst(before startMs: Int64, sessionStartMs: Int64) throws -> Bool {
    let file = path + "/" + ThumbnailTrack.file
    guard let text = try DurableFile.contents(of: file, limit: IndexText.maximumBytes),
      let track = ThumbnailTrack.removing(before: startMs, sessionStartMs: sessionStartMs, in: text)
    else { return false }
    try replace(ThumbnailTrack.file, track)
    try Directory(opening: path, followingLinks: false).sync()
    return true
  }

  private func write(
    _ segments: [PublishedSegment], after track: ThumbnailTrack, progress: (Int, Int) throws -> Void
  ) throws {
    let directory = try Directory(opening: path, followingLinks: false)
    var track = track
    for (index, segment) in segments.enumerated() {
      let sprite = SegmentSprite(segment)
      track.append(segment, isShown: try DurableFile.exists(path + "/" + sprite.file) || write(sprite, of: segment))
      try progress(index + 1, segments.count)
    }
    // Sprites reach the disk before the track that names them.
    try directory.sync()
    try replace(ThumbnailTrack.file, track.text)
    try directory.sync()
  }

  /// - Returns: false if the segment is damaged.
  private func write(_ sprite: SegmentSprite, of segment: PublishedSegment) throws -> Bool {
    let pictures: [FrameBuffer]
    do {
      pictures = try films.pictures(
        of: segment, bytes: try session.video(of: segment), frames: sprite.frames, fitting: SegmentSprite.box)
    } catch is BadSession {
      return false
    }
    try replace(sprite.file, try ThumbnailSprite.jpeg(of: pictures, in: sprite.grid))
    return true
  }

  private func replace(_ name: String, _ bytes: [UInt8]) throws(DiskError) {
    try DurableFile.replace(path + "/" + name, bytes, temporary: temporary)
  }
}
