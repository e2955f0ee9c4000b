// Reads the words in one segment's pictures.

import Encoding
import FileSystem
import FrameBatches

/// Reads the pictures of a segment: its first one as a whole, unless that equals the picture before it, and of the others the regions
/// that changed.
struct SegmentTextReading {
  let engine: TextEngine
  let directory: SessionDirectory
  let cancellation: Cancellation
  private let decoder: SegmentPictures

  init(_ engine: TextEngine, of directory: SessionDirectory, _ cancellation: Cancellation) {
    (self.engine, self.directory, self.cancellation) = (engine, directory, cancellation)
    decoder = SegmentPictures(directory.reader, isRGB: false)
  }

  /// The segment before, with its words if they are known.
  struct Before {
    let segment: PublishedSegment
    let text: SegmentText?
  }

  /// - Throws: ``BadSession`` if the video is missing or damaged; ``Failure``; ``Cancelled``.
  func text(of segment: PublishedSegment, after before: Before?) throws -> SegmentText {
    var track = TextTrack()
    let carried = try before.flatMap { try carriedWords(to: segment, from: $0) }
    if let carried { track.carry(carried, atMs: segment.startMs) }
    try read(segment, hasFirst: carried != nil, to: &track)
    return SegmentText(
      session: directory.session, startMs: segment.startMs, endMs: segment.endMs, sha256: segment.sha256,
      engine: engine.version, language: engine.language, pictures: track.pictures, unreadMs: track.unreadMs,
      leftOut: track.leftOut, words: track.finish(atMs: segment.endMs))
  }

  /// Returns the words at the end of the segment before, if the segment opens with the same picture; nil if its first picture is to be
  /// read.
  private func carriedWords(to segment: PublishedSegment, from before: Before) throws -> [VisibleWord]? {
    guard let text = before.text, text.isText(of: before.segment), text.unreadMs.isEmpty, text.leftOut == 0,
      (text.engine, text.language) == (engine.version, engine.language), before.segment.size == segment.size
    else { return nil }
    let isEqual =
      try Self.changedBlocks(of: segment.frames[0], in: segment, after: before.segment).map { $0 == 0 }
      ?? DecodedChange(of: picture(0, of: segment), since: lastPicture(of: before.segment))?.isEqual ?? false
    return isEqual ? text.words.filter { $0.shownMs.upperBound == text.endMs } : nil
  }

  /// Returns the number of blocks that differ from the picture before; nil if the manifest does not tell.
  ///
  /// - Parameter before: the segment with that picture; nil if it is the same one.
  static func changedBlocks(
    of frame: PublishedSegment.Frame, in segment: PublishedSegment, after before: PublishedSegment? = nil
  ) -> Int? {
    // Equal pictures have other texts.
    if segment.hasOverlayOfInstants { return nil }
    // It counts from the picture before in the batch; segments of another batch may lie in between.
    if let before, !segment.isNextPart(after: before) { return nil }
    return frame.changedBlocks
  }

  private func lastPicture(of segment: PublishedSegment) throws -> FrameBuffer {
    try picture(segment.frames.count - 1, of: segment)
  }

  private func picture(_ frame: Int, of segment: PublishedSegment) throws -> FrameBuffer {
    let pictures = try decoder.pictures(
      of: segment, bytes: try directory.video(of: segment), frames: [frame], fitting: segment.size)
    guard let picture = pictures.first else { throw BadSession(segment.file, "no picture \(frame)") }
    return picture
  }

  /// - Parameter hasFirst: whether the words of the first picture are known.
  private func read(_ segment: PublishedSegment, hasFirst: Bool, to track: inout TextTrack) throws {
    let changed = segment.frames.indices.filter { frame in
      frame == 0 ? !hasFirst : Self.changedBlocks(of: segment.frames[frame], in: segment) != 0
    }
    guard !changed.isEmpty else { return }
    let frames = Set(changed.flatMap { [max(0, $0 - 1), $0] }).sorted()
    let starts = segment.startsOfFrames
    var (rest, toRead) = (frames[...], changed[...])
    var shown: FrameBuffer?
    try decoder.forEachPicture(
      of: segment, bytes: try directory.video(of: segment), frames: frames, fitting: segment.size
    ) { picture in
      try cancellation.check()
      if let frame = rest.popFirst(), frame == toRead.first {
        toRead.removeFirst()
        let nowMs = segment.startMs + starts[frame]
        let blocks = Self.changedBlocks(of: segment.frames[frame], in: segment)
        try read(picture, since: shown, changedBlocks: blocks, to: &track, atMs: nowMs)
      }
      shown = picture
    }
  }

  private func read(
    _ picture: FrameBuffer, since before: FrameBuffer?, changedBlocks: Int?, to track: inout TextTrack,
    atMs nowMs: Int64
  ) throws {
    let flags = before.flatMap { DecodedChange(of: picture, since: $0) }?.changed(changedBlocks)
    if let flags, !flags.contains(true) { return }
    let grey = GreyPicture(lumaOf: picture)
    let change = TextChange(of: flags, in: PixelSize(width: grey.width, height: grey.height), words: track.boxes)
    let words = try engine.words(in: grey, change.regions, cancellation: cancellation)
    track.show(words, change, atMs: nowMs)
  }
}
