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

package final class ObjectStore: WorkerStore, DeferringStore {
  package let staging: Staging
  let objects: any ObjectClient
  /// The views on request that this process keeps.
  let views: ViewKinds
  /// The store's name in messages.
  let name: String
  private let deferred: DeferredViews
  private let recent = RecentSegments()
  /// Whether this process announces ends.
  private let announcesEnds: Bool
  /// Whether live playlists are made as windows, because first segments will be removed.
  private let isWindow: Bool
  /// How the segments of new batches are kept.
  private let layout: StoreLayout
  /// The sessions that may still go on; nil if nobody asks for quiet ones.
  let openSessions: OpenSessions?
  /// Refuses batches far from their session; nil to take them.
  private let appendGuard: AppendGuard?
  private let watch: ConditionWatch
  private let wallClock: @Sendable () -> Int64

  /// A scan lists objects, which takes time and costs money.
  private static let timing = DeferredViews.Timing(
    scanMs: 60_000, removalMs: 60_000, nextRemovalMs: 1_000, countsScans: true)

  /// The lag of a long session's views in milliseconds, which grows with their size.
  private static func lagMs(_ segments: Int) -> Int { min(max(1_000, 4 * segments), 120_000) }

  /// Seconds after which an unlisted object is an orphan of a dead worker: no batch takes that long.
  static let orphanTTL = 7_200

  /// - Parameters:
  ///   - name: the store's name in messages.
  ///   - views: those on request that this process keeps.
  ///   - announcesEnds: whether this process announces the ends of sessions.
  ///   - findsQuiet: whether ``quietSessions(forMs:)`` is asked.
  ///   - isWindow: whether live playlists are made as windows, because first segments will be removed.
  ///   - layout: how the segments of new batches are kept. Sessions of each are read and continued.
  ///   - appendGuard: refuses batches far from their session; nil to take them.
  ///   - clock: a monotonic clock, in milliseconds.
  ///   - wallClock: unix milliseconds.
  package init(
    _ objects: any ObjectClient, name: String, staging: Staging, _ views: ViewKinds = [], announcesEnds: Bool = false,
    findsQuiet: Bool = false, isWindow: Bool = false, layout: StoreLayout = .plain, appendGuard: AppendGuard? = nil,
    clock: @escaping @Sendable () -> Int = MonotonicClock.milliseconds,
    wallClock: @escaping @Sendable () -> Int64 = { WallClock.nowMs }
  ) {
    deferred = DeferredViews(Self.timing, clock: clock)
    watch = ConditionWatch(objects, name: name, clock: clock)
    self.wallClock = wallClock
    self.objects = objects
    self.name = name
    self.announcesEnds = announcesEnds
    self.appendGuard = appendGuard
    self.isWindow = isWindow
    self.layout = layout
    openSessions = findsQuiet ? OpenSessions(objects) : nil
    self.staging = staging
    self.views = views
  }

  /// The store's name, as people write it.
  package var place: String { name.hasSuffix("/") ? String(name.dropLast()) : name }

  package var dueInMs: Int? { deferred.dueInMs }

  package func flushPending(all: Bool) -> [ViewUpdateFailure] { deferred.flush(self, all: all) }

  var markers: MarkerObjects { MarkerObjects(objects: objects) }

  func update(_ due: DueUpdate) throws {
    let session = session(due.session)
    do {
      try session.removingObjectsIfDeleted {
        if due.abandoned != nil { return try session.updateViews(nil, events()) }
        if due.isOfAll { try updateDeferredViews(of: session) }
        if let releasedMs = due.releasedMs { try updatePackages(of: session, releasedMs: releasedMs) }
      }
    } catch is SessionDeleted {
      // There are no views. The next scan removes our own marker.
      deferred.forget(due.session)
    }
    if let marker = due.abandoned { try markers.remove(marker) }
  }

  func removeSuperseded() -> (failures: [ViewUpdateFailure], isComplete: Bool) {
    SupersededObjects.removeDue(in: objects, atMs: wallClock(), of: session)
  }

  /// Updates the views of a session, or defers that if they are long.
  ///
  /// - Parameters:
  ///   - published: the session after our publication; nil after one of another worker.
  ///   - own: the published segments.
  func updateViews(
    of session: ObjectSession, after published: ObjectSession.Published?, _ own: [PublishedSegment] = []
  ) throws {
    guard let long = try published ?? session.published() else { return }
    guard long.hasViews else {
      try events(knowing: own)?.writeKnown(of: long, in: session)
      return
    }
    guard long.isLong, !long.index.isComplete else {
      return try session.updateViews(published, events(knowing: own))
    }
    if deferred[session.id]?.viewsMs != nil { return }
    let marker = try markers.add(session.id, known: nil)
    let lagMs = Self.lagMs(long.index.count)
    deferred.change(session.id) { due, nowMs in due.wait(untilMs: nowMs + lagMs, marker) }
  }

  /// Writes the views that this process deferred.
  private func updateDeferredViews(of session: ObjectSession) throws {
    // A thread that publishes from here on writes the marker again.
    let marker = deferred.change(session.id) { due, _ in
      defer { due.viewsMs = nil }
      return due.viewsMs == nil ? nil : due.marker
    }
    guard let marker else { return }
    do {
      try session.updateViews(nil, events())
      try markers.remove(marker)
    } catch {
      deferred.change(session.id) { due, _ in due.viewsMs = 0 }
      throw error
    }
    deferred.change(session.id) { due, _ in
      if due.marker == marker { due.marker = nil }
    }
  }

  /// Returns the events that this process keeps; nil for none.
  ///
  /// - Parameter segments: those that need not be fetched.
  func events(knowing segments: [PublishedSegment] = []) -> ObjectEvents? {
    views.contains(.sentry) ? ObjectEvents(knowing: segments) : nil
  }

  /// Updates the live playlist and the thumbnails.
  ///
  /// - Parameters:
  ///   - known: segments that need not be fetched.
  ///   - published: the session after our publication; nil after one of another worker.
  ///   - releasedMs: segments that start by then are not held back.
  ///   - evenWithoutHLS: whether to update the playlist of another worker if this one keeps none.
  func updatePackages(
    of session: ObjectSession, with known: some Sequence<KnownSegment> = EmptyCollection(),
    after published: ObjectSession.Published? = nil, releasedMs: Int64 = .min, evenWithoutHLS: Bool = false
  ) throws {
    let hasPlaylist = try views.contains(.hls) || evenWithoutHLS && objects.head(session.playlistKey) != nil
    let hasThumbnails = views.contains(.thumbnails) && releasedMs == .min
    guard hasPlaylist || hasThumbnails else { return }
    let known = Dictionary(uniqueKeysWithValues: known.map { ($0.segment.startMs, $0) })
    var heldBack: HeldBack?
    if hasPlaylist {
      let all = recent.segments(of: session.id).merging(known) { $1 }
      heldBack = try playlist(of: session).update(with: all, after: published, releasedMs: releasedMs)
      recent.note(known.values, of: session.id)
    }
    if hasThumbnails { try ObjectThumbnails(session: session, staging: staging).update(with: known) }
    // If it was deleted meanwhile, these objects came after the removal.
    let isSame = try published?.tag.map { try objects.head(session.headKey)?.tag == $0 } ?? false
    if !isSame, let deleted = try session.tombstone() { throw SessionDeleted(deleted) }
    if hasPlaylist { deferred.change(session.id) { due, nowMs in due.hold(heldBack, atMs: nowMs) } }
  }

  func playlist(of session: ObjectSession) -> ObjectPlaylist {
    ObjectPlaylist(session: session, staging: staging, nowMs: wallClock(), isWindow: isWindow)
  }

  package func hasTombstones() -> Bool { true }

  package func tombstone(of id: SessionID) throws -> Tombstone? { try session(id).tombstone() }

  package func prepare(_ source: BatchReader, cancellation: Cancellation) throws -> Preparation {
    let session = session(source.batch.session)
    return try session.removingObjectsIfDeleted { try prepare(source, in: session, cancellation) }
  }

  private func prepare(
    _ source: BatchReader, in session: ObjectSession, _ cancellation: Cancellation
  ) throws -> Preparation {
    let batch = source.batch
    let head = try head(of: session, for: batch)
    let retention = head.published?.retention
    try retention?.requireNotTooOld(batch)
    let range = batch.frames[0].timeMs..<batch.endMs
    if batch.folder != nil {
      let entries = try head.published.map { try session.entries(near: range, in: $0) } ?? []
      let near = try session.segments(entries, reachingInto: range)
      let beginning = try PublishedBeginning(of: source, among: near, retention, cancellation: cancellation) {
        let segment = $0
        return try session.manifest(entries.first { $0.startMs == segment.startMs } ?? segment.entry).json
      }
      guard let rest = beginning.rest else {
        return .alreadyPublished(confirm(beginning.receipt, of: batch, in: session))
      }
      return .continued(rest, ObjectPublication(store: self, batch: rest.batch, session: session, head: head))
    }
    // A batch is listed as a whole or not at all, so its first segment is enough.
    let within =
      try head.published.map { try session.entries(near: range, in: $0) }?.filter { range.contains($0.startMs) } ?? []
    guard let first = try within.first.map(session.segment),
      first.batchDigest == (try BatchDigest.of(source, cancellation: cancellation))
    else { return .ready(ObjectPublication(store: self, batch: batch, session: session, head: head)) }
    let own = try [first] + within.dropFirst().prefix(first.parts - first.part).map(session.segment)
    return .alreadyPublished(confirm(own, of: batch, in: session))
  }

  package func publisher(of source: BatchReader) throws -> VideoPublisher {
    let session = session(source.batch.session)
    if appendGuard != nil { _ = try session.removingObjectsIfDeleted { try head(of: session, for: source.batch) } }
    return { batch in
      let head = try session.removingObjectsIfDeleted { try session.head() }
      return ObjectPublication(store: self, batch: batch, session: session, head: head)
    }
  }

  /// Returns the session as it is before a batch is published.
  ///
  /// - Throws: ``SessionDeleted``; ``BadBatch`` if the batch is far from it.
  private func head(of session: ObjectSession, for batch: Batch) throws -> ObjectSession.Head {
    let head = try session.head()
    try appendGuard?.check(batch) {
      head.published.map { $0.index.startMs...max($0.index.startMs, $0.index.endMs) }
    }
    return head
  }

  /// Unlisted objects are invisible, so there is nothing to roll back.
  package func rollBack(_ source: BatchReader, cancellation: Cancellation) throws -> PublishedBatch? {
    switch try prepare(source, cancellation: cancellation) {
    case .alreadyPublished(let batch): return batch
    case .ready: return nil
    case .continued: return nil
    }
  }

  /// Returns a batch that was published before. Its worker may have died before it updated the views.
  func confirm(_ own: [PublishedSegment], of batch: Batch, in session: ObjectSession) -> PublishedBatch {
    confirm(Receipt(own, of: batch, refused: [], duplicate: true, warnings: []), of: batch, in: session)
  }

  private func confirm(_ receipt: Receipt, of batch: Batch, in session: ObjectSession) -> PublishedBatch {
    PublishedBatch(receipt) {
      try session.removingObjectsIfDeleted {
        if let end = batch.end {
          try self.requestFinalEnd(of: session.id, after: batch.name)
          _ = try session.recordEnd(end, cancellation: .never)
        }
        try self.updateViews(of: session, after: nil)
        try self.updatePackages(of: session)
      }
      return []
    }
  }

  /// Asks the workers to announce the end of a session, once its final batch is finished.
  func requestFinalEnd(of session: SessionID, after batch: String) throws {
    if announcesEnds { try EndRequestObjects(objects: objects).add(EndRequest(session, .final, awaiting: [batch])) }
  }

  func session(_ id: SessionID) -> ObjectSession {
    ObjectSession(id: id, objects: objects, name: name, watch: watch)
  }

  /// Creates the missing objects: all videos, then all manifests.
  ///
  /// - Returns: for each of them the segment in the store; segments of a dead worker with other settings are adopted.
  /// - Throws: ``SegmentWriteConflict``.
  func place(
    _ sources: [SegmentSource], in session: ObjectSession, behind published: ObjectSession.Published?,
    _ cancellation: Cancellation
  ) throws -> [PlacedSegment] {
    switch layout {
    case .plain: try placeObjects(sources, in: session, cancellation)
    case .packed:
      try placePacks(
        sources, in: session, behind: published.map { $0.index.last.pack?.kind ?? Self.plainKind }, cancellation)
    }
  }

  /// No pack has this kind.
  private static let plainKind = ""

  /// - Parameter kind: of the session's last pack, or ``plainKind``; nil if the session is new.
  private func placePacks(
    _ sources: [SegmentSource], in session: ObjectSession, behind kind: String?, _ cancellation: Cancellation
  ) throws -> [PlacedSegment] {
    let scratch = Staging.Scratch(in: staging)
    defer { scratch.remove() }
    try scratch.make()
    return try Pack.all(of: sources, in: scratch.path, behind: kind, cancellation)
      .flatMap { try place($0, in: session) }
  }

  private func place(_ pack: Pack, in session: ObjectSession) throws -> [PlacedSegment] {
    func placed(_ segments: [Pack.Placed], isAdopted: Bool) -> [PlacedSegment] {
      segments.map { PlacedSegment(segment: $0.segment, isAdopted: isAdopted, pack: $0.place, layout: $0.layout) }
    }
    var own = placed(pack.segments, isAdopted: false)
    let key = session.key(SegmentName.pack(pack.startMs))
    try create(key, .file(pack.path), pack.size, .video) {
      SHA256.hex(of: $0) == pack.sha256
    } adopting: {
      // The same batch with other settings, or under another name.
      guard let there = try? objects.get(key, limit: 2 * pack.size + (1 << 20)),
        let others = try? Pack.segments(in: there.bytes, startMs: pack.startMs, path: name + key),
        others.count == own.count,
        zip(others, own).allSatisfy({
          $0.segment.batchDigest == $1.segment.batchDigest && $1.segment.isCutLike($0.segment)
        })
      else { return false }
      own = placed(others, isAdopted: true)
      return true
    }
    return own
  }

  private func placeObjects(
    _ sources: [SegmentSource], in session: ObjectSession, _ cancellation: Cancellation
  ) throws -> [PlacedSegment] {
    var segments = sources.map(\.segment)
    var isAdopted = Set<Int>()
    func adopt(_ index: Int, if isUsable: (PublishedSegment) -> Bool) -> Bool {
      guard let other = try? session.segment(at: segments[index].startMs),
        other.batchDigest == segments[index].batchDigest, isUsable(other)
      else { return false }
      segments[index] = other
      isAdopted.insert(index)
      return true
    }
    for (index, source) in sources.enumerated() {
      try cancellation.check()
      let own = source.segment
      try create(session.key(own.file), source.video.body(), own.bytes, .video) {
        SHA256.hex(of: $0) == own.sha256
      } adopting: {
        adopt(index, if: own.isCutLike)
      }
    }
    for (index, source) in sources.enumerated() where !isAdopted.contains(index) {
      let own = source.segment
      let text = try source.text()
      try create(session.key(SegmentName.manifest(own.startMs)), .bytes(text), text.count, .json) {
        $0 == text
      } adopting: {
        // The same batch under another name.
        adopt(index) { $0.sha256 == own.sha256 }
      }
    }
    return segments.enumerated().map { PlacedSegment(segment: $1, isAdopted: isAdopted.contains($0)) }
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
    func isThere(_ info: ObjectInfo) throws -> Bool {
      guard info.size == size, let there = try objects.get(key, limit: size) else { return false }
      return isSame(there.bytes)
    }
    if try objects.put(key, body, kind, when: .absent) != nil { return }
    guard let info = try objects.head(key) else { throw SegmentWriteConflict(name: name, key: key) }
    if try isThere(info) || adopting() { return }
    guard let ageS = info.ageS, ageS >= Self.orphanTTL else { throw SegmentWriteConflict(name: name, key: key) }
    if try objects.put(key, body, kind, when: .matching(info.tag)) != nil { return }
    // The answer to the write may be lost.
    guard let info = try objects.head(key), try isThere(info) else {
      throw SegmentWriteConflict(name: name, key: key)
    }
  }
}

extension StagedVideo {
  fileprivate func body() throws(DiskError) -> ObjectBody {
    switch self {
    case .file(let path): .file(path)
    case .bytes(let bytes): .bytes(bytes)
    case .part(let file, let range): .bytes(try file.bytes(range))
    }
  }
}
