// Brings the sessions of an output directory into an object store, and removes them here: those that have ended, and from time to time
// what there is of others. A session is published in the store before anything of it is removed, and each step can be repeated: after a
// crash the next pass goes on.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Synchronization

/// When sessions are uploaded, and removed here.
package struct UploadRules: Sendable, Equatable {
  /// A session that goes on is uploaded at this interval, in milliseconds; nil to wait for its end.
  package var everyMs: Int64?
  /// For this time, in milliseconds, segments stay here behind their upload.
  package var keptMs: Int64

  /// After this time, in milliseconds, a session is taken for one with a late batch, if it has ended in the store.
  static let joinMs: Int64 = 60_000
  /// Segments of a session that goes on stay here at least for this time, in milliseconds: a late batch is refused if it begins before
  /// those that are here.
  static let lateMs: Int64 = 3_600_000

  package init(everyMs: Int64? = nil, keptMs: Int64 = 0) { (self.everyMs, self.keptMs) = (everyMs, keptMs) }
}

/// The result of a pass.
package struct UploadReport: Sendable {
  /// A session of which segments were published in the store.
  package struct Uploaded: Sendable, Equatable {
    package let session: SessionID
    package let segments: Int
    /// The size of their videos.
    package let bytes: Int
    /// Whether it has ended, and is in the store as a whole.
    package let isComplete: Bool
  }

  package internal(set) var uploaded: [Uploaded] = []
  /// Sessions that were deleted in one place, and now in the other, too.
  package internal(set) var deleted: [SessionID] = []
  /// Segments that were removed here.
  package internal(set) var removed: [RemovedSegments] = []
  package internal(set) var failures: [(session: SessionID?, error: any Error)] = []
  /// The sessions that wait; nil if another process uploads the sessions of this output.
  package internal(set) var state: UploadState?
}

/// The sessions that go on here, and have not ended in the store. The store is asked once for each. For any thread.
package final class OpenUploads: Sendable {
  private let sessions = Mutex<Set<SessionID>>([])

  package init() {}

  func contains(_ session: SessionID) -> Bool { sessions.withLock { $0.contains(session) } }

  func insert(_ session: SessionID) { sessions.withLock { _ = $0.insert(session) } }

  /// Forgets a session that has ended in the store.
  func remove(_ session: SessionID) { sessions.withLock { _ = $0.remove(session) } }

  /// Forgets all other sessions.
  func keep(_ all: [SessionID]) {
    let kept = Set(all)
    sessions.withLock { $0.formIntersection(kept) }
  }
}

