// Sessions in an object store: `output/SESSION/…`, the same files with the same bytes as in a directory.
//
// There are no locks, so two things decide. A segment's objects are created once: whoever comes second finds out whether what
// is there is what it would have written. And a batch is published by one conditional write of `session.json`, which
// fails when anybody has published in that session since it was read. Videos come first, then manifests, then
// `session.json`; what it does not list is not published, whoever left it there.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Synchronization

package final class ObjectStore: ArtifactStore {
  package let staging: Staging
  private let objects: any ObjectClient
  /// Whether sessions can be played while they grow.
  private let hasHLS: Bool
  /// What the store is called in messages.
  private let name: String
  /// Segments that live playlists do not list yet.
  private let heldBack = Mutex<[SessionID: HLSPackage.HeldBack]>([:])

  /// What nobody has listed for so long, in seconds, is a dead worker's: no batch takes that long.
  static let remainsS = 7_200

  /// - Parameter name: what the store is called in messages.
  package init(_ objects: any ObjectClient, name: String, staging: Staging, hls: Bool) {
    self.objects = objects
    self.name = name
    self.staging = staging
    hasHLS = hls
  }

  package var dueInMs: Int? {
    heldBack.withLock { $0.values.map(\.dueMs).min() }.map { max(0, $0 - MonotonicClock.milliseconds()) }
  }

  package func catchUp(all: Bool) -> [ViewUpdateFailure] {
    let now = MonotonicClock.milliseconds()
    return heldBack.withLock { $0 }.filter { all || now >= $0.value.dueMs }.compactMap { id, known in
      do {
        try updatePlaylist(of: session(id), releasedMs: known.lastMs)
        return nil
      } catch {
        heldBack.withLock {
          $0[id] = HLSPackage.HeldBack(
            startMs: known.startMs, lastMs: known.lastMs, dueMs: now + SessionIndex.retryMs)
        }
        return ViewUpdateFailure(session: id, error: error, isOurs: true)
      }
    }
  }

  /// Brings a live playlist up to date.
  ///
  /// - Parameters:
  ///   - known: segments that need not be fetched, and the files of their videos.
  ///   - releasedMs: segments that start by then are listed, whatever may come.
  fileprivate func updatePlaylist(
    of session: ObjectSession, with known: some Sequence<(PublishedSegment, String)> = EmptyCollection(),
    releasedMs: Int64 = .min
  ) throws {
    guard hasHLS else { return }
    let new = try ObjectPlaylist(session, staging: staging).update(with: known, releasedMs: releasedMs)
    heldBack.withLock { heldBack in
      // What comes behind it puts nothing off.
      if let new, heldBack[session.id]?.startMs == new.startMs { return }
      heldBack[session.id] = new
    }
  }

  package func prepare(_ source: OpenBatch, isCancelled: () -> Bool) throws -> Preparation {
    let (session, batch) = (session(source.batch.session), source.batch)
    let snapshot = try session.snapshot()
    // Listed with its batch's other segments or not at all: the first one tells.
    let within = (snapshot.view?.segments ?? []).filter {
      (batch.frames[0].timeMs..<batch.endMs).contains($0.startMs)
    }
    guard let first = try within.first.map({ try session.segment($0.startMs) }),
      first.batchDigest == (try BatchDigest.of(source, isCancelled: isCancelled))
    else { return .ready(ObjectPublication(store: self, batch: batch, session: session, snapshot: snapshot)) }
    let own = try [first] + within.dropFirst().prefix(first.parts - 1).map { try session.segment($0.startMs) }
    return .alreadyPublished(confirm(own, of: batch, in: session))
  }

  /// What is not listed is seen by nobody: there is nothing to take back.
  package func rollBack(_ source: OpenBatch, isCancelled: () -> Bool) throws -> PublishedBatch? {
    guard case .alreadyPublished(let batch) = try prepare(source, isCancelled: isCancelled) else { return nil }
    return batch
  }

  /// A batch that was published before. The worker may have died before it brought the other views up to date.
  fileprivate func confirm(
    _ own: [PublishedSegment], of batch: Batch, in session: ObjectSession
  ) -> PublishedBatch {
    PublishedBatch(Receipt(own, of: batch, refused: [], duplicate: true, warnings: [])) {
      try session.updateScript()
      try self.updatePlaylist(of: session)
      return []
    }
  }

  private func session(_ id: SessionID) -> ObjectSession { ObjectSession(id, in: objects, name: name) }

  /// Creates what is not there: all videos, then all manifests.
  ///
  /// - Returns: the segments as they are there; of a dead worker's, coded with other settings, its own.
  /// - Throws: ``ContestedSegment``.
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
  ///   - size: of what is written, in bytes.
  ///   - isSame: whether what is there, of that size, is what we have.
  ///   - adopting: whether what is there may stand for it.
  /// - Throws: ``ContestedSegment``.
  private func create(
    _ key: String, _ body: ObjectBody, _ size: Int, _ kind: ObjectKind,
    isSame: ([UInt8]) -> Bool, adopting: () throws -> Bool
  ) throws {
    if try objects.put(key, body, kind, when: .absent) != nil { return }
    guard let info = try objects.head(key) else { throw ContestedSegment(name: name, key: key) }
    if info.size == size, let there = try objects.get(key, limit: size), isSame(there.bytes) { return }
    if try adopting() { return }
    guard let ageS = info.ageS, ageS >= Self.remainsS,
      try objects.put(key, body, kind, when: .matching(info.tag)) != nil
    else { throw ContestedSegment(name: name, key: key) }
  }
}

