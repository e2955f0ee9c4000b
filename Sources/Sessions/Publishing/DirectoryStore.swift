// Makes a batch's segments visible: first all their videos, then all their manifests, each create-once and durable.
// Every step is idempotent, after a crash and when two workers do it at once.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

/// An output directory.
package struct DirectoryStore: WorkerStore {
  package let staging: Staging
  package let index: SessionViews
  /// Refuses batches far from their session; nil to take them.
  private let appendGuard: AppendGuard?
  let publications = KnownPublications()

  package init(staging: Staging, index: SessionViews, appendGuard: AppendGuard? = nil) {
    self.staging = staging
    self.index = index
    self.appendGuard = appendGuard
  }

  private var tombstones: SessionTombstones { SessionTombstones(output: staging.output) }

  package func hasTombstones() throws -> Bool { try tombstones.mayExist() }

  package func tombstone(of session: SessionID) throws -> Tombstone? { try tombstones.tombstone(of: session) }

  package func prepare(_ source: BatchReader, cancellation: Cancellation) throws -> Preparation {
    let directory = SessionDirectory(output: staging.output, session: source.batch.session)
    try tombstones.requireNone(of: directory.session)
    try appendGuard?.check(source.batch, reading: directory.times)
    guard try DurableFile.isDirectory(directory.path) else { return .ready(publication(of: source.batch)) }
    try directory.retention()?.requireNotTooOld(source.batch)
    // Without a valid cache, take the lock: another worker may be publishing.
    var cache = index.cache(of: directory)
    let near =
      cache != nil
      ? try segments(near: source.batch, in: directory, &cache)
      : try directory.locked(cancellation) {
        cache = index.cache(of: directory)
        return try segments(near: source.batch, in: directory, &cache)
      }
    if source.batch.folder != nil {
      let beginning = try beginning(of: source, among: near, directory.retention(), in: directory, cancellation)
      guard let rest = beginning.rest else {
        return .alreadyPublished(
          try confirm(beginning.receipt, source.batch.end, in: directory, directory.lock(cancellation)))
      }
      return .continued(rest, publication(of: rest.batch))
    }
    let own = try own(near, source, cancellation)
    guard try own.isWhole(of: source.batch, directory.retention()) else { return .ready(publication(of: source.batch)) }
    return .alreadyPublished(try confirm(own, of: source.batch, in: directory, directory.lock(cancellation)))
  }

  /// A batch that was published before. Its views may be outdated if the worker died before it updated them.
  fileprivate func confirm(
    _ own: [PublishedSegment], of batch: Batch, in directory: SessionDirectory, _ lock: consuming SessionLock
  ) throws -> PublishedBatch {
    let receipt = Receipt(own, of: batch, refused: [], duplicate: true, warnings: [])
    return try confirm(receipt, batch.end, in: directory, lock)
  }

  private func confirm(
    _ receipt: Receipt, _ end: SessionEnd?, in directory: SessionDirectory, _ lock: consuming SessionLock
  ) throws -> PublishedBatch {
    PublishedBatch(receipt, locked: lock) {
      if let end { try index.record(end, staging.temporaryFile(), in: directory) }
      // Outdated views are marked, and will be updated.
      return index.cache(of: directory) == nil ? try index.update(directory, temporary: staging.temporaryFile()) : []
    }
  }

  package func publisher(of source: BatchReader) throws -> VideoPublisher {
    let directory = SessionDirectory(output: staging.output, session: source.batch.session)
    try tombstones.requireNone(of: directory.session)
    try appendGuard?.check(source.batch, reading: directory.times)
    return { publication(of: $0) }
  }

  package func rollBack(_ source: BatchReader, cancellation: Cancellation) throws -> PublishedBatch? {
    let directory = SessionDirectory(output: staging.output, session: source.batch.session)
    try tombstones.requireNone(of: directory.session)
    guard try DurableFile.isDirectory(directory.path) else { return nil }
    let lock = try directory.lock(cancellation)
    var cache = index.cache(of: directory)
    let near = try segments(near: source.batch, in: directory, &cache)
    let retention = try directory.retention()
    try retention?.requireNotTooOld(source.batch)
    let beginning = try beginning(of: source, among: near, retention, in: directory, cancellation)
    guard let rest = beginning.rest else {
      return try confirm(beginning.receipt, source.batch.end, in: directory, lock)
    }
    let own =
      try source.batch.videos == nil
      ? own(near, rest, cancellation) : directory.abandonedVideos(from: source.batch.frames[0].timeMs)
    if own.isWhole(of: rest.batch, retention) { return try confirm(own, of: source.batch, in: directory, lock) }
    try directory.rollBack(own.isEmpty ? directory.abandonedBeginning(of: rest.batch, among: near, but: nil) : own)
    try directory.removeOrphans(keeping: [])
    try Directory(opening: directory.path).sync()
    try index.update(directory, temporary: staging.temporaryFile())
    rmdir(directory.path)
    lock.release()
    return nil
  }

  /// Returns a batch that can be published. Nothing is known of what is there.
  func publication(of batch: Batch) -> any Publication {
    DirectoryPublication(
      store: self, batch: batch, directory: SessionDirectory(output: staging.output, session: batch.session))
  }

  package var dueInMs: Int? { index.dueInMs }

  package func flushPending(all: Bool) -> [ViewUpdateFailure] { index.flushPending(staging, all: all) }

  /// Makes segments visible: first their videos, then their manifests. Call it with the session locked.
  package func place(_ segments: [(staged: StagedSegment, manifest: JSONValue)], in directory: SessionDirectory) throws
  {
    for (staged, _) in segments {
      try place(staging.file(of: staged.video), as: directory.path + "/" + SegmentName.video(staged.startMs))
    }
    try Directory(opening: directory.path).sync()
    for (staged, manifest) in segments {
      let file = staging.temporaryFile()
      try DurableFile.create(file, SegmentManifest.text(of: manifest))
      // An existing manifest has the same content.
      if try !DurableFile.move(file, to: directory.path + "/" + SegmentName.manifest(staged.startMs)) { unlink(file) }
    }
    try Directory(opening: directory.path).sync()
  }

  /// Published segments that start within the batch's time, and so may be its own. For a part of a folder, also the one before.
  private func segments(
    near batch: Batch, in directory: SessionDirectory, _ cache: inout SessionIndexCache?
  ) throws -> [PublishedSegment] {
    let start = batch.frames[0].timeMs
    let near = try directory.segments(near: start..<batch.endMs, &cache)
    return batch.folder == nil ? near.filter { $0.startMs >= start } : near
  }

  private func beginning(
    of source: BatchReader, among near: [PublishedSegment], _ retention: SessionRetention?,
    in directory: SessionDirectory, _ cancellation: Cancellation
  ) throws -> PublishedBeginning {
    try PublishedBeginning(of: source, among: near, retention, cancellation: cancellation) {
      try directory.manifest($0.startMs).json
    }
  }

  /// The segments of this very batch. Without nearby segments the batch is not hashed, which would be expensive.
  private func own(
    _ near: [PublishedSegment], _ source: BatchReader, _ cancellation: Cancellation
  ) throws -> [PublishedSegment] {
    guard !near.isEmpty else { return [] }
    let digest = try BatchDigest.of(source, cancellation: cancellation)
    return near.filter { $0.batchDigest == digest }
  }

  /// Gives a staged file its name. An existing video without a manifest is a leftover of a dead worker, and is replaced.
  private func place(_ file: String, as target: String) throws(DiskError) {
    if try !DurableFile.move(file, to: target) { try check("rename", target) { rename(file, target) } }
  }
}

