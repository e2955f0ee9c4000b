// The spool as a queue: claims, retires and quarantines batches. Every step is one atomic rename to a unique name.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions
import Synchronization

package final class SpoolQueue: BatchQueue {
  /// Room for a number and `.reason.json` within the 255 bytes of a file name.
  private static let nameBytes = 230

  private let spool: Spool
  private let own: WorkerDirectory
  private let worker: WorkerID
  private let taken = Atomic<Int>(0)
  private let elsewhere: HeartbeatMonitor

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

  /// Claims a batch of `incoming/`.
  ///
  /// - Returns: nil when another worker was faster.
  package func claim(_ offer: QueueEntry) throws(DiskError) -> Claim? {
    let raw = Array((spool.incoming + "/").utf8) + offer.bytes
    return try take(raw.map { CChar(bitPattern: $0) } + [0], name: (offer.name ?? "").shortened(to: 255), attempt: 1)
  }

  /// Takes over the claims of dead workers: of this host at once, of other hosts after a lease without a heartbeat. Each of them
  /// may have killed its worker, so it is worked on alone.
  ///
  /// - Returns: the claims, and the failures.
  package func takeOver() throws(DiskError) -> (claims: [Claim], failures: [any Error]) {
    // List them first: a later failure must not lose claims that were taken over.
    let others = try WorkerDirectory.ofOtherHosts(in: spool.claimed)
    var claims: [Claim] = []
    var failures = try WorkerDirectory.takeOver(in: spool.claimed) { dead in
      try empty(dead, into: &claims)
      // A partial reason file.
      for left in try Directory(opening: dead).entries() where left.kind == .file && left.name != "alive" {
        unlink(dead + "/" + left.name)
      }
    }
    for other in others {
      do {
        // It may have lost its connection only: its directory stays.
        if try elsewhere.hasExpired(other) { try empty(other, into: &claims) }
      } catch {
        if DurableFile.exists(other) { failures.append(error) }
      }
    }
    elsewhere.keep(only: Set(others))
    do throws(DiskError) {
      try emptyTrash()
    } catch {
      // Recovered claims must not be lost because of this.
      failures.append(error)
    }
    return (claims, failures)
  }

  private func empty(_ dead: String, into claims: inout [Claim]) throws {
    for held in try Directory(opening: dead).entries() where held.kind == .directory {
      let directory = dead + "/" + held.name
      // The numbers are bounded, whatever the name says.
      let counts = held.name.split(separator: ".").map { min(Int($0) ?? 0, 1_000) }
      let (attempt, failures) = (counts.count > 1 ? max(1, counts[1]) : 1, counts.count > 2 ? counts[2] : 0)
      for batch in try Directory(opening: directory).entries() {
        let source = directory + "/" + batch.name
        if let claim = try take(cString(source), name: batch.name, attempt: attempt, failures: failures) {
          claims.append(claim)
        }
      }
      rmdir(directory)
    }
  }

  /// How many batches workers of other hosts hold, dead or alive.
  package func heldElsewhere() throws -> Int {
    try WorkerDirectory.ofOtherHosts(in: spool.claimed).reduce(0) { held, other in
      try held + Directory(opening: other).entries().filter { $0.kind == .directory }.count
    }
  }

  /// Whether another worker, which took this one for dead, has the batch, or took it away; not so when the spool itself is gone.
  package func hasLost(_ claim: Claim) -> Bool {
    var status = stat()
    return lstat(claim.path, &status) != 0 && errno == ENOENT && DurableFile.exists(own.path + "/alive")
  }

  /// Whether this worker was taken for dead, and what it needs to claim anything is gone; it has to be started again.
  package var isCutOff: Bool { own.isLost }

  /// Counts an attempt of a batch that was taken over.
  package func begin(_ claim: Claim) throws(DiskError) -> Claim? {
    try counted(claim, attempt: claim.attempt + 1, failures: claim.failures)
  }

  /// Counts a failure for an unknown reason.
  package func fail(_ claim: Claim) throws(DiskError) -> Claim {
    try counted(claim, attempt: claim.attempt, failures: claim.failures + 1)
  }

  private func counted(_ claim: Claim, attempt: Int, failures: Int) throws(DiskError) -> Claim {
    let next = Claim(
      name: claim.name, attempt: attempt, failures: failures, token: newDirectory(attempt, failures))
    try check("rename", claim.token) { rename(claim.token, next.token) }
    return next
  }

  private func newDirectory(_ attempt: Int, _ failures: Int) -> String {
    own.path + "/\(taken.add(1, ordering: .relaxed).newValue).\(attempt).\(failures)"
  }

  package func fetch(_ claim: Claim) -> FetchResult { .batch(FetchedBatch(claim: claim, path: claim.path)) }

  package func discard(_ batch: FetchedBatch) {}

  /// Puts a batch back into the queue.
  package func handBack(_ claim: Claim) throws(DiskError) {
    // If a producer has used the name again, the claim stays, and the next worker takes it over.
    if try DurableFile.move(claim.path, to: spool.incoming + "/" + claim.name) { rmdir(claim.token) }
  }

  /// Removes a published batch, or keeps it in `done/`.
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
      let target = spool.trash + "/\(worker)~\(taken.add(1, ordering: .relaxed).newValue)"
      try check("rename", target) { rename(claim.path, target) }
      try? DurableFile.removeTree(target)
    }
    rmdir(claim.token)
  }

  /// Moves a batch to quarantine, byte for byte, with the reason beside it.
  ///
  /// - Returns: its name in quarantine.
  @discardableResult
  package func quarantine(_ claim: Claim, _ reason: BadBatch) throws -> String {
    let name = try DurableFile.firstFree(in: spool.quarantine, claim.name.shortened(to: Self.nameBytes)) {
      (target) throws(DiskError) in
      if DurableFile.exists(target) { return false }
      // The reason comes first, because a batch in quarantine without one would be of no use. One that is there
      // belongs to another batch, or was left by a worker that died here: it costs a number.
      let temporary = own.path + "/\(lastComponent(of: claim.token)).reason"
      unlink(temporary)
      try DurableFile.create(temporary, reason.reason(for: claim, worker: worker))
      defer { unlink(temporary) }
      if reason.cause == BadBatch.denied, Self.mayRead(reason.file, of: claim) {
        throw DiskError("read", claim.path + "/" + reason.file, code: EACCES)
      }
      guard try DurableFile.link(temporary, to: target + Quarantine.reasonEnding) else { return false }
      do throws(DiskError) {
        if try DurableFile.move(claim.path, to: target) { return true }
      } catch {
        // The batch comes again, and would leave another reason each time.
        if DurableFile.exists(claim.path) && !DurableFile.exists(target) { unlink(target + Quarantine.reasonEnding) }
        throw error
      }
      unlink(target + Quarantine.reasonEnding)
      return false
    }
    try Directory(opening: spool.quarantine).sync()
    rmdir(claim.token)
    return name
  }

  /// Whether an unreadable file is readable now: an unexported NFS directory refuses every file for a while.
  private static func mayRead(_ file: String, of claim: Claim) -> Bool {
    let path = file == claim.name ? claim.path : claim.path + "/" + file
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    if descriptor >= 0 { close(descriptor) }
    return descriptor >= 0
  }

  package var lostState: Bool { false }

  /// The poll interval for batches without an inotify event (NFS, dead workers).
  package var pollIntervalMs: Int { 5_000 }

  /// Readable when something appears in `incoming/`; -1 where the system has no watches left.
  package func watch() -> Int32 {
    let watch = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    let events = UInt32(IN_MOVED_TO | IN_CREATE | IN_CLOSE_WRITE)
    if watch >= 0 && inotify_add_watch(watch, spool.incoming, events) >= 0 { return watch }
    if watch >= 0 { close(watch) }
    return -1
  }

  package func status(output: String) throws -> QueueStatus { .spool(try SpoolStatus(of: spool, output: output)) }

  /// Writes the counters for status commands.
  package func show(_ counters: WorkerCounters) throws(DiskError) { try counters.write(to: own.path) }

  /// Leaves the spool. Nothing may be claimed afterwards.
  package func leave() {
    WorkerCounters.remove(from: own.path)
    own.remove()
  }

  private func take(_ source: [CChar], name: String, attempt: Int, failures: Int = 0) throws(DiskError) -> Claim? {
    let claim = Claim(name: name, attempt: attempt, failures: failures, token: newDirectory(attempt, failures))
    try check("mkdir", claim.token) { mkdir(claim.token, 0o755) }
    if rename(source, claim.path) == 0 { return claim }
    let failure = DiskError("rename", claim.path)
    rmdir(claim.token)
    if failure.code == ENOENT { return nil }
    throw failure
  }

  private func cString(_ text: String) -> [CChar] { text.utf8.map { CChar(bitPattern: $0) } + [0] }

  /// Removes the trash of dead workers.
  private func emptyTrash() throws(DiskError) {
    for entry in try Directory(opening: spool.trash).entries()
    where !DurableFile.exists(spool.claimed + "/" + Spool.owner(inTrash: entry.name)) {
      try? DurableFile.removeTree(spool.trash + "/" + entry.name)
    }
  }
}

extension Claim {
  /// Where the batch lies now, in a spool: `claimed/<worker>/<number>.<attempt>.<failures>/NAME`.
  package var path: String { token + "/" + name }
}
