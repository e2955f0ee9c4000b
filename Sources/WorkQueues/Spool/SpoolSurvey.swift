// Reads the state of a spool, without locks: no worker waits.

import FileSystem
import FrameBatches
import Glibc
import Sessions

extension SpoolStatus {
  /// - Throws: ``DiskError`` when a directory cannot be read, except that of a worker that is just leaving.
  package init(of spool: Spool, output: String?) throws {
    self.spool = spool.path
    self.output = output ?? spool.defaultOutput
    let now = WallClock.nowMs
    pictures = try [spool.pictures, spool.collectors].reduce(0) { try $0 + Self.heldPictures($1) }
    waiting = try Self.depth(spool.incoming, now, where: BatchDirectory.isComplete)
    quarantined = try Self.depth(spool.quarantine, now) { !$0.hasSuffix(Quarantine.reasonEnding) }
    kept = try Self.depth(spool.done, now) { _ in true }
    workers = try Self.workers(spool.claimed, now)
    uploads = try UploadFiles(output: self.output).readState()
    let held = workers.flatMap(\.held)
    claimed = QueueDepth(count: held.count, oldestMs: held.map(\.ageMs).max())
    retrying = held.count(where: \.isRetried)
    freeBytes = try DurableFile.freeBytes(at: DurableFile.isDirectory(self.output) ? self.output : spool.path)
  }

  /// Counts the pictures in the homes of batchers.
  private static func heldPictures(_ path: String) throws -> Int {
    try Directory.entries(ifAt: path).filter { $0.kind == .directory }.reduce(0) { sum, home in
      var count = 0
      let held = path + "/" + home.name + "/held"
      if try DurableFile.isDirectory(held) { try Directory(opening: held).visit { _ in count += 1 } }
      return sum + count
    }
  }

  private static func depth(_ path: String, _ now: Int64, where isBatch: (String) -> Bool) throws -> QueueDepth {
    guard try DurableFile.isDirectory(path) else { return QueueDepth(count: 0, oldestMs: nil) }
    let directory = try Directory(opening: path)
    var (count, since) = (0, Int64?.none)
    // There may be very many: do not make a list of them.
    try directory.visit { name in
      guard isBatch(String(cString: name)) else { return }
      count += 1
      var status = stat()
      guard fstatat(directory.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return }
      since = min(since ?? .max, WallClock.unixMs(status.st_ctim.tv_sec, status.st_ctim.tv_nsec))
    }
    return QueueDepth(count: count, oldestMs: since.map { max(0, now - $0) })
  }

  private static func workers(_ path: String, _ now: Int64) throws -> [Worker] {
    try Directory.entries(ifAt: path).filter { $0.kind == .directory && !$0.name.hasPrefix(".") }
      .compactMap { entry in
        let directory = path + "/" + entry.name
        // Its worker may have removed it meanwhile.
        guard let entries = try? Directory(opening: directory, followingLinks: false).entries() else { return nil }
        let held = entries.filter { $0.kind == .directory }.compactMap { Self.held(directory, $0.name, now) }
        return Worker(id: entry.name, life: life(of: directory), held: held, counters: WorkerCounters(in: directory))
      }
  }

  private static func held(_ worker: String, _ name: String, _ now: Int64) -> Held? {
    guard let directory = try? Directory(opening: worker + "/" + name, followingLinks: false),
      let batch = try? directory.entries(limit: 1).first
    else { return nil }
    let (attempt, failures) = Claim.counts(ofDirectory: name)
    // A rename changes the inode's own time, not its content's.
    let since = directory.state(of: batch).map { WallClock.unixMs($0.st_ctim.tv_sec, $0.st_ctim.tv_nsec) }
    return Held(batch: batch.name, attempt: attempt, failures: failures, ageMs: max(0, now - (since ?? now)))
  }

  private static func life(of directory: String) -> Worker.Liveness {
    guard WorkerID.isOnThisHost(lastComponent(of: directory)) else { return .elsewhere }
    guard let isAlive = try? WorkerDirectory.isAlive(directory) else { return .unknown }
    return isAlive ? .alive : .dead
  }
}
