// The state of a spool, seen from outside: nothing is locked, and no worker waits.

import FileSystem
import FrameBatches
import Glibc
import JSON

package struct SpoolStatus: Sendable {
  /// Batches that lie in one place.
  package struct QueueDepth: Sendable {
    package let count: Int
    /// How long the oldest has been there, in milliseconds; nil where there is none.
    package let oldestMs: Int64?

    package var json: JSONValue {
      .object(["count": .number(count), "oldestMs": oldestMs.map(JSONValue.number) ?? .null])
    }
  }

  /// A batch that a worker holds.
  package struct Held: Sendable {
    package let batch: String
    /// How often work on it has begun.
    package let attempt: Int
    /// The number of failures for unknown reasons.
    package let failures: Int
    /// Since it came into that hand, or work on it began anew.
    package let ageMs: Int64

    package var isRetried: Bool { attempt > 1 || failures > 0 }
  }

  /// A worker, or what is left of one.
  package struct Worker: Sendable {
    package enum Liveness: String, Sendable {
      case alive, dead
      /// On this host, without the right to look.
      case unknown
      /// On another host, whose processes are not visible from here.
      case elsewhere
    }

    package let id: String
    package let life: Liveness
    package let held: [Held]
    /// Its counters; nil if it has written none.
    package let counters: WorkerCounters?
  }

  package let spool: String
  package let output: String
  /// Waiting, and not claimed.
  package let waiting: QueueDepth
  /// In a worker's hands.
  package let claimed: QueueDepth
  /// Of those, the ones that are tried again.
  package let retrying: Int
  package let quarantined: QueueDepth
  /// Published and kept on request.
  package let kept: QueueDepth
  /// In the output's file system.
  package let freeBytes: Int
  package let workers: [Worker]

  /// Batches a minute, of all workers that live or may live.
  package var perMinute: Int { workers.filter { $0.life != .dead }.reduce(0) { $0 + ($1.counters?.perMinute ?? 0) } }

  /// - Throws: ``DiskError`` when a place cannot be read. One that a worker is just leaving is taken for left.
  package init(of spool: Spool, output: String?) throws {
    self.spool = spool.path
    self.output = output ?? spool.defaultOutput
    let now = WallClock.nowMs
    waiting = try Self.heap(spool.incoming, now, where: BatchDirectory.isComplete)
    quarantined = try Self.heap(spool.quarantine, now) { !$0.hasSuffix(Quarantine.reasonEnding) }
    kept = try Self.heap(spool.done, now) { _ in true }
    workers = try Self.workers(spool.claimed, now)
    let held = workers.flatMap(\.held)
    claimed = QueueDepth(count: held.count, oldestMs: held.map(\.ageMs).max())
    retrying = held.count(where: \.isRetried)
    freeBytes = try DurableFile.freeBytes(
      at: DurableFile.isDirectory(self.output) ? self.output : spool.path)
  }

  /// All of it, for a program: one line.
  package var json: String { value.line }

  private var value: JSONValue {
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
    return .object([
      "spool": .string(spool), "output": .string(output), "waiting": waiting.json, "claimed": claimed.json,
      "retrying": .number(retrying), "quarantined": quarantined.json, "done": kept.json,
      "freeBytes": .number(freeBytes), "perMinute": .number(perMinute), "workers": .array(workers),
    ])
  }

  // MARK: - Looking

  private static func heap(_ path: String, _ now: Int64, where isBatch: (String) -> Bool) throws -> QueueDepth {
    guard try DurableFile.isDirectory(path) else { return QueueDepth(count: 0, oldestMs: nil) }
    let directory = try Directory(opening: path)
    var (count, since) = (0, Int64?.none)
    // There may be very many: no list is made of them.
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
    guard try DurableFile.isDirectory(path) else { return [] }
    return try Directory(opening: path).entries().filter { $0.kind == .directory && !$0.name.hasPrefix(".") }
      .compactMap { entry -> Worker? in
        let place = path + "/" + entry.name
        // Gone while we looked.
        guard let directory = try? Directory(opening: place, followingLinks: false),
          let inside = try? directory.entries()
        else { return nil }
        let held = inside.filter { $0.kind == .directory }.compactMap { Self.held(place + "/" + $0.name, $0.name, now) }
        return Worker(id: entry.name, life: life(of: place), held: held, counters: WorkerCounters(in: place))
      }
  }

  /// `<number>.<attempt>.<failures>/NAME`.
  private static func held(_ place: String, _ counts: String, _ now: Int64) -> Held? {
    guard let directory = try? Directory(opening: place, followingLinks: false),
      let batch = try? directory.entries(limit: 1).first
    else { return nil }
    let numbers = counts.split(separator: ".").map { Int($0) ?? 0 }
    return Held(
      batch: batch.name, attempt: numbers.count > 1 ? numbers[1] : 1, failures: numbers.count > 2 ? numbers[2] : 0,
      ageMs: directory.changedMs(batch).map { max(0, now - $0) } ?? 0)
  }

  private static func life(of place: String) -> Worker.Liveness {
    guard WorkerID.isOnThisHost(lastComponent(of: place)) else { return .elsewhere }
    guard let isAlive = try? WorkerDirectory.isAlive(place) else { return .unknown }
    return isAlive ? .alive : .dead
  }
}

extension Directory {
  /// When an entry came here or was changed, in unix milliseconds; nil when it is gone.
  fileprivate func changedMs(_ entry: Entry) -> Int64? {
    // A rename changes the inode's own time, not its content's.
    state(of: entry).map { WallClock.unixMs($0.st_ctim.tv_sec, $0.st_ctim.tv_nsec) }
  }
}