/// The sessions of an output, and their store. One thread makes passes.
package struct OutputUploads {
  private let local: DirectoryStore
  private let store: ObjectStore
  private let rules: UploadRules
  private let open: OpenUploads
  private let listener: Listener
  private let cancellation: Cancellation

  /// The parts of a worker that a pass asks.
  package struct Listener: Sendable {
    /// Whether a session waits for its words, which are uploaded with it.
    package var isBusy: @Sendable (SessionID) -> Bool = { _ in false }
    /// Tells that a session is in the store as a whole. Called in each pass until it returns true: then the session may go here. After
    /// a crash it may be called again.
    package var announce: @Sendable (EndedSession) -> Bool = { _ in true }

    package init() {}
  }

  private var output: String { local.staging.output }
  private var files: UploadFiles { UploadFiles(output: output) }
  private var tombstones: SessionTombstones { SessionTombstones(output: output) }

  /// - Parameters:
  ///   - open: what earlier passes have found.
  ///   - cancellation: asked between segments and requests.
  package init(
    of local: DirectoryStore, to store: ObjectStore, _ rules: UploadRules, open: OpenUploads = OpenUploads(),
    _ listener: Listener = Listener(), cancellation: Cancellation = .never
  ) {
    (self.local, self.store, self.rules, self.open) = (local, store, rules, open)
    (self.listener, self.cancellation) = (listener, cancellation)
  }

  /// Uploads what is due, and removes what may go. A failure of one session does not hold up the others, unless the store is away.
  ///
  /// - Parameter nowMs: in unix milliseconds.
  package func run(nowMs: Int64) -> UploadReport {
    var report = UploadReport()
    do {
      guard let lock = try files.lock() else { return report }
      defer { withExtendedLifetime(lock) {} }
      var state = UploadState(store: store.place, atMs: nowMs)
      var isAway = false
      try forwardDeletions(&report, &state, &isAway)
      let entries = try Directory.entries(ifAt: output).filter { $0.kind == .directory }
      // A crash has left them.
      for entry in entries where SessionDirectory.isHidden(entry.name) {
        try SegmentRemoval.removeTree(output + "/" + entry.name, cancellation)
      }
      let sessions = entries.compactMap { SessionID($0.name) }.sorted { $0.description < $1.description }
      open.keep(sessions)
      for session in sessions {
        try cancellation.check()
        visit(session, nowMs, &report, &state, &isAway)
      }
      state.failure = report.failures.last.map { "\($0.error)" }
      report.state = state
      // A full disk has no room for it. Uploads make room.
      try? files.write(state, temporary: local.staging.temporaryFile())
    } catch is Cancelled {
      // The next pass goes on.
    } catch {
      report.failures.append((nil, error))
    }
    return report
  }

  // MARK: - One session

  private func visit(
    _ session: SessionID, _ nowMs: Int64, _ report: inout UploadReport, _ state: inout UploadState,
    _ isAway: inout Bool
  ) {
    let directory = SessionDirectory(output: output, session: session)
    do {
      // One that goes on may have many files: without a reason they are not listed in each pass.
      if rules.everyMs == nil, open.contains(session), try directory.recordedEnd() == nil { return }
      guard var work = try SessionUploadWork(directory, to: store.name) else { return }
      if !isAway, try joinsEnded(work, nowMs) {
        // Its end was announced before.
        _ = try local.end(session, .quiet, ifQuietForMs: nil, cancellation: cancellation)
        work = try SessionUploadWork(directory, to: store.name) ?? work
      }
      if !isAway, try isDue(work, nowMs) {
        do {
          guard let uploaded = try upload(directory, nowMs, &report) else { return }
          work = uploaded
        } catch let deleted as SessionDeleted {
          return try deleteHere(directory, deleted.tombstone, &report)
        }
      }
      if work.isUploaded {
        try remove(work, nowMs, &report)
      } else if work.hasEnded || rules.everyMs != nil {
        state.wait(work.bytes, sinceMs: work.sinceMs ?? nowMs)
      }
    } catch let error where error is Cancelled || error is SessionHeld {
      // The next pass goes on.
      state.wait(0, sinceMs: nowMs)
    } catch {
      isAway = isAway || error.isOfStore
      report.failures.append((session, error))
      state.wait((try? directory.indexHead())??.bytes ?? 0, sinceMs: nowMs)
    }
  }

  /// Whether a session is a late batch of one that has ended, and went to the store.
  private func joinsEnded(_ work: SessionUploadWork, _ nowMs: Int64) throws -> Bool {
    guard !work.hasEnded, work.record == nil, let sinceMs = work.sinceMs, nowMs - sinceMs >= UploadRules.joinMs else {
      return false
    }
    let session = store.session(work.directory.session)
    if open.contains(session.id) { return false }
    do {
      if try session.head().end != nil { return true }
    } catch is SessionDeleted {
      // The upload tells it.
      return true
    }
    open.insert(session.id)
    return false
  }

  private func isDue(_ work: SessionUploadWork, _ nowMs: Int64) throws -> Bool {
    if work.isUploaded || listener.isBusy(work.directory.session) { return false }
    if work.hasEnded { return true }
    guard let everyMs = rules.everyMs, let sinceMs = work.record?.uploadedMs ?? work.sinceMs else { return false }
    return nowMs - sinceMs >= everyMs
  }

  /// - Returns: the session as it was uploaded; nil if it is gone.
  private func upload(
    _ directory: SessionDirectory, _ nowMs: Int64, _ report: inout UploadReport
  ) throws -> SessionUploadWork? {
    // A batch that is being published has some of its segments.
    let locked = try directory.lockedIfFree { try SessionUploadWork(directory, to: store.name) }
    guard case .some(.some(var work)) = locked else { return nil }
    let upload = SessionUpload(directory: directory, store: store, cancellation: cancellation)
    let new = try upload.publish(work.starts, end: work.hasEnded ? directory.recordedEnd() : nil)
    if work.hasEnded { open.remove(directory.session) }
    work.record = UploadRecord(store: store.name, work.parts, uploadedMs: nowMs)
    // Without it, as on a full disk, the next pass finds all there.
    try? work.writeRecord(temporary: local.staging.temporaryFile())
    report.uploaded.append(
      UploadReport.Uploaded(
        session: directory.session, segments: new.segments, bytes: new.bytes, isComplete: work.hasEnded))
    return work
  }

  /// Removes what is in the store, and has been here for long enough.
  private func remove(_ uploaded: SessionUploadWork, _ nowMs: Int64, _ report: inout UploadReport) throws {
    var work = uploaded
    let session = work.directory.session
    guard try !work.hasEnded || isAnnounced(&work), let record = work.record else { return }
    let removal = SegmentRemoval(
      directory: work.directory, views: local.index, temporary: local.staging.temporaryFile,
      cancellation: cancellation)
    // Something may have been published since.
    let isUnchanged = { try SessionUploadWork(work.directory, to: store.name)?.parts == record.parts }
    var removed = RemovedSegments(session)
    if work.hasEnded {
      guard nowMs - record.uploadedMs >= rules.keptMs else { return }
      try removal.removeWhole(if: isUnchanged, &removed)
    } else {
      let rule = RemovalRule.published(byMs: nowMs - max(rules.keptMs, UploadRules.lateMs))
      while try removal.removeFirst(rule, if: isUnchanged, &removed) { try cancellation.check() }
    }
    if removed.segments > 0 { report.removed.append(removed) }
  }

  /// Announces that a session is in the store as a whole, once.
  ///
  /// - Returns: whether its receiver knows it.
  private func isAnnounced(_ work: inout SessionUploadWork) throws -> Bool {
    if work.record?.isAnnounced == true { return true }
    guard try listener.announce(work.directory.endedSession()) else { return false }
    work.record?.isAnnounced = true
    if rules.keptMs > 0 { try? work.writeRecord(temporary: local.staging.temporaryFile()) }
    return true
  }

  // MARK: - Deletions

  /// Deletes in the store what was deleted here.
  private func forwardDeletions(
    _ report: inout UploadReport, _ state: inout UploadState, _ isAway: inout Bool
  ) throws {
    let deletion = ObjectDeletion(store.objects, name: store.name, cancellation: cancellation)
    for session in try files.deletionRequests() {
      // Without a tombstone the deletion here has not begun.
      guard !isAway, let tombstone = try tombstones.tombstone(of: session) else {
        state.deletions += 1
        continue
      }
      do {
        _ = try deletion.add(tombstone)
        _ = try deletion.remove(session)
        try files.removeDeletion(of: session)
        report.deleted.append(session)
      } catch is Cancelled {
        throw Cancelled()
      } catch {
        isAway = error.isOfStore
        state.deletions += 1
        report.failures.append((session, error))
      }
    }
  }

  /// Deletes here what was deleted in the store, unless it came later: then a person decides.
  private func deleteHere(
    _ directory: SessionDirectory, _ tombstone: Tombstone, _ report: inout UploadReport
  ) throws {
    let session = directory.session
    let firstMs = try directory.publishedStarts().first.flatMap(directory.publishedMs) ?? .min
    guard firstMs <= tombstone.deletedAtMs else {
      throw Failure(
        .input, "upload", directory.path,
        "the session was deleted in \(store.place) at \(tombstone.deletedAtMs.dateText), and these pictures came later",
        advice: "delete it here, too, or allow it there: delete --undelete \(session) --store \(store.place)")
    }
    _ = try tombstones.add(tombstone)
    _ = try SessionRemoval(output: output, cancellation: cancellation).remove(session)
    report.deleted.append(session)
  }
}

