// Finished segments as a published session, without encoding them again. Each video is a batch of its own: its segments are
// published as soon as it is known where the next one begins, so a second run continues a stopped one.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import ISOMedia
import JSON

/// The result of an import.
package struct ImportedSession: Sendable, Equatable {
  package let session: SessionID
  /// The path of the published session; nil if there is none.
  package internal(set) var path: String?
  /// The number of videos that are published, and of those that had been published before.
  package internal(set) var videos = 0
  package internal(set) var duplicates = 0
  package internal(set) var segments = 0
  package internal(set) var frames = 0
  package internal(set) var bytes = 0
  /// The time that the videos show, in milliseconds.
  package internal(set) var shownMs: Int64 = 0
  /// Videos that have no picture, or the same as another one.
  package internal(set) var skipped: [Problem] = []
  /// Videos that cannot be imported.
  package internal(set) var refused: [Problem] = []
  package internal(set) var warnings: [Problem] = []

  /// One line of JSON.
  package var json: String {
    JSONValue.object([
      "session": .string(session.description), "path": path.map { .string($0) } ?? .null, "videos": .number(videos),
      "duplicates": .number(duplicates), "segments": .number(segments), "frames": .number(frames),
      "bytes": .number(bytes), "shownMs": .number(shownMs), "skipped": .array(skipped.map(\.json)),
      "refused": .array(refused.map(\.json)), "warnings": .array(warnings.map(\.json)),
    ]).line
  }
}