/// A batch that can be published in a directory.
private struct DirectoryPublication: Publication {
  let store: DirectoryStore
  let batch: Batch
  let directory: SessionDirectory

  /// The segments of the batch that are published already.
  private enum Found {
    /// Nobody has begun to publish it.
    case nothing
    /// A worker that was faster has published all of it.
    case whole([PublishedSegment])
    /// A worker died while it published. Segments of the same cut stay; others are removed: the settings have changed since, or the
    /// folder has grown.
    case part(staying: [PublishedSegment], outdated: [PublishedSegment])

    var staying: [PublishedSegment] { if case .part(let staying, _) = self { staying } else { [] } }
    var outdated: [PublishedSegment] { if case .part(_, let outdated) = self { outdated } else { [] } }
    var isNothing: Bool { if case .nothing = self { true } else { false } }
  }

  func commit(_ manifests: [SegmentManifest], cancellation: Cancellation) throws -> PublishedBatch {
    let lock = try directory.lock(cancellation)
    let retention = try directory.retention()
    let all = manifests
    let manifests = try retention?.publishable(all, of: batch) ?? all
    let new = manifests.map(\.segment)
    var cache = store.index.cache(of: directory)
    let found = try found(of: new, retention, &cache)
    if case .whole(let own) = found { return try store.confirm(own, of: batch, in: directory, lock) }
    try directory.rollBack(found.outdated)
    let there = Set(found.staying.map(\.startMs))
    let missing = manifests.filter { !there.contains($0.segment.startMs) }
    // No cache has the leftovers of a dead worker.
    let known = found.isNothing ? cache : nil
    let isDeferred = try add(missing, cache, known)
    let receipt = Receipt(
      new, of: batch, refused: manifests.flatMap(\.refused), duplicate: false,
      warnings: batch.warnings + SegmentManifest.notes(in: manifests)
        + (retention?.warning(without: all.count - manifests.count) ?? []))
    let added = missing.map(\.segment)
    return PublishedBatch(receipt, locked: lock) { try updateViews(by: added, known, isDeferred: isDeferred) }
  }

