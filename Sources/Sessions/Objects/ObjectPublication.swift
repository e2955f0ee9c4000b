import Encoding
import FileSystem
import FrameBatches

/// A batch that can be published in an object store.
struct ObjectPublication: Publication {
  let store: ObjectStore
  let batch: Batch
  let session: ObjectSession
  /// The session before the batch was encoded.
  let head: ObjectSession.Head

  func commit(_ manifests: [SegmentManifest], cancellation: Cancellation) throws -> PublishedBatch {
    // First use the index that `prepare` read: if the session has changed since, nothing is published.
    var known: ObjectSession.Head? = head
    return try session.removingObjectsIfDeleted {
      defer { known = nil }
      return try publish(manifests, from: known, cancellation: cancellation)
    }
  }

  /// - Parameter known: the session at an earlier moment; nil to read it.
  private func publish(
    _ all: [SegmentManifest], from known: ObjectSession.Head?, cancellation: Cancellation
  ) throws -> PublishedBatch {
    var manifests = all
    let digest = all[0].segment.batchDigest
    // Placed objects do not change. After a lost race for the index they are not checked again, unless the session was deleted.
    var placed: [PlacedSegment]?
    var generation = known?.generation
    var attempt = 0
    var known = known
    while true {
      let isOld = known != nil
      let before = try known ?? session.head()
      known = nil
      if before.generation != generation { (placed, generation) = (nil, before.generation) }
      let retention = before.published?.retention
      let kept = try retention?.publishable(all, of: batch) ?? all
      if kept.count != manifests.count { (manifests, placed) = (kept, nil) }
      let planned = manifests.map(\.segment)
      let near = try session.segments(
        near: planned[0].startMs..<max(planned[planned.count - 1].endMs, batch.endMs), in: before.published)
      let left = near.filter { $0.batchDigest == digest }
      if left.isWhole(of: batch, retention) { return store.confirm(left, of: batch, in: session) }
      let others = near.filter { $0.batchDigest != digest }
      for segment in planned { try segment.requireNoConflict(with: others) }
      try cancellation.check()
      let own: [PlacedSegment]
      do {
        own =
          try placed
          ?? store.place(manifests.map(SegmentSource.init), in: session, behind: before.published, cancellation)
        placed = own
      } catch is SegmentWriteConflict where isOld {
        // It may have been published since.
        continue
      }
      try cancellation.check()
      let end = batch.end
      if end != nil { try store.requestFinalEnd(of: session.id, after: batch.name) }
      if end == nil { try store.openSessions?.note(session.id) }
      if let next = try session.publish(own.map(\.entry), after: before, end: end) {
        let receipt = Receipt(
          own.map(\.segment), of: batch, refused: manifests.flatMap(\.refused), duplicate: false,
          warnings: batch.warnings + SegmentManifest.notes(in: manifests)
            + (retention?.warning(without: all.count - manifests.count) ?? []))
        return PublishedBatch(receipt) { [manifests] in
          var latest: ObjectSession.Published? = next
          try session.removingObjectsIfDeleted {
            defer { latest = nil }
            try session.moveLabels(into: own.map(\.segment.startMs), of: next)
            try store.updateViews(of: session, after: latest, own.map(\.segment))
            let known = zip(own, manifests).lazy.map { KnownSegment($0, staged: $1) }
            try store.updatePackages(of: session, with: known, after: latest)
          }
          return store.events()?.warnings(of: own.map(\.segment), in: session.id) ?? []
        }
      }
      // Another worker has published in this session.
      attempt += 1
      SegmentWriteConflict.pause(attempt)
    }
  }
}
