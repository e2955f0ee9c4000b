// `prune` of an object store. It removes what is older than the operator wants to keep, by the ages that the store tells in its lists, and
// leaves waiting batches alone. It may run beside workers: each object is looked at again before it is removed, because a worker may have
// written another one under its key. A batch in quarantine goes before its reason: as long as the reason is there, no worker takes the name
// for another batch.

import FileSystem
import FrameBatches
import Sessions

package struct StoredPruning {
  /// Maximum number of objects that are listed in each place.
  private static let maximumListed = 1_000_000

  private let objects: any ObjectClient
  /// The store's name in messages, which keys follow.
  private let name: String
  private let store: ObjectStore
  private let retention: Retention
  /// The reason in the tombstones of removed sessions; nil for no tombstones.
  private let tombstoneReason: String?
  private let isDryRun: Bool

  /// - Parameters:
  ///   - name: the store's name in messages, which keys follow.
  ///   - staging: a private directory.
  ///   - tombstoneReason: the reason in the tombstones of removed sessions; nil to let them come back.
  ///   - isDryRun: whether to remove nothing and only report.
  package init(
    _ objects: any ObjectClient, name: String, staging: Staging, retention: Retention, tombstoneReason: String? = nil,
    isDryRun: Bool
  ) {
    (self.objects, self.name, self.retention) = (objects, name, retention)
    (self.tombstoneReason, self.isDryRun) = (tombstoneReason, isDryRun)
    store = ObjectStore(objects, name: name, staging: staging)
  }

  package func run() -> Pruning.Result {
    var result: Pruning.Result = ([], [], [], [], nil)
    if let ageMs = retention.keptMs { prune("done/", ageMs, "a kept batch", &result) }
    if let ageMs = retention.quarantinedMs {
      attempt(&result) { try pruneQuarantine(ageMs, &$0) }
      prune("accepted/", ageMs, "a mark of an accepted batch", &result)
    }
    let sessions = StoredSessions(objects, name: name)
    let report = StoredRetention(
      retention.segments, of: store, sessionsMs: retention.sessionsMs, tombstoneReason: tombstoneReason
    ).run(nowMs: retention.nowMs, isDryRun: isDryRun)
    result.pruned += report.removed.map { removed in
      Pruned(
        path: sessions.place(of: removed.session), what: removed.what, bytes: removed.bytes, segments: removed)
    }
    result.ending = report.ending.map { sessions.place(of: $0) }.sorted()
    result.failures += report.failures
    if let ageMs = retention.compactedMs {
      let report = StoredCompaction(of: store, ageMs: ageMs, takesEnded: false)
        .run(nowMs: retention.nowMs, isDryRun: isDryRun)
      result.compaction = report
      result.failures += report.failures
    }
    return result
  }

  private func attempt(_ result: inout Pruning.Result, _ body: (inout Pruning.Result) throws -> Void) {
    do { try body(&result) } catch { result.failures.append(error) }
  }

  /// Removes the old objects of a place.
  private func prune(_ prefix: String, _ ageMs: Int64, _ what: String, _ result: inout Pruning.Result) {
    attempt(&result) { result in
      try forEach(in: prefix) { object in
        if isOld(object, ageMs) { remove(object, ageMs, what, &result) }
      }
    }
  }

  private func pruneQuarantine(_ ageMs: Int64, _ result: inout Pruning.Result) throws {
    // A reason follows its batch in the list, but other names may lie between.
    var batches: Set<String> = []
    try forEach(in: ObjectQuarantine.prefix) { object in
      let name = String(object.key.dropFirst(ObjectQuarantine.prefix.count))
      if ObjectQuarantine.isBatch(name) { batches.insert(name) }
      guard isOld(object, ageMs) else { return }
      if ObjectQuarantine.isBatch(name) {
        remove(object, ageMs, "a batch in quarantine", &result) {
          try objects.delete(ObjectQuarantine.reasonKey(of: name), nil)
        }
      } else if name.hasSuffix(Quarantine.reasonEnding) {
        let batch = String(name.dropLast(Quarantine.reasonEnding.count))
        if batches.contains(batch) { return }
        attempt(&result) { result in
          // A worker may have put the batch there meanwhile.
          guard try objects.head(ObjectQuarantine.key(of: batch)) == nil, try isReason(object.key) else { return }
          remove(object, ageMs, "a reason without its batch", &result)
        }
      }
    }
  }

  private func isReason(_ key: String) throws -> Bool {
    do {
      return try objects.get(key, limit: 1 << 20).map { BadBatch.reason(in: $0.bytes) != nil } ?? false
    } catch is ObjectTooLarge {
      return false
    }
  }

  // MARK: - Objects

  private func forEach(in prefix: String, _ body: (ObjectInfo) throws -> Void) throws {
    var walk = StoredSessions(objects, name: name).walk(prefix)
    var count = 0
    while let page = try walk.next() {
      count += page.count
      guard count <= Self.maximumListed else {
        throw Failure(
          .environment, "list", name + prefix, "more than \(Self.maximumListed) objects",
          advice: "remove them by a lifecycle rule of the bucket")
      }
      try page.forEach(body)
    }
  }

  /// An object without an age is never old.
  private func isOld(_ object: ObjectInfo, _ ageMs: Int64) -> Bool {
    object.ageS.map { 1_000 * Int64($0) > ageMs } ?? false
  }

  /// Removes an object that was listed, unless it has changed since.
  ///
  /// - Parameter finish: called once it is removed, but not in a dry run.
  private func remove(
    _ object: ObjectInfo, _ ageMs: Int64, _ what: String, _ result: inout Pruning.Result,
    _ finish: () throws -> Void = {}
  ) {
    attempt(&result) { result in
      if !isDryRun {
        guard let now = try objects.head(object.key), now.tag == object.tag, isOld(now, ageMs) else { return }
        try objects.delete(object.key, object.tag)
        try finish()
      }
      result.pruned.append(Pruned(path: name + object.key, what: what, bytes: object.size))
    }
  }
}
