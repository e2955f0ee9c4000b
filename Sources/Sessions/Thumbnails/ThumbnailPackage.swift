// A session's pictures in small, for players: a sprite a segment, and the track that says which part is shown when. A view,
// like session.json: names tell what is in a sprite, and the track comes last.

import Encoding
import FileSystem
import Glibc

struct ThumbnailPackage {
  /// Where a session has its own.
  package static let directory = "thumbnails"

  /// The directory it is in; made when it is missing.
  package let path: String
  /// A path to write files under that no other process uses, on the same file system.
  package let temporary: String
  private let films: SegmentPictures

  init(of session: SessionDirectory, temporary: String) {
    path = session.path + "/" + Self.directory
    self.temporary = temporary
    films = SegmentPictures(session.reader, isRGB: false)
  }

  /// Brings all files up to date. Sprites that are there are not made again.
  ///
  /// - Parameters:
  ///   - segments: at least one, in the order of their starts.
  ///   - progress: called with the segments done and their number; what it throws ends the work.
  package func update(
    _ segments: [PublishedSegment], from session: SessionDirectory, progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws {
    try DurableFile.makeDirectories(path)
    let directory = try Directory(opening: path, followingLinks: false)
    let present = Set(try directory.entries().map(\.name))
    var track = ThumbnailTrack(startMs: segments[0].startMs)
    for (index, segment) in segments.enumerated() {
      let sprite = SegmentSprite(segment)
      track.append(
        segment, isShown: try present.contains(sprite.file) || write(sprite, of: segment, from: session))
      try progress(index + 1, segments.count)
    }
    try finish(track, in: directory)
  }

  /// Adds segments behind those that the track tells of.
  ///
  /// - Parameters:
  ///   - new: in the order of their starts.
  ///   - last: the last segment that it tells of.
  ///   - startMs: the session's.
  /// - Returns: whether that can be done; when not, all has to be made from all segments.
  func extend(
    by new: [PublishedSegment], after last: PublishedSegment, sessionStartMs startMs: Int64,
    from session: SessionDirectory
  ) throws -> Bool {
    guard let there = try DurableFile.contents(of: path + "/" + ThumbnailTrack.file, limit: SessionView.maximumBytes),
      var track = ThumbnailTrack(startMs: startMs, continuing: there, after: last)
    else { return false }
    let directory = try Directory(opening: path, followingLinks: false)
    for segment in new {
      let sprite = SegmentSprite(segment)
      let isShown = try DurableFile.exists(path + "/" + sprite.file) || write(sprite, of: segment, from: session)
      track.append(segment, isShown: isShown)
    }
    try finish(track, in: directory)
    return true
  }

  /// - Returns: whether it could be made: that of a damaged segment cannot.
  private func write(
    _ sprite: SegmentSprite, of segment: PublishedSegment, from session: SessionDirectory
  ) throws -> Bool {
    let pictures: [FrameBuffer]
    do {
      pictures = try films.pictures(
        of: segment, bytes: try session.video(of: segment), frames: sprite.frames, fitting: SegmentSprite.box)
    } catch is BadSession {
      return false
    }
    try replace(sprite.file, try Sprite.jpeg(of: pictures, in: sprite.grid))
    return true
  }

  /// Sprites reach the disk before the track that names them.
  private func finish(_ track: ThumbnailTrack, in directory: Directory) throws {
    try directory.sync()
    try replace(ThumbnailTrack.file, track.text)
    try directory.sync()
  }

  private func replace(_ name: String, _ bytes: [UInt8]) throws(DiskError) {
    try DurableFile.replace(path + "/" + name, bytes, temporary: temporary)
  }
}
