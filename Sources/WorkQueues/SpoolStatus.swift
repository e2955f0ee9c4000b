import JSON
import Sessions

/// The state of a spool.
package struct SpoolStatus: Sendable {
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
  /// The sessions that wait for a store; nil if sessions stay here.
  package let uploads: UploadState?

  /// Batches a minute, of all workers that are alive or may be.
  package var perMinute: Int { workers.filter { $0.life != .dead }.reduce(0) { $0 + ($1.counters?.perMinute ?? 0) } }

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
      "uploads": uploads.map { .object($0.members) } ?? .null,
    ]).line
  }
}
