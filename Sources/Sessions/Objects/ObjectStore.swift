// Sessions in an object store: `output/SESSION/…`, the same files with the same bytes as in a directory.
//
// There are no locks, so two things decide. A segment's objects are created once: the second worker finds out whether what is
// there is what it would have written. And a batch is published by one conditional write of the session's index, which fails when
// another worker has published in that session since it was read. Videos come first, then manifests, then the index; what it does
// not list is not published. The views of a long session are not written for each batch. A marker in `behind/` is written first,
// so that the next worker updates them after a crash.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Synchronization

package final class ObjectStore: ArtifactStore {
  package let staging: Staging
  private let objects: any ObjectClient
  /// Whether to keep live playlists.
  private let hasHLS: Bool
  /// The store's name in messages.
  private let name: String
  /// The due times of a session, in monotonic milliseconds.
  private struct Due {
    /// When its views are written.
    var viewsMs: Int?
    /// The tag of our mark.
    var mark: ObjectTag?
    /// The segments that its live playlist does not list yet.
    var heldBack: HLSPackage.HeldBack?

    var firstMs: Int { min(viewsMs ?? .max, heldBack?.dueMs ?? .max) }
  }

  private let due = Mutex<[SessionID: Due]>([:])
  /// The time of the next scan for markers of other workers, in monotonic milliseconds.
  private let nextScanMs = Mutex(0)
  private static let scanMs = 60_000
  /// A marker older than this many seconds belongs to a dead worker.
  private static let markS = 600
  private static let marks = "behind/"

  /// The lag of a long session's views in milliseconds, which grows with their size.
  private static func lagMs(_ segments: Int) -> Int { min(max(1_000, 4 * segments), 120_000) }

  /// Seconds after which an unlisted object is an orphan of a dead worker: no batch takes that long.
  static let orphanTTL = 7_200

  /// - Parameter name: the store's name in messages.
  package init(_ objects: any ObjectClient, name: String, staging: Staging, hls: Bool) {
    self.objects = objects
    self.name = name
    self.staging = staging
    hasHLS = hls
  }

  package var dueInMs: Int? {
    let firstMs = due.withLock { $0.values.map(\.firstMs).min() } ?? .max
    return max(0, min(firstMs, nextScanMs.withLock { $0 }) - MonotonicClock.milliseconds())
  }

  package func flushPending(all: Bool) -> [ViewUpdateFailure] {
    let now = MonotonicClock.milliseconds()
    var failures: [ViewUpdateFailure] = []
    for (id, known) in due.withLock({ $0 }) where all || now >= known.firstMs {
      do {
        if all || now >= known.viewsMs ?? .max { try updateViews(of: session(id)) }
        if let heldBack = known.heldBack, all || now >= heldBack.dueMs {
          try updatePlaylist(of: session(id), releasedMs: heldBack.lastMs)
        }
      } catch {
        let laterMs = now + SessionViews.retryMs
        due.withLock { due in
          if due[id]?.viewsMs != nil { due[id]?.viewsMs = laterMs }
          if let heldBack = due[id]?.heldBack { due[id]?.heldBack = heldBack.postponed(to: laterMs) }
        }
        failures.append(ViewUpdateFailure(session: id, error: error, isOurs: true))
      }
    }
    let scans = nextScanMs.withLock { next in
      if !all && now < next { return false }
      next = now + Self.scanMs
      return true
    }
    return scans ? failures + catchUpWithOthers(all: all) : failures
  }

  /// Updates the views that dead workers left behind.
  ///
  /// - Parameter all: whether to update the views of live workers, too.
  private func catchUpWithOthers(all: Bool) -> [ViewUpdateFailure] {
    var (last, failures): (String?, [ViewUpdateFailure]) = (nil, [])
    // An unreachable store fails the next batch; the markers stay.
    while let marks = try? objects.list(Self.marks, after: last), let end = marks.last {
      last = end.key
      for mark in marks {
        guard let id = SessionID(String(mark.key.dropFirst(Self.marks.count))), due.withLock({ $0[id]?.mark }) == nil,
          all || (try? objects.head(mark.key)?.ageS).map({ $0 >= Self.markS }) ?? false
        else { continue }
        do {
          try session(id).updateViews()
          try objects.delete(mark.key, mark.tag)
        } catch {
          failures.append(ViewUpdateFailure(session: id, error: error, isOurs: false))
        }
      }
    }
    return failures
  }

  /// Updates the views of a session, or defers that if they are long.
  ///
  /// - Parameter published: the session after our publication; nil after one of another worker.
  fileprivate func updateViews(of session: ObjectSession, after published: ObjectSession.Published?) throws {
    guard let long = try published ?? session.published(), long.isLong, !long.index.isComplete else {
      return try session.updateViews(published)
    }
    if due.withLock({ $0[session.id]?.viewsMs }) != nil { return }
    let tag = try objects.put(
      Self.marks + session.id.description, .bytes(Array("\(WorkerID())".utf8)), .archive, when: .always)
    let dueMs = MonotonicClock.milliseconds() + Self.lagMs(long.index.count)
    due.withLock { due in
      due[session.id, default: Due()].viewsMs = dueMs
      due[session.id]?.mark = tag
    }
  }

  /// Writes the deferred views.
  private func updateViews(of session: ObjectSession) throws {
    // Workers that publish from here on set the mark again.
    let mark = due.withLock { due in
      defer { due[session.id]?.viewsMs = nil }
      return due[session.id]?.viewsMs == nil ? nil : due[session.id]?.mark
    }
    guard let mark else { return }
    do {
      try session.updateViews()
      try objects.delete(Self.marks + session.id.description, mark)
    } catch {
      due.withLock { $0[session.id, default: Due()].viewsMs = 0 }
      throw error
    }
    due.withLock { due in
      if due[session.id]?.mark == mark { due[session.id]?.mark = nil }
      if due[session.id]?.viewsMs == nil && due[session.id]?.heldBack == nil { due[session.id] = nil }
    }
  }

  /// Updates a live playlist.
  ///
  /// - Parameters:
  ///   - known: segments that need not be fetched, and the files of their videos.
  ///   - releasedMs: segments that start by then are not held back.
  fileprivate func updatePlaylist(
    of session: ObjectSession, with known: some Sequence<(PublishedSegment, String)> = EmptyCollection(),
    releasedMs: Int64 = .min
  ) throws {
    guard hasHLS else { return }
    let new = try ObjectPlaylist(session, staging: staging).update(with: known, releasedMs: releasedMs)
    due.withLock { due in
      // A later segment does not defer it further.
      if let new, due[session.id]?.heldBack?.startMs == new.startMs { return }
      if new != nil || due[session.id] != nil { due[session.id, default: Due()].heldBack = new }
      if due[session.id]?.viewsMs == nil && due[session.id]?.heldBack == nil { due[session.id] = nil }
    }
  }

  package func prepare(_ source: BatchReader, isCancelled: () -> Bool) throws -> Preparation {
    let (session, batch) = (session(source.batch.session), source.batch)
    let published = try session.published()
    // A batch is listed as a whole or not at all, so its first segment is enough.
    let range = batch.frames[0].timeMs..<batch.endMs
    let within =
      try published.map { try session.entries(near: range, in: $0) }?.filter { range.contains($0.startMs) } ?? []
    guard let first = try within.first.map({ try session.segment($0.startMs) }),
      first.batchDigest == (try BatchDigest.of(source, isCancelled: isCancelled))
    else { return .ready(ObjectPublication(store: self, batch: batch, session: session, published: published)) }
    let own = try [first] + within.dropFirst().prefix(first.parts - 1).map { try session.segment($0.startMs) }
    return .alreadyPublished(confirm(own, of: batch, in: session))
  }

  /// Unlisted objects are invisible, so there is nothing to roll back.
  package func rollBack(_ source: BatchReader, isCancelled: () -> Bool) throws -> PublishedBatch? {
    guard case .alreadyPublished(let batch) = try prepare(source, isCancelled: isCancelled) else { return nil }
    return batch
  }

  /// A batch that was published before. The worker may have died before it brought the other views up to date.
  fileprivate func confirm(
    _ own: [PublishedSegment], of batch: Batch, in session: ObjectSession
  ) -> PublishedBatch {
    PublishedBatch(Receipt(own, of: batch, refused: [], duplicate: true, warnings: [])) {
      try self.updateViews(of: session, after: nil)
      try self.updatePlaylist(of: session)
      return []
    }
  }

  private func session(_ id: SessionID) -> ObjectSession { ObjectSession(id, in: objects, name: name) }

  /// Creates the missing objects: all videos, then all manifests.
  ///
  /// - Returns: the segments in the store; segments of a dead worker with other settings are adopted.
  /// - Throws: ``SegmentWriteConflict``.
  fileprivate func place(
    _ segments: [StagedSegment], _ manifests: [SegmentManifest], in session: ObjectSession
  ) throws -> [PublishedSegment] {
    var adopted: [Int: PublishedSegment] = [:]
    for (index, segment) in segments.enumerated() {
      let own = manifests[index].segment
      try create(session.key(own.file), .file(segment.file), own.bytes, .video) {
        SHA256.hex(of: $0) == own.sha256
      } adopting: {
        guard let other = try? session.segment(own.startMs), other.batchDigest == own.batchDigest, own.isCutLike(other)
        else { return false }
        adopted[index] = other
        return true
      }
    }
    for (index, manifest) in manifests.enumerated() where adopted[index] == nil {
      let text = SegmentManifest.text(of: manifest.json)
      let key = session.key(SegmentName.manifest(manifest.segment.startMs))
      try create(key, .bytes(text), text.count, .json) {
        $0 == text
      } adopting: {
        // Of the same batch under another name.
        guard let other = try? session.segment(manifest.segment.startMs),
          other.batchDigest == manifest.segment.batchDigest, other.sha256 == manifest.segment.sha256
        else { return false }
        adopted[index] = other
        return true
      }
    }
    return manifests.enumerated().map { adopted[$0] ?? $1.segment }
  }

  /// Writes an object unless there is one.
  ///
  /// - Parameters:
  ///   - size: of the object, in bytes.
  ///   - isSame: whether an existing object of that size has the same content.
  ///   - adopting: whether an existing object with other content may be used instead.
  /// - Throws: ``SegmentWriteConflict``.
  private func create(
    _ key: String, _ body: ObjectBody, _ size: Int, _ kind: ObjectKind,
    isSame: ([UInt8]) -> Bool, adopting: () throws -> Bool
  ) throws {
    if try objects.put(key, body, kind, when: .absent) != nil { return }
    guard let info = try objects.head(key) else { throw SegmentWriteConflict(name: name, key: key) }
    if info.size == size, let there = try objects.get(key, limit: size), isSame(there.bytes) { return }
    if try adopting() { return }
    guard let ageS = info.ageS, ageS >= Self.orphanTTL,
      try objects.put(key, body, kind, when: .matching(info.tag)) != nil
    else { throw SegmentWriteConflict(name: name, key: key) }
  }
}