/// A batch that can be published in an object store.
private struct ObjectPublication: Publication {
  let store: ObjectStore
  let batch: Batch
  let session: ObjectSession
  /// What was there before the batch was encoded.
  let snapshot: ObjectSession.Snapshot

  func commit(
    _ segments: [StagedSegment], digest: String, settings: EncoderSettings, isCancelled: () -> Bool
  ) throws -> PublishedBatch {
    let manifests = SegmentManifest.all(segments, of: batch, digest: digest, settings)
    let planned = manifests.map(\.segment)
    // Once they are there they stay as they are: whoever loses the race for the view need not look at them again.
    var placed: [PublishedSegment]?
    var attempt = 0
    // What was seen a while ago will do: when it is not so any more, nothing is published by it.
    var seen: ObjectSession.Snapshot? = snapshot
    while true {
      let (snapshot, isOld) = (try seen ?? session.snapshot(), seen != nil)
      seen = nil
      let view = snapshot.view
      let near = try session.segments(
        near: planned[0].startMs..<max(planned[planned.count - 1].endMs, batch.endMs), in: view)
      let published = near.filter { $0.batchDigest == digest }
      if published.isWhole { return store.confirm(published, of: batch, in: session) }
      for segment in planned { try Conflict.check(segment, against: near.filter { $0.batchDigest != digest }) }
      if isCancelled() { throw Cancelled() }
      let own: [PublishedSegment]
      do {
        own = try placed ?? store.place(segments, manifests, in: session)
        placed = own
      } catch is ContestedSegment where isOld {
        // It may have been published since.
        continue
      }
      if isCancelled() { throw Cancelled() }
      if let next = try session.list(own, in: view) {
        let receipt = Receipt(
          own, of: batch, refused: manifests.flatMap(\.refused), duplicate: false,
          warnings: batch.warnings + SegmentManifest.notes(in: manifests))
        return PublishedBatch(receipt) {
          try session.updateScript(from: snapshot.script, to: next.files[1].bytes)
          try store.updatePlaylist(of: session, with: zip(own, segments.map(\.file)))
          return []
        }
      }
      // Somebody else has published in this session.
      attempt += 1
      ContestedSegment.pause(attempt)
    }
  }
}

/// Under a name there is something else than we would write, and nothing says yet that it is published: a worker is about to, or has
/// died. It is looked at again later; a segment is written over when nobody has listed it for two hours.
package struct ContestedSegment: EnvironmentFailure, CustomStringConvertible {
  /// Before something is tried again that somebody else was faster at; none before the first attempt.
  package static func pause(_ attempt: Int) {
    if attempt > 0 { usleep(UInt32.random(in: 0...UInt32(5_000 << min(attempt, 8)))) }
  }

  package let name: String
  package let key: String

  package var description: String {
    "publish \(name)\(key): another worker has written something else there and has not listed it yet; tried again later"
  }
}
