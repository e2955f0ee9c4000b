// The segments of a film that is made without a session. They are in a file without a name: when the process ends, nothing is left.

import Encoding
import FileSystem
import FrameBatches
import Sessions
import Synchronization

/// A store of the segments of one film. Its batches are those of one session.
package final class FilmSegments: ArtifactStore, SegmentVideos {
  private struct State {
    var session: SessionID?
    /// By start, in unix milliseconds.
    var segments: [Int64: Stored] = [:]
    /// Two batches with other pictures for one time, and the time in unix milliseconds.
    var conflict: (one: String, other: String, atMs: Int64)?
    /// Whether the times of pictures count from the assumed start.
    var isWithoutClock = false
    /// Whether another program has coded some of the pictures.
    var hasForeign = false

    /// Keeps the first one in time, whichever thread finds it.
    mutating func noteConflict(_ one: PublishedSegment, _ other: PublishedSegment) {
      let atMs = max(one.startMs, other.startMs)
      if let conflict, conflict.atMs <= atMs { return }
      conflict = (min(one.batch, other.batch), max(one.batch, other.batch), atMs)
    }

    /// - Throws: ``BadBatch`` if batches show other pictures for the same time.
    mutating func requireNoConflict() throws(BadBatch) {
      let all = segments.values.map(\.segment).sorted { $0.startMs < $1.startMs }
      for (one, next) in zip(all, all.dropFirst()) where one.batchDigest != next.batchDigest {
        if next.startMs < one.endMs, !one.isSeam(with: next) { noteConflict(one, next) }
      }
      if let conflict { throw .otherPictures(conflict.other, conflict.one, atMs: conflict.atMs) }
    }
  }

  private struct Stored {
    let segment: PublishedSegment
    let video: StagedVideo
    let marks: SessionMarks
  }

  private let file: UnnamedFile
  private let assumedStart: Int64?
  private let state = Mutex(State())
  private let decoders: DecoderForkServer?
  private let owner: String

  /// Pictures that this process has encoded are read in it.
  package var reader: VideoReader { VideoReader(state.withLock(\.hasForeign) ? decoders : nil, owner: owner) }

  /// - Parameters:
  ///   - directory: on a disk with room for the segments.
  ///   - assumedStart: the capture of the lowest-numbered picture if nobody states it, in unix milliseconds.
  package init(in directory: String, assumedStart: Int64?, decoders: DecoderForkServer?) throws {
    file = try UnnamedFile(in: directory)
    self.assumedStart = assumedStart
    (self.decoders, owner) = (decoders, directory)
  }

  // MARK: - A store

  package func stage(_ video: [UInt8]) throws -> StagedVideo { .part(of: file, try file.append(video)) }

  package func hasTombstones() -> Bool { false }

  package func tombstone(of session: SessionID) -> Tombstone? { nil }

  package func prepare(_ source: BatchReader, cancellation: Cancellation) throws -> Preparation {
    try requireSession(of: source)
    // Nobody continues a film.
    let whole = source.reading(source.batch.closed)
    return .continued(whole, FilmPublication(film: self, source: whole))
  }

  package func publisher(of source: BatchReader) throws -> VideoPublisher {
    try requireSession(of: source)
    state.withLock { $0.hasForeign = true }
    return { FilmPublication(film: self, source: source.reading($0)) }
  }

  private func requireSession(of source: BatchReader) throws(BadBatch) {
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
  }

  package func rollBack(_ source: BatchReader, cancellation: Cancellation) -> PublishedBatch? { nil }

  package var dueInMs: Int? { nil }

  package func flushPending(all: Bool) -> [ViewUpdateFailure] { [] }

  /// - Parameter source: the batch of the segments.
  fileprivate func add(_ manifests: [SegmentManifest], of source: BatchReader) {
    let isWithoutClock = isWithoutClock(source)
    state.withLock { state in
      state.isWithoutClock = state.isWithoutClock || isWithoutClock
      for manifest in manifests {
        let stored = Stored(
          segment: manifest.segment, video: manifest.staged.video, marks: SessionMarks(of: manifest))
        let known = state.segments.updateValue(stored, forKey: manifest.segment.startMs)
        if let known, known.segment.batchDigest != stored.segment.batchDigest {
          state.noteConflict(known.segment, stored.segment)
        }
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
    var all = state.withLock { $0 }
    try all.requireNoConflict()
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
      var film = try Stitching.film(
        of: part, in: session, from: self, showing: clip, as: form, to: target, gaps: gaps, zeroMs: zeroMs,
        progress: progress)
      if clip.idle == nil, !clip.speed.isFast, !form.isPoster {
        let cut = try StitchPlan(
          part, of: clip.with(idle: .cut), gaps: gaps, as: form, in: session, haveEqualKeys: keyComparison)
        film.cutMs = cut.durationMs < film.durationMs ? cut.durationMs : nil
      }
      return film
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