/// A batch that can be published in an object store.
private struct ObjectPublication: Publication {
  let store: ObjectStore
  let batch: Batch
  let session: ObjectSession
  /// The published segments before the batch was encoded.
  let published: ObjectSession.Published?

  func commit(
    _ segments: [StagedSegment], digest: String, settings: EncoderSettings, isCancelled: () -> Bool
  ) throws -> PublishedBatch {
    let manifests = SegmentManifest.all(segments, of: batch, digest: digest, settings)
    let planned = manifests.map(\.segment)
    // Placed objects do not change: after a lost race for the index they need no second look.
    var placed: [PublishedSegment]?
    var attempt = 0
    // An old view of the session will do: if it has changed, nothing is published by it.
    var isOld = true
    while true {
      defer { isOld = false }
      let before = try isOld ? published : session.published()
      let near = try session.segments(
        near: planned[0].startMs..<max(planned[planned.count - 1].endMs, batch.endMs), in: before)
      let left = near.filter { $0.batchDigest == digest }
      if left.isWhole { return store.confirm(left, of: batch, in: session) }
      for segment in planned { try Conflict.check(segment, against: near.filter { $0.batchDigest != digest }) }
      if isCancelled() { throw Cancelled() }
      let own: [PublishedSegment]
      do {
        own = try placed ?? store.place(segments, manifests, in: session)
        placed = own
      } catch is SegmentWriteConflict where isOld {
        // It may have been published since.
        continue
      }
      if isCancelled() { throw Cancelled() }
      if let next = try session.publish(own, after: before) {
        let receipt = Receipt(
          own, of: batch, refused: manifests.flatMap(\.refused), duplicate: false,
          warnings: batch.warnings + SegmentManifest.notes(in: manifests))
        return PublishedBatch(receipt) {
          try store.updateViews(of: session, after: next)
          try store.updatePlaylist(of: session, with: zip(own, segments.map(\.file)))
          return []
        }
      }
      // Another worker has published in this session.
      attempt += 1
      SegmentWriteConflict.pause(attempt)
    }
  }
}

/// An unlisted object with other content has the name: its worker is about to publish it, or has died. The batch is retried later.
/// A segment is replaced when no index has listed it for two hours.
package struct SegmentWriteConflict: EnvironmentFailure, CustomStringConvertible {
  /// Waits before a retry after a lost race, with a random, growing pause; not before the first attempt.
  package static func pause(_ attempt: Int) {
    if attempt > 0 { usleep(UInt32.random(in: 0...UInt32(5_000 << min(attempt, 8)))) }
  }

  package let name: String
  package let key: String

  package var description: String {
    "publish \(name)\(key): another worker has written something else there and has not listed it yet; tried again later"
  }
}
