// Collects the pictures that come one by one: a state for each session, and threads that make batches of them.

import Batching
import FileSystem
import FrameBatches
import Glibc
import Logging
import Synchronization
import WorkQueues

package final class PictureIntake: Sendable {
  private static let threads = 4
  /// Sessions whose directories are open.
  private static let maximumSessions = 1_000
  /// Bytes of the pictures that no batch has.
  private static let maximumBytes = 1 << 30
  /// Milliseconds without a picture after which a session's directory is closed, and removed.
  private static let (closedMs, removedMs) = (30_000, Int64(3_600_000))
  /// Milliseconds between scans for sessions that no thread has: of dead workers, or after a failure.
  private static let scanMs = 15_000

  /// A session, or none if its directory was closed meanwhile.
  private typealias Entry = Monitor<PictureSession?>

  private let spool: Spool
  private let rules: PictureSession.Rules
  private let logger: Logger
  /// The sessions, each with the producer whose request opened it.
  private let entries = Mutex<[SessionID: (entry: Entry, producer: Producer?)]>([:])
  private let waitingBytes = Mutex(HeldShares())
  private let scannedMs = Atomic(MonotonicClock.milliseconds())
  private let workers = Mutex<[PeriodicThread]>([])

  /// Finds the pictures of earlier runs.
  ///
  /// - Parameter spool: that of the worker, or a directory of the same form.
  package init(_ spool: Spool, input: InputOptions, limits: Limits, logger: Logger) throws {
    self.spool = spool
    self.logger = logger
    rules = PictureSession.Rules(input: input, limits: limits)
    try DurableFile.makeDirectories(spool.pictures)
    try openAbandoned()
  }

  /// Starts the threads that make batches, until ``stop()``.
  package func start() throws {
    for number in 0..<Self.threads {
      let thread = try PeriodicThread("pictures", everyMs: 250) { [self] in step(number) }
      workers.withLock { $0.append(thread) }
    }
  }

  /// Makes batches of all pictures but the newest of each session, as far as there is time; the next run finds the others.
  package func stop() {
    for thread in workers.withLock({ threads in
      defer { threads = [] }
      return threads
    }) { thread.stop() }
    // The next run may have no listener.
    do { try closeSessions() } catch { logger.error("ingest.failed", metadata: ["error": "\(error)"]) }
    let untilMs = MonotonicClock.milliseconds() + 2_000
    for (_, (entry, _)) in entries.withLock({ $0 }) where MonotonicClock.milliseconds() < untilMs {
      entry.change { _ = cut($0, .known) }
    }
  }

  /// Takes a picture: see ``PictureSession/add(_:at:aheadMs:kind:digest:bytes:)``.
  ///
  /// - Throws: ``ProblemDetails``, ``DiskError``.
  func add(
    _ draft: UploadDraft, to session: SessionID, at timeMs: Int64, aheadMs: Int64?, kind: String, digest: String,
    from producer: Producer?
  ) throws -> (outcome: IntakeOutcome, timeMs: Int64) {
    let hasRoom = waitingBytes.withLock {
      FairShare.allows(producer, own: $0[producer], all: $0.all, limit: Self.maximumBytes)
    }
    guard hasRoom else { throw ProblemDetails(.tooMany, "too many pictures wait for a batch", retryAfterS: 5) }
    let taken = try with(session, for: producer) {
      try $0.add(draft.path, at: timeMs, aheadMs: aheadMs, kind: kind, digest: digest, bytes: draft.size)
    }
    if taken.outcome == .taken { waitingBytes.withLock { $0.add(draft.size, of: producer) } }
    return taken
  }

  /// Makes batches of all pictures of a session.
  func close(_ session: SessionID) throws {
    guard DurableFile.exists(spool.pictures + "/\(session)") else { return }
    try with(session) { open in log(try open.cut(.session(session.description)), of: open) }
  }

  /// Calls `body` with a session, which no other thread has meanwhile.
  private func with<R>(
    _ session: SessionID, for producer: Producer? = nil, _ body: (PictureSession) throws -> R
  ) throws -> R {
    while true {
      let entry = try entry(of: session, for: producer)
      let result = entry.change { open -> Result<R, any Error>? in
        guard entries.withLock({ $0[session]?.entry === entry }) else { return nil }
        return Result {
          do {
            let found = try open ?? PictureSession(session, in: spool, rules)
            open = found
            return try body(found)
          } catch {
            // The state in memory may not be that on the disk.
            if !(error is ProblemDetails) { open = nil }
            throw error is SessionInUse ? Self.inUse(session) : error
          }
        }
      }
      // Nil if the session was closed meanwhile.
      if let result { return try result.get() }
    }
  }

  private func entry(of session: SessionID, for producer: Producer?) throws(ProblemDetails) -> Entry {
    try entries.withLock { entries throws(ProblemDetails) in
      if let known = entries[session] { return known.entry }
      let own = entries.values.count { $0.producer?.name == producer?.name }
      guard FairShare.allows(producer, own: own, all: entries.count, limit: Self.maximumSessions) else {
        throw ProblemDetails(.tooMany, "\(entries.count) sessions are open already", retryAfterS: 15)
      }
      let entry = Entry(nil)
      entries[session] = (entry, producer)
      return entry
    }
  }

  private static func inUse(_ session: SessionID) -> ProblemDetails {
    ProblemDetails(
      .unavailable, "another worker collects the pictures of \(session)", retryAfterS: 5,
      advice: "send the pictures of a session to one worker")
  }

  private func step(_ number: Int) {
    for (session, (entry, _)) in entries.withLock({ $0 }) {
      guard abs(session.hashValue % Self.threads) == number else { continue }
      entry.change { open in
        if !cut(open, .due) { open = nil }
        guard open.map({ $0.isEmpty && $0.idleMs > Self.closedMs }) ?? true else { return }
        open = nil
        entries.withLock { if $0[session]?.entry === entry { $0[session] = nil } }
      }
    }
    guard number == 0 else { return }
    count()
    do { try closeSessions() } catch { logger.error("ingest.failed", metadata: ["error": "\(error)"]) }
    let nowMs = MonotonicClock.milliseconds()
    guard scannedMs.load(ordering: .relaxed) + Self.scanMs < nowMs else { return }
    scannedMs.store(nowMs, ordering: .relaxed)
    do { try openAbandoned() } catch { logger.error("ingest.failed", metadata: ["error": "\(error)"]) }
  }

  /// Makes the batches of a session that are due; returns false after a failure.
  private func cut(_ session: PictureSession?, _ which: Batcher.Cut) -> Bool {
    guard let session else { return true }
    do {
      log(try session.cut(which), of: session)
      return true
    } catch {
      logger.error("ingest.failed", metadata: ["session": "\(session.session)", "error": "\(error)"])
      return false
    }
  }

  /// Makes the batches of sessions that are to end.
  private func closeSessions() throws {
    let closing = SessionClosing(spool)
    for session in try closing.requests(to: SessionClosing.ingest) {
      do {
        try close(session)
        closing.finish(session, in: SessionClosing.ingest)
      } catch is ProblemDetails {
        // Another worker has the pictures.
      }
    }
  }

  private func log(_ names: [String], of session: PictureSession) {
    for name in names {
      logger.debug("ingest.collected", metadata: ["batch": "\(name)", "session": "\(session.session)"])
    }
  }

  private func count() {
    var bytes = HeldShares()
    for (_, (entry, producer)) in entries.withLock({ $0 }) {
      bytes.add(entry.read { $0?.waitingBytes ?? 0 }, of: producer)
    }
    waitingBytes.withLock { [bytes] in $0 = bytes }
  }

  /// Opens the directories with pictures or batches that a dead process has left.
  package func openAbandoned() throws {
    for entry in try Directory.entries(ifAt: spool.pictures) where entry.kind == .directory {
      guard let session = SessionID(entry.name), entries.withLock({ $0[session] == nil }) else { continue }
      do {
        let path = spool.pictures + "/" + entry.name
        if try Batcher.isOwing(path) {
          try with(session) { _ in }
        } else if Self.ageMs(of: path + "/journal") ?? Self.ageMs(of: path) ?? 0 > Self.removedMs {
          try PictureSession(session, in: spool, rules).remove()
        }
      } catch is SessionInUse, is ProblemDetails {
        // Another worker does that, or a later scan.
      }
    }
  }

  private static func ageMs(of path: String) -> Int64? {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    return WallClock.nowMs - WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }
}
