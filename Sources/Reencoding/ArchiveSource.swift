// A published session as the source of its archive: each group of segments becomes one.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON
import Sessions

struct ArchiveSource: VideoSource {
  private let directory: SessionDirectory
  private let groups: [ArchiveGroup]
  /// The digest of the whole archive.
  private let digest: String

  var session: SessionID { directory.session }
  var end: SessionEnd? { get throws { try directory.recordedEnd() } }
  var quality: Quality? { nil }
  var pieces: [[Int64]] { groups.map { [$0.startMs] } }

  init(_ directory: SessionDirectory) throws {
    self.directory = directory
    // This refuses overlaps.
    groups = try ArchiveGroup.all(
      directory.soundSegments().map { try directory.soundManifest($0.startMs) },
      haveEqualKeys: directory.keyComparison)
    digest = SHA256.hex(of: Array("archive \(directory.session) \(groups.map(\.source).joined(separator: " "))".utf8))
    guard !groups.contains(where: { $0.parts[0].segment.encoder.object?["quality"]?.string == "archive" }) else {
      throw BadSession(directory.path, "an archive already", advice: "name the session that it was made from")
    }
  }

  func overlay(of startMs: Int64) -> JSONValue? { group(at: startMs)?.parts[0].segment.overlay }

  /// It depends on all sources: an archive of a session that has grown has other segments throughout.
  func identity(of startMs: Int64) -> String? {
    group(at: startMs).map { SHA256.hex(of: Array("\(digest) \($0.source)".utf8)) }
  }

  private func group(at startMs: Int64) -> ArchiveGroup? { groups.first { $0.startMs == startMs } }

  func open(
    _ piece: Int, cancellation: Cancellation, _ body: ([SegmentOrder], any FilmPictures) throws -> Void
  ) throws {
    let group = groups[piece]
    let first = group.parts[0].segment
    try SessionSource.require(first, within: directory.reader.decoders?.limits)
    let (frames, startMs, endMs) = (try group.frames(), group.startMs, group.endMs)
    let manifest = try group.manifest(frames, digest: digest, number: piece + 1, of: groups.count)
    let holds = frames.enumerated().map { index, shown in
      let capture = Capture(
        source: shown.json.object?["source"]?.string ?? "", timeMs: shown.frame.timeMs, width: first.width,
        height: first.height)
      let hold = FrameHold(
        capture: capture, status: shown.frame.isCaptured ? .captured : .continued, startMs: startMs + shown.startMs,
        holdMs: shown.holdMs, opensSegment: index == 0, closingGapMs: nil)
      return SegmentOrder.PlacedHold(hold: hold, pts: MediaTime.ticks(ms: shown.startMs), sampleStarts: nil)
    }
    // Its times and frames are those that the overlay needs; the facts of the video are the first one's.
    let whole: PublishedSegment
    do {
      whole = try PublishedSegment(manifest)
    } catch {
      throw BadSession(first.file, "\(error)")
    }
    guard whole.endMs == endMs else { throw BadSession(first.file, "its times do not agree") }
    let order = SegmentOrder(
      holds: holds, quarterTurns: 0, refused: [], original: (whole, manifest),
      manifest: { SessionSource.manifest(manifest, of: first, for: $0) })
    try body([order], ArchivePictures(of: group, in: directory, cancellation))
  }
}

/// The pictures of a group, decoded segment by segment. For one thread.
private final class ArchivePictures: FilmPictures {
  private let group: ArchiveGroup
  private let directory: SessionDirectory
  private let cancellation: Cancellation
  /// The segment that is decoded now.
  private var current: (index: Int, film: any FilmPictures)?

  init(of group: ArchiveGroup, in directory: SessionDirectory, _ cancellation: Cancellation) {
    (self.group, self.directory, self.cancellation) = (group, directory, cancellation)
  }

  /// - Parameter pts: in ticks from the group's start.
  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture? {
    let starts = group.parts.map { MediaTime.ticks(ms: $0.segment.startMs - group.startMs) }
    guard let index = starts.lastIndex(where: { $0 <= pts }) else { return nil }
    return try film(of: index).picture(at: pts - starts[index], as: form)
  }

  private func film(of index: Int) throws -> any FilmPictures {
    if let current, current.index == index { return current.film }
    // Give the decoder back first.
    current = nil
    let segment = group.parts[index].segment
    let film = try directory.reader.film(
      in: KeptBytes(directory.video(of: segment)), name: segment.file, track: 0, keyDTS: nil, limits: .published,
      cancellation: cancellation)
    current = (index, film)
    return film
  }
}
