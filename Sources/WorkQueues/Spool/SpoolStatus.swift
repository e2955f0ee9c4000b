// The state of a spool, read without locks: no worker waits.

import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions

package struct SpoolStatus: Sendable {
  /// The batches in one state.
  package struct QueueDepth: Sendable {
    package let count: Int
    /// Milliseconds for which the oldest has been in this state; nil if there is none.
    package let oldestMs: Int64?

    package var json: JSONValue {
      .object(["count": .number(count), "oldestMs": oldestMs.map(JSONValue.number) ?? .null])
    }
  }

  /// A batch that a worker holds.
  package struct Held: Sendable {
    package let batch: String
    /// The number of attempts.
    package let attempt: Int
    /// The number of failures for unknown reasons.
    package let failures: Int
    /// Milliseconds since the worker claimed it or last began an attempt.
    package let ageMs: Int64

    package var isRetried: Bool { attempt > 1 || failures > 0 }
  }

  /// A worker, or the directory of a dead worker.
  package struct Worker: Sendable {
    package enum Liveness: String, Sendable {
      case alive, dead
      /// On this host, but this process may not read its directory.
      case unknown
      /// On another host, whose processes are not visible from here.
      case elsewhere
    }

    package let id: String
    package let life: Liveness
    package let held: [Held]
    /// Nil if it has written none.
    package let counters: WorkerCounters?
  }

  package let spool: String
  package let output: String
  /// Pictures that came one by one, and that no batch has yet; those in a collector's folder are not counted.
  package let pictures: Int
  package let waiting: QueueDepth
  package let claimed: QueueDepth
  /// The number of claimed batches that are retried.
  package let retrying: Int
  package let quarantined: QueueDepth
  /// Published and kept on request.
  package let kept: QueueDepth
  /// Free bytes of the output's file system.
  package let freeBytes: Int
  package let workers: [Worker]

  /// Batches a minute, of all workers that are alive or may be.
  package var perMinute: Int { workers.filter { $0.life != .dead }.reduce(0) { $0 + ($1.counters?.perMinute ?? 0) } }

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
    let held = workers.flatMap(\.held)
    claimed = QueueDepth(count: held.count, oldestMs: held.map(\.ageMs).max())
    retrying = held.count(where: \.isRetried)
    freeBytes = try DurableFile.freeBytes(at: DurableFile.isDirectory(self.output) ? self.output : spool.path)
  }

  /// One line of JSON for a program.
  package func json(_ growth: OutputGrowth) -> String {
    let workers = workers.map { worker in
      var members: [String: JSONValue] = [
        "worker": .string(worker.id), "life": .string(worker.life.rawValue),
        "held": .array(
          worker.held.map { held in
            .object([
              "batch": .string(held.batch), "attempt": .number(held.attempt), "failures": .number(held.failures),
              "ageMs": .number(held.ageMs),
            ])
          }),
      ]
      if let counters = worker.counters { members["tally"] = counters.json }
      return JSONValue.object(members)
    }
    return JSONValue.object([
      "spool": .string(spool), "output": .string(output), "pictures": .number(pictures), "waiting": waiting.json,
      "claimed": claimed.json,
      "retrying": .number(retrying), "quarantined": quarantined.json, "done": kept.json,
      "freeBytes": .number(freeBytes), "bytesADay": growth.bytesADay.map { .number($0) } ?? .null,
      "daysLeft": growth.daysLeft(free: freeBytes).map { .number($0) } ?? .null,
      "perMinute": .number(perMinute), "workers": .array(workers),
    ]).line
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
