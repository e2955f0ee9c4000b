// The spool as a queue: claims, retires and quarantines batches. Every step is one atomic rename to a unique name.

import CLinux
import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Notifying
import Sessions
import Synchronization

package final class SpoolQueue: BatchQueue {
  /// Room for a number and `.reason.json` within the 255 bytes of a file name.
  static let nameBytes = 230

  let spool: Spool
  private let own: WorkerDirectory
  private let worker: WorkerID
  /// The number of the last directory in ``own``, or of the last batch in the trash.
  private let lastNumber = Atomic<Int>(0)
  let elsewhere: HeartbeatMonitor

  /// - Parameter elsewhere: the monitor of workers of other hosts.
  package init(_ spool: Spool, worker: WorkerID, elsewhere: HeartbeatMonitor) throws(DiskError) {
    self.spool = spool
    self.worker = worker
    self.elsewhere = elsewhere
    own = try WorkerDirectory(in: spool.claimed, worker: worker)
  }

  package func waiting() throws(DiskError) -> [QueueEntry] {
    try spool.waiting().map { QueueEntry(name: $0.name, bytes: $0.bytes) }
  }

  package func claim(_ entry: QueueEntry) throws(DiskError) -> Claim? {
    let path = Array((spool.incoming + "/").utf8) + entry.bytes
    var status = stat()
    // The claim is a rename, which changes this time.
    let isThere = lstat(path.map { CChar(bitPattern: $0) } + [0], &status) == 0
    var claim = try take(path, name: (entry.name ?? "").shortened(to: 255), attempt: 1, failures: 0)
    claim?.arrivedMs = isThere ? WallClock.unixMs(status.st_ctim.tv_sec, status.st_ctim.tv_nsec) : nil
    return claim
  }

  /// Whether another worker, which took this one for dead, has taken the batch; false if the spool itself is gone.
  package func hasLost(_ claim: Claim) -> Bool {
    var status = stat()
    return lstat(claim.path, &status) != 0 && errno == ENOENT && DurableFile.exists(own.path + "/alive")
  }

  package var fault: QueueFault? { own.isLost ? .workerEvicted : nil }

  package func begin(_ claim: Claim) throws(DiskError) -> Claim? {
    do throws(DiskError) {
      return try counted(claim, attempt: claim.attempt + 1, failures: claim.failures)
    } catch {
      if hasLost(claim) { return nil }
      throw error
    }
  }

  package func fail(_ claim: Claim) throws(DiskError) -> Claim {
    try counted(claim, attempt: claim.attempt, failures: claim.failures + 1)
  }

  package func forgive(_ claim: Claim) throws(DiskError) -> Claim {
    claim.attempt > 1 ? try counted(claim, attempt: 1, failures: claim.failures) : claim
  }

  package var takesEvents: Bool { false }

  package func announce(_ claim: Claim, key: String, event: String) {}

  package func announce(key: String, event: String) {}

  package func owed(limit: Int) throws(DiskError) -> [String] { try spool.owed(limit: limit) }

  package func isClosing(_ session: SessionID) throws(DiskError) -> Bool { try spool.isClosing(session) }

  package var notifications: RefusedNotifications { RefusedNotifications(spool: spool.path) }

  private func counted(_ claim: Claim, attempt: Int, failures: Int) throws(DiskError) -> Claim {
    var next = newClaim(claim.name, attempt, failures)
    next.arrivedMs = claim.arrivedMs
    try check("rename", claim.directory) { rename(claim.directory, next.directory) }
    return next
  }

  private func newClaim(_ name: String, _ attempt: Int, _ failures: Int) -> Claim {
    Claim(id: own.path + "/\(nextNumber()).\(attempt).\(failures)", name: name, attempt: attempt, failures: failures)
  }

  private func nextNumber() -> Int { lastNumber.add(1, ordering: .relaxed).newValue }

  package func fetch(_ claim: Claim) -> FetchResult {
    var claim = claim
    claim.traceParent = KeptTrace.of(claim.path)
    return .batch(FetchedBatch(claim: claim, path: claim.path))
  }

  package func handBack(_ claim: Claim) throws(DiskError) {
    // If a producer has used the name again, the claim stays, and the next worker takes it over.
    if try DurableFile.move(claim.path, to: spool.incoming + "/" + claim.name) { rmdir(claim.directory) }
  }

  package func retire(_ claim: Claim, _ receipts: [Receipt], keep: Bool) throws(DiskError) {
    if keep {
      try DurableFile.makeDirectories(spool.done)
      _ = try DurableFile.firstFree(in: spool.done, claim.name.shortened(to: Self.nameBytes)) {
        (target) throws(DiskError) in
        try DurableFile.move(claim.path, to: target)
      }
    } else {
      // Rename it first: half a batch must never look like a batch. Files that cannot be removed then, such as
      // another user's directory, stay in the trash and do no harm.
      let target = spool.trash + "/\(worker)~\(nextNumber())"
      try check("rename", target) { rename(claim.path, target) }
      try? DurableFile.removeTree(target)
    }
    rmdir(claim.directory)
  }

  package func isAccepted(_ mark: String) throws -> Bool { try Quarantine(of: spool).isAccepted(mark) }

  package func acceptingCommand(_ name: String) -> String { Quarantine(of: spool).acceptingCommand(name) }

  @discardableResult
  package func quarantine(_ claim: Claim, _ reason: BadBatch) throws -> String {
    try Quarantine(of: spool).add(claim, reason, worker: worker)
  }

  /// Watches `incoming/`. Renames of other hosts on NFS cause no event, and the system may have no watches left.
  package func watch() -> (descriptor: Int32, pollMs: Int) {
    let pollMs = 5_000
    let watch = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    let events = UInt32(IN_MOVED_TO | IN_CREATE | IN_CLOSE_WRITE)
    if watch >= 0 && inotify_add_watch(watch, spool.incoming, events) >= 0 { return (watch, pollMs) }
    if watch >= 0 { close(watch) }
    return (-1, pollMs)
  }

  package func status(output: String) throws -> QueueStatus { .spool(try SpoolStatus(of: spool, output: output)) }

  package func show(_ counters: WorkerCounters) throws(DiskError) { try counters.write(to: own.path) }

  package func leave() {
    WorkerCounters.remove(from: own.path)
    own.remove()
  }

  /// Moves a batch into a directory of its own.
  ///
  /// - Parameter path: in bytes, as the file system has it.
  /// - Returns: nil when the batch is gone.
  func take(_ path: [UInt8], name: String, attempt: Int, failures: Int) throws(DiskError) -> Claim? {
    let claim = newClaim(name, attempt, failures)
    let source = path.map { CChar(bitPattern: $0) } + [0]
    try check("mkdir", claim.directory) { mkdir(claim.directory, 0o755) }
    if rename(source, claim.path) == 0 { return claim }
    let failure = DiskError("rename", claim.path)
    rmdir(claim.directory)
    if failure.code == ENOENT { return nil }
    throw failure
  }
}

extension Claim {
  /// In a spool, the claim's directory: `claimed/<worker>/<number>.<attempt>.<failures>`.
  var directory: String { id }

  /// In a spool, the batch's path while it is claimed.
  var path: String { directory + "/" + name }

  /// The numbers in the name of a claim's directory, bounded because anything may be in a name.
  static func counts(ofDirectory name: String) -> (attempt: Int, failures: Int) {
    let counts = name.split(separator: ".").map { min(Int($0) ?? 0, 1_000) }
    return (counts.count > 1 ? max(1, counts[1]) : 1, counts.count > 2 ? counts[2] : 0)
  }
}
