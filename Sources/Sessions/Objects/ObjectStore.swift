// Sessions in an object store: `output/SESSION/…`, the same files with the same bytes as in a directory.
//
// There are no locks, but conditions. A segment's objects are created once: a second worker compares the existing object with its
// own. And a batch is published by one conditional write of the session's index, which fails if another worker has published in
// that session since it was read. Videos come first, then manifests, then the index. A segment that it does not list is not
// published. The views of a long session are not written for each batch. A marker in `behind/` is written first, so that the next
// worker updates them after a crash.

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
  /// The views of a session that this process deferred.
  private struct Due {
    var views = DueViews()
    /// The tag of our marker.
    var marker: ObjectTag?
  }

  private let due = Mutex<[SessionID: Due]>([:])
  /// The time of the next scan for markers of other workers, in monotonic milliseconds.
  private let nextScanMs = Mutex(Int.min)
  private static let scanMs = 60_000
  /// The time to the next scan after one that left superseded files.
  private static let soonMs = 1_000
  /// A marker older than this many seconds belongs to a dead worker.
  private static let markerS = 600
  private static let markers = "behind/"
  /// The monotonic clock, and that of the day.
  private let clock: @Sendable () -> Int
  private let wallClock: @Sendable () -> Int64

  /// The lag of a long session's views in milliseconds, which grows with their size.
  private static func lagMs(_ segments: Int) -> Int { min(max(1_000, 4 * segments), 120_000) }

  /// Seconds after which an unlisted object is an orphan of a dead worker: no batch takes that long.
  static let orphanTTL = 7_200

  /// - Parameters:
  ///   - name: the store's name in messages.
  ///   - clock: a monotonic clock, in milliseconds.
  ///   - wallClock: unix milliseconds.
  package init(
    _ objects: any ObjectClient, name: String, staging: Staging, hls: Bool,
    clock: @escaping @Sendable () -> Int = MonotonicClock.milliseconds,
    wallClock: @escaping @Sendable () -> Int64 = { WallClock.nowMs }
  ) {
    self.clock = clock
    self.wallClock = wallClock
    self.objects = objects
    self.name = name
    self.staging = staging
    hasHLS = hls
  }

  package var dueInMs: Int? {
    let firstMs = min(due.withLock { $0.values.map(\.views.firstMs).min() } ?? .max, nextScanMs.withLock { $0 })
    let nowMs = clock()
    return firstMs > nowMs ? firstMs - nowMs : 0
  }

  package func flushPending(all: Bool) -> [ViewUpdateFailure] {
    let now = clock()
    var failures: [ViewUpdateFailure] = []
    for (id, known) in due.withLock({ $0 }).mapValues(\.views) where all || now >= known.firstMs {
      do {
        try session(id).removingObjectsIfDeleted {
          if all || now >= known.viewsMs ?? .max { try updateViews(of: session(id)) }
          if let releasedMs = known.releasedMs(atMs: all ? .max : now) {
            try updatePlaylist(of: session(id), releasedMs: releasedMs)
          }
        }
        due.withLock { $0[id]?.views.succeed() }
      } catch is SessionDeleted {
        // The next scan removes the marker.
        due.withLock { $0[id] = nil }
      } catch {
        let failedMs = clock()
        due.withLock { $0[id]?.views.fail(atMs: failedMs) }
        failures.append(ViewUpdateFailure(session: id, error: error, isOurs: true))
      }
    }
    let scans = nextScanMs.withLock { next in
      if !all && now < next { return false }
      next = now + Self.scanMs
      return true
    }
    return scans ? failures + updateViewsOfOthers(all: all) + removeSuperseded() : failures
  }

  /// Removes files that no playlist has named for some minutes, of all sessions.
  private func removeSuperseded() -> [ViewUpdateFailure] {
    let (failures, isComplete) = SupersededObjects.removeDue(in: objects, atMs: wallClock(), of: session)
    if !isComplete { nextScanMs.withLock { $0 = clock() + Self.soonMs } }
    return failures
  }

  /// Updates the views that dead workers left behind.
  ///
  /// - Parameter all: whether to update the views of live workers, too.
  private func updateViewsOfOthers(all: Bool) -> [ViewUpdateFailure] {
    var (last, failures): (String?, [ViewUpdateFailure]) = (nil, [])
    // An unreachable store fails the next batch; the markers stay.
    while let markers = try? objects.list(Self.markers, after: last), let end = markers.last {
      last = end.key
      for marker in markers {
        guard let id = SessionID(String(marker.key.dropFirst(Self.markers.count))),
          due.withLock({ $0[id]?.marker }) == nil,
          all || (try? objects.head(marker.key)?.ageS).map({ $0 >= Self.markerS }) ?? false
        else { continue }
        do {
          do {
            try session(id).removingObjectsIfDeleted { try session(id).updateViews() }
          } catch is SessionDeleted {
            // There are no views.
          }
          try objects.delete(marker.key, marker.tag)
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
  func updateViews(of session: ObjectSession, after published: ObjectSession.Published?) throws {
    guard let long = try published ?? session.published(), long.isLong, !long.index.isComplete else {
      return try session.updateViews(published)
    }
    if due.withLock({ $0[session.id]?.views.viewsMs }) != nil { return }
    let tag = try objects.put(
      Self.markers + session.id.description, .bytes(Array("\(WorkerID())".utf8)), .archive, when: .always)
    let dueMs = clock() + Self.lagMs(long.index.count)
    due.withLock { due in
      due[session.id, default: Due()].views.viewsMs = dueMs
      due[session.id]?.marker = tag
    }
  }

  /// Writes the deferred views.
  private func updateViews(of session: ObjectSession) throws {
    // A thread that publishes from here on writes the marker again.
    let marker = due.withLock { due in
      defer { due[session.id]?.views.viewsMs = nil }
      return due[session.id]?.views.viewsMs == nil ? nil : due[session.id]?.marker
    }
    guard let marker else { return }
    do {
      try session.updateViews()
      try objects.delete(Self.markers + session.id.description, marker)
    } catch {
      due.withLock { $0[session.id, default: Due()].views.viewsMs = 0 }
      throw error
    }
    due.withLock { due in
      if due[session.id]?.marker == marker { due[session.id]?.marker = nil }
      if due[session.id]?.views.isEmpty == true { due[session.id] = nil }
    }
  }

  /// Updates a live playlist.
  ///
  /// - Parameters:
  ///   - known: segments that need not be fetched, and the files of their videos.
  ///   - releasedMs: segments that start by then are not held back.
  func updatePlaylist(
    of session: ObjectSession, with known: some Sequence<(PublishedSegment, String)> = EmptyCollection(),
    releasedMs: Int64 = .min
  ) throws {
    guard hasHLS else { return }
    let new = try ObjectPlaylist(session: session, staging: staging, nowMs: wallClock())
      .update(with: known, releasedMs: releasedMs)
    // If it was deleted meanwhile, the playlist came after the removal.
    if let deleted = try session.tombstone() { throw SessionDeleted(deleted) }
    let nowMs = clock()
    due.withLock { due in
      if new != nil || due[session.id] != nil { due[session.id, default: Due()].views.hold(new, atMs: nowMs) }
      if due[session.id]?.views.isEmpty == true { due[session.id] = nil }
    }
  }

  package func hasTombstones() -> Bool { true }

  package func tombstone(of id: SessionID) throws -> Tombstone? { try session(id).tombstone() }

  package func prepare(_ source: BatchReader, isCancelled: () -> Bool) throws -> Preparation {
    let (session, batch) = (session(source.batch.session), source.batch)
    let head = try session.removingObjectsIfDeleted { try session.head() }
    // A batch is listed as a whole or not at all, so its first segment is enough.
    let range = batch.frames[0].timeMs..<batch.endMs
    let within =
      try head.published.map { try session.entries(near: range, in: $0) }?.filter { range.contains($0.startMs) } ?? []
    guard let first = try within.first.map({ try session.segment($0.startMs) }),
      first.batchDigest == (try BatchDigest.of(source, isCancelled: isCancelled))
    else { return .ready(ObjectPublication(store: self, batch: batch, session: session, head: head)) }
    let own = try [first] + within.dropFirst().prefix(first.parts - 1).map { try session.segment($0.startMs) }
    return .alreadyPublished(confirm(own, of: batch, in: session))
  }

  /// Unlisted objects are invisible, so there is nothing to roll back.
  package func rollBack(_ source: BatchReader, isCancelled: () -> Bool) throws -> PublishedBatch? {
    guard case .alreadyPublished(let batch) = try prepare(source, isCancelled: isCancelled) else { return nil }
    return batch
  }

  /// Returns a batch that was published before. Its worker may have died before it updated the views.
  func confirm(_ own: [PublishedSegment], of batch: Batch, in session: ObjectSession) -> PublishedBatch {
    PublishedBatch(Receipt(own, of: batch, refused: [], duplicate: true, warnings: [])) {
      try session.removingObjectsIfDeleted {
        try self.updateViews(of: session, after: nil)
        try self.updatePlaylist(of: session)
      }
      return []
    }
  }

  private func session(_ id: SessionID) -> ObjectSession { ObjectSession(id: id, objects: objects, name: name) }

  /// Creates the missing objects: all videos, then all manifests.
  ///
  /// - Returns: the segments in the store; segments of a dead worker with other settings are adopted.
  /// - Throws: ``SegmentWriteConflict``.
  func place(_ manifests: [SegmentManifest], in session: ObjectSession) throws -> [PublishedSegment] {
    var segments = manifests.map(\.segment)
    var isAdopted = Set<Int>()
    func adopt(_ index: Int, if isUsable: (PublishedSegment) -> Bool) -> Bool {
      guard let other = try? session.segment(segments[index].startMs),
        other.batchDigest == segments[index].batchDigest, isUsable(other)
      else { return false }
      segments[index] = other
      isAdopted.insert(index)
      return true
    }
    for (index, manifest) in manifests.enumerated() {
      let own = manifest.segment
      try create(session.key(own.file), .file(manifest.staged.file), own.bytes, .video) {
        SHA256.hex(of: $0) == own.sha256
      } adopting: {
        adopt(index, if: own.isCutLike)
      }
    }
    for (index, manifest) in manifests.enumerated() where !isAdopted.contains(index) {
      let own = manifest.segment
      let text = SegmentManifest.text(of: manifest.json)
      try create(session.key(SegmentName.manifest(own.startMs)), .bytes(text), text.count, .json) {
        $0 == text
      } adopting: {
        // The same batch under another name.
        adopt(index) { $0.sha256 == own.sha256 }
      }
    }
    return segments
  }

  /// Writes an object unless there is one.
  ///
  /// - Parameters:
  ///   - size: of the object, in bytes.
  ///   - isSame: whether an existing object of that size has the same content.
  ///   - adopting: whether an existing object with other content may be used instead.
  /// - Throws: ``SegmentWriteConflict``.
  private func create(
    _ key: String, _ body: ObjectBody, _ size: Int, _ kind: ObjectKind, isSame: ([UInt8]) -> Bool, adopting: () -> Bool
  ) throws {
    if try objects.put(key, body, kind, when: .absent) != nil { return }
    guard let info = try objects.head(key) else { throw SegmentWriteConflict(name: name, key: key) }
    if info.size == size, let there = try objects.get(key, limit: size), isSame(there.bytes) { return }
    if adopting() { return }
    guard let ageS = info.ageS, ageS >= Self.orphanTTL,
      try objects.put(key, body, kind, when: .matching(info.tag)) != nil
    else { throw SegmentWriteConflict(name: name, key: key) }
  }
}
