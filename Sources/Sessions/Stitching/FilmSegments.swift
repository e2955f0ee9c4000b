// The segments of a film that is made without a session. They are in a file without a name: when the process ends, nothing is left.

import Encoding
import FileSystem
import FrameBatches
import Synchronization

/// A store of the segments of one film. Its batches are those of one session.
package final class FilmSegments: ArtifactStore, SegmentVideos {
  private struct State {
    var session: SessionID?
    /// By start, in unix milliseconds.
    var segments: [Int64: Stored] = [:]
    /// Whether the times of pictures count from the assumed start.
    var isWithoutClock = false
  }

  private struct Stored {
    let segment: PublishedSegment
    let video: StagedVideo
    let marks: SessionMarks
  }

  private let file: UnnamedFile
  private let assumedStart: Int64?
  private let state = Mutex(State())
  package let reader: VideoReader

  /// - Parameters:
  ///   - directory: on a disk with room for the segments.
  ///   - assumedStart: the capture of the lowest-numbered picture if nobody states it, in unix milliseconds.
  package init(in directory: String, assumedStart: Int64?, decoders: DecoderForkServer?) throws {
    file = try UnnamedFile(in: directory)
    self.assumedStart = assumedStart
    reader = VideoReader(decoders, owner: directory)
  }

  // MARK: - A store

  package func stage(_ video: [UInt8]) throws -> StagedVideo { .part(of: file, try file.append(video)) }

  package func hasTombstones() -> Bool { false }

  package func tombstone(of session: SessionID) -> Tombstone? { nil }

  package func prepare(_ source: BatchReader, cancellation: Cancellation) throws -> Preparation {
    let session = state.withLock { state in
      state.session = state.session ?? source.batch.session
      return state.session
    }
    guard session == source.batch.session else {
      throw BadBatch(
        "film", source.batch.name,
        "it has session \(source.batch.session), and the film shows session \(session?.description ?? "")",
        advice: "make a film of each: run encode, then stitch")
    }
    // Nobody continues a film.
    let whole = source.reading(source.batch.closed)
    return .continued(whole, FilmPublication(film: self, source: whole))
  }

  package func rollBack(_ source: BatchReader, cancellation: Cancellation) -> PublishedBatch? { nil }

  package var dueInMs: Int? { nil }

  package func flushPending(all: Bool) -> [ViewUpdateFailure] { [] }

  /// - Parameter source: the batch of the segments.
  fileprivate func add(_ manifests: [SegmentManifest], of source: BatchReader) {
    let isWithoutClock = isWithoutClock(source)
    state.withLock { state in
      state.isWithoutClock = state.isWithoutClock || isWithoutClock
      // A batch that is named twice is the same batch.
      for manifest in manifests {
        let stored = Stored(
          segment: manifest.segment, video: manifest.staged.video, marks: SessionMarks(of: manifest))
        state.segments[manifest.segment.startMs] = state.segments[manifest.segment.startMs] ?? stored
      }
    }
  }

  /// Whether the times of a batch count from the assumed start. The first picture may be one that cannot be decoded.
  private func isWithoutClock(_ source: BatchReader) -> Bool {
    guard let assumedStart else { return false }
    // A `batch.json` without times leaves them to the options, and so to the numbers of its files.
    return source.format == NumberedFormat.name || source.batch.frames.first?.timeMs == assumedStart
  }

  // MARK: - The film

  package func video(of segment: PublishedSegment) throws -> [UInt8] {
    guard let stored = state.withLock({ $0.segments[segment.startMs] }) else {
      throw BadSession(segment.file, "missing")
    }
    return try stored.video.bytes()
  }

  /// Writes the film of all segments.
  ///
  /// Parameters and errors as of ``Stitching/film(of:showing:as:to:gaps:decoders:progress:)``.
  package func film(
    showing clip: Clip, as form: FilmForm, to target: String, gaps: GapRule, progress: (Int, Int) throws -> Void
  ) throws -> StitchedSession {
    let all = state.withLock { $0 }
    let starts = all.segments.keys.sorted()
    guard let session = all.session, let first = starts.first, let last = starts.last.flatMap({ all.segments[$0] })
    else {
      throw BadSession(target, "no picture to show", advice: "see the reasons above")
    }
    let zeroMs = all.isWithoutClock ? assumedStart : nil
    do {
      var part = try ClippedSession(
        clip, of: session, first: first, last: last.segment, starts: starts, zeroMs: zeroMs
      ) { start in
        guard let stored = all.segments[start] else { throw BadSession(target, "segment \(start) is missing") }
        return stored.segment
      }
      part.marks = SessionMarks(part.segments.compactMap { all.segments[$0.startMs]?.marks })
      return try Stitching.film(
        of: part, in: session, from: self, showing: clip, as: form, to: target, gaps: gaps, zeroMs: zeroMs,
        progress: progress)
    } catch var bad as BadClip {
      bad.zeroMs = zeroMs
      throw bad
    }
  }
}

private struct FilmPublication: Publication {
  let film: FilmSegments
  let source: BatchReader

  func commit(_ manifests: [SegmentManifest], cancellation: Cancellation) throws -> PublishedBatch {
    try cancellation.check()
    film.add(manifests, of: source)
    let receipt = Receipt(
      manifests.map(\.segment), of: source.batch, refused: manifests.flatMap(\.refused), duplicate: false,
      warnings: source.batch.warnings + SegmentManifest.notes(in: manifests))
    return PublishedBatch(receipt) { [] }
  }
}