  /// - Throws: ``BadBatch`` if another batch has its time.
  private func found(
    of new: [PublishedSegment], _ retention: SessionRetention?, _ cache: inout SessionIndexCache?
  ) throws -> Found {
    let digest = new[0].batchDigest
    let near = try directory.segments(near: new[0].startMs..<max(new[new.count - 1].endMs, batch.endMs), &cache)
    let abandoned = try directory.abandonedBeginning(of: batch, among: near, but: digest)
    let published = near.filter { $0.batchDigest != digest && $0.batchDigest != abandoned.first?.batchDigest }
    for segment in new { try segment.requireNoConflict(with: published) }
    let left = near.filter { $0.batchDigest == digest }
    if left.isWhole(of: batch, retention) { return .whole(left) }
    if left.isEmpty && abandoned.isEmpty { return .nothing }
    let isSameCut = left.allSatisfy { old in new.contains { $0.isCutLike(old) } }
    return .part(staying: isSameCut ? left : [], outdated: abandoned + (isSameCut ? [] : left))
  }

  /// Makes segments visible, and marks the views as due before.
  ///
  /// - Returns: whether the update of the views is deferred.
  private func add(
    _ missing: [SegmentManifest], _ cache: SessionIndexCache?, _ known: SessionIndexCache?
  ) throws -> Bool {
    let added = missing.map(\.segment)
    let isDeferred = try known.map { try store.index.deferUpdate(directory, $0, by: added) } ?? false
    // With a valid cache there are no orphans.
    if cache == nil { try directory.removeOrphans(keeping: Set(added.map(\.startMs))) }
    try store.place(missing.map { ($0.staged, $0.json) }, in: directory)
    try directory.moveLabels(into: added.map(\.startMs), recent: cache?.recent, temporary: store.staging.temporaryFile)
    return isDeferred
  }

  private func updateViews(
    by added: [PublishedSegment], _ known: SessionIndexCache?, isDeferred: Bool
  ) throws -> [String] {
    let (index, staging) = (store.index, store.staging)
    if let end = batch.end { try index.record(end, staging.temporaryFile(), in: directory) }
    if isDeferred, let known { return index.recordDeferred(added, known, in: directory) }
    return try index.update(directory, known, adding: added, temporary: staging.temporaryFile())
  }
}

extension SessionDirectory {
  /// Rolls back segments of a batch that was never published as a whole. Call it with the session locked.
  func rollBack(_ segments: [PublishedSegment]) throws {
    for segment in segments.reversed() {
      // The words go first: otherwise a crash would leave them to another segment of this start.
      let (start, file) = (segment.startMs, segment.file)
      for name in [SegmentName.text(start), SegmentName.labels(start), SegmentName.manifest(start), file] {
        try removeFile(name)
      }
    }
    if !segments.isEmpty { try removeFile(SegmentText.temporary) }
  }

  /// Returns the segments that a worker had published of a batch when it died, if its folder has grown since, or if other frames of it
  /// could be decoded. Call it with the session locked: then nobody publishes.
  ///
  /// - Parameter digest: of the batch as it is now; nil if nobody knows it.
  fileprivate func abandonedBeginning(
    of batch: Batch, among near: [PublishedSegment], but digest: String?
  ) throws -> [PublishedSegment] {
    guard batch.folder != nil, let first = near.first(where: { $0.part == 1 && $0.startMs >= batch.frames[0].timeMs }),
      first.batchDigest != digest
    else { return [] }
    var none: SessionIndexCache?
    let all = try segments(near: first.startMs..<Int64.max, &none).filter { $0.batchDigest == first.batchDigest }
    let captures = Set(batch.frames.map(\.timeMs))
    let isOwn = all.allSatisfy { $0.frames.allSatisfy { captures.contains($0.timeMs) } }
    return isOwn && !all.isWhole ? all : []
  }
}

extension SessionDirectory {
  /// Returns the segments of videos that a worker had published in part when it died. Call it with the session locked: then nobody
  /// publishes.
  fileprivate func abandonedVideos(from startMs: Int64) throws -> [PublishedSegment] {
    var none: SessionIndexCache?
    let all = Dictionary(grouping: try segments(near: startMs..<Int64.max, &none), by: \.batchDigest).values
    return all.filter { $0[0].isImported && $0[0].part == 1 && !$0.isWhole }.flatMap(\.self).sorted {
      $0.startMs < $1.startMs
    }
  }
}

extension Batch {
  /// The record of its session's end, if it is final.
  var end: SessionEnd? { isFinal ? SessionEnd(session, .final, endedMs: endMs) : nil }
}