extension Error {
  /// Whether other sessions would fail, too, because the store is away.
  fileprivate var isOfStore: Bool {
    (self as? any ClassifiedError)?.kind == .environment && !isOfOneSession
      && !(self is SegmentWriteConflict || self is DiskError)
  }
}

/// A session of the output, as a pass finds it.
private struct SessionUploadWork {
  let directory: SessionDirectory
  /// The starts of its segments here, in order, in unix milliseconds.
  let starts: [Int64]
  let parts: UploadRecord.Parts
  /// The parts that the store has; nil if it has none.
  var record: UploadRecord?

  var hasEnded: Bool { parts.hasEnded }
  /// Whether the store has all of it.
  var isUploaded: Bool { record?.parts == parts }
  /// The size of its videos as its views tell it.
  var bytes: Int { (try? directory.indexHead())??.bytes ?? 0 }
  /// When its first segment here was published, in unix milliseconds.
  var sinceMs: Int64? { (try? directory.publishedMs(starts[0])) ?? nil }

  /// - Returns: nil if nothing of it is published.
  init?(_ directory: SessionDirectory, to store: String) throws {
    self.directory = directory
    starts = try directory.publishedStarts()
    guard let lastMs = starts.last else { return nil }
    // The end has to be announced first: the request for that goes with the session.
    let hasEnded = try directory.hasAnnouncedEnd() && directory.recordedEnd() != nil
    parts = UploadRecord.Parts(
      segments: try (directory.retention()?.segments ?? 0) + starts.count, lastMs: lastMs, hasEnded: hasEnded,
      labels: try directory.addedLabelBytes())
    record = try UploadRecord.read(directory).flatMap { $0.store == store ? $0 : nil }
  }

  /// Writes the record, durable when this returns.
  func writeRecord(temporary: String) throws {
    guard let record else { return }
    try DurableFile.replace(directory.path + "/" + UploadRecord.file, record.bytes, temporary: temporary)
  }
}