package struct Importing {
  private let source: SegmentsDirectory
  private let session: SessionID
  private let limits: Limits
  private let reader: VideoReader
  private let cancellation: Cancellation
  private var result: ImportedSession

  /// Whether a path is a directory of finished segments, and no session.
  package static func isRecognised(_ path: String) -> Bool { SegmentsDirectory.isRecognised(path, Limits()) }

  /// Finds the videos and their events.
  ///
  /// - Parameters:
  ///   - session: nil for the directory's name.
  ///   - decoders: the processes that read videos; nil to read trusted videos in this process.
  /// - Throws: ``BadSession`` if there is nothing to import, ``DiskError``.
  package init(
    _ path: String, session: SessionID?, limits: Limits, decoders: DecoderForkServer?,
    cancellation: Cancellation
  ) throws {
    let name = lastComponent(of: DurableFile.resolved(path))
    guard let session = session ?? SessionID(String(name.prefix { $0 != "@" })) else {
      throw BadSession(path, "no name for a session", advice: "give --session; \(SessionID.rule)")
    }
    source = try SegmentsDirectory(reading: path, limits, cancellation: cancellation)
    reader = VideoReader(decoders, owner: path)
    result = ImportedSession(session: session)
    result.refused = source.refused
    result.warnings = source.warnings
    (self.session, self.limits, self.cancellation) = (session, limits, cancellation)
  }

  /// Publishes the videos, in the order of their starts.
  ///
  /// - Parameter progress: called with the number of videos done and of all; an error that it throws ends the work.
  /// - Throws: ``DiskError``; ``Cancelled``; ``ViewUpdateFailure``. A video that cannot be imported stops no other one.
  package mutating func publish(
    to staging: Staging, progress: (Int, Int) throws -> Void
  ) throws -> ImportedSession {
    let store = DirectoryStore(staging: staging, index: SessionViews())
    var open: ImportedVideo?
    for (index, item) in source.sources.enumerated() {
      try cancellation.check()
      try progress(index, source.sources.count)
      guard let next = try read(item) else { continue }
      guard var video = open else {
        open = next
        continue
      }
      if next.sha256 == video.sha256, next.startMs == video.startMs {
        result.skipped.append(Problem(file: next.name, what: "the same as \(video.name)"))
        continue
      }
      if next.startMs == video.startMs, next.endMs > video.endMs {
        refuse(video.name, "\(next.name) shows its time")
        open = next
        continue
      }
      if next.endMs <= video.endMs {
        refuse(next.name, "\(video.name) shows its time")
        continue
      }
      if next.startMs < video.endMs, !video.isSeam(before: next) { video.cut(atMs: next.startMs, for: next.name) }
      video.meet(next)
      try publish(video, in: store)
      open = next
    }
    if let open { try publish(open, in: store) }
    try progress(source.sources.count, source.sources.count)
    for failure in store.flushPending(all: true) where failure.session == session { throw failure }
    if result.videos + result.duplicates > 0 { result.path = staging.output + "/\(session)" }
    return result
  }

  private mutating func refuse(_ file: String, _ reason: String) {
    result.refused.append(Problem(file: file, what: reason))
  }

  /// Reads a video; nil if it is skipped or refused.
  private mutating func read(_ item: SegmentsDirectory.Source) throws -> ImportedVideo? {
    do {
      switch try Directory(opening: source.path).contents(of: item.name, limit: SegmentManifest.maximumVideoBytes) {
      case .bytes(let bytes):
        guard !bytes.isEmpty else {
          result.skipped.append(Problem(file: item.name, what: "an empty file"))
          return nil
        }
        return try ImportedVideo(item, bytes: bytes, reader, limits, cancellation: cancellation)
      case .refused(let reason): refuse(item.name, "\(reason)")
      case nil: refuse(item.name, "it is gone")
      }
    } catch is NoDuration {
      result.skipped.append(Problem(file: item.name, what: "no duration"))
    } catch let bad as BadSession where bad.cause == VideoTrack.noPicture {
      result.skipped.append(Problem(file: item.name, what: bad.cause))
    } catch let bad as BadSession {
      let path = source.path + (source.path.hasSuffix("/") ? "" : "/") + item.name
      let command = "encoder-worker reencode \(path.shellWord) --start \(item.startMs) --output DIR --quality balanced"
      refuse(
        item.name, "\(bad.cause); \(bad.advice == FinishedVideo.advice ? "encode it anew: " + command : bad.advice)")
    } catch let failure as FFmpegError {
      // This includes a lack of memory: a damaged file can ask for any amount.
      refuse(item.name, "it cannot be read: \(failure.cause); check that the file is complete")
    }
    return nil
  }

  private mutating func publish(_ video: ImportedVideo, in store: DirectoryStore) throws {
    var staged: [StagedSegment] = []
    defer { for segment in staged { segment.video.discard() } }
    do {
      let (batch, digest) = (video.batch(in: session, limits: limits), video.digest(in: session))
      for (index, segment) in try video.segments().enumerated() {
        staged.append(
          try StagedSegment(
            segment, in: store.staging, refused: index == 0 ? video.refusedFrames(limits) : [], notes: video.notes))
        let manifest = SegmentManifest(
          staged[index], of: batch, digest: digest, part: 1, parts: 1, encoder: video.encoder)
        try check(segment.bytes, manifest)
      }
      let manifests = SegmentManifest.all(staged, of: batch, digest: digest, encoder: video.encoder)
      let receipt = try store.publication(of: batch).commit(manifests, cancellation: cancellation).updateViews()
      if receipt.duplicate { result.duplicates += 1 } else { result.videos += 1 }
      result.segments += receipt.segments
      result.frames += receipt.frames
      result.bytes += receipt.bytes
      result.shownMs += receipt.endMs - receipt.startMs
      result.warnings += (video.warnings + receipt.warnings).map { Problem(file: video.name, what: $0) }
    } catch let bad as BadSession {
      refuse(video.name, bad.cause)
    } catch let bad as BadBatch {
      refuse(video.name, "\(bad.cause); \(bad.advice)")
    } catch let mismatch as SegmentMismatch {
      refuse(video.name, "\(mismatch)")
    } catch let failure as FFmpegError {
      refuse(video.name, "its pictures cannot be decoded: \(failure.cause)")
    } catch let large as SegmentTooLarge {
      refuse(video.name, "\(large)")
    } catch let old as BatchTooOld {
      refuse(video.name, "\(old)")
    }
  }

  /// Checks a segment as `verify` does, before it is published: also whether each picture can be decoded.
  private func check(_ bytes: [UInt8], _ manifest: SegmentManifest) throws {
    let text = SegmentManifest.text(of: manifest.json)
    guard text.count <= SegmentManifest.maximumBytes else {
      throw BadSession("", "its manifest would have \(text.count) bytes, more than the limit", advice: "")
    }
    let problems = try reader.problems(manifest.json, manifest.segment, bytes)
    guard problems.isEmpty else { throw BadSession("", problems.joined(separator: "; "), advice: "") }
  }
}
