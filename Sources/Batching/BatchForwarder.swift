// Brings the batches of a spool to workers elsewhere, in the order of their names, which is that of a session's captures. Each step may be
// repeated: the receiver knows a batch that comes again, and its directory is removed when the receiver has it. A batch that the receiver
// will never take goes to the quarantine of this spool.

import FileSystem
import FrameBatches
import Synchronization
import WorkQueues

package final class BatchForwarder: Sendable {
  package enum News: Sendable {
    case sent(batch: String)
    /// The batch is in quarantine under this name.
    case refused(RefusedBatch, quarantined: String)
    /// Nothing can be sent now; told once for each cause.
    case failing(String)
    /// Batches are sent again.
    case recovered
  }

  private struct State {
    /// Failures in a row, the cause of the last one, and when the next try is due.
    var failures = 0
    var cause: String?
    var resumeMs = 0
  }

  /// Locked while batches are forwarded: by the thread that does it at intervals, by a request for an end, or at the stop.
  private let state = Mutex(State())
  private let spool: Spool
  private let receiver: any BatchReceiver
  private let limits: Limits
  private let report: @Sendable (News) -> Void

  /// - Parameter spool: a directory of batches that no worker takes from.
  package init(
    _ spool: Spool, to receiver: any BatchReceiver, limits: Limits,
    report: @escaping @Sendable (News) -> Void = { _ in }
  ) {
    (self.spool, self.receiver, self.limits, self.report) = (spool, receiver, limits, report)
  }

  /// Forwards all batches that are there.
  package func run() throws { try state.withLock { try run(&$0) } }

  /// Forwards all batches that are there, unless a pause after a failure lasts. For a thread that calls it at intervals.
  package func step() {
    state.withLock { state in
      guard MonotonicClock.milliseconds() >= state.resumeMs else { return }
      // It reports its failure.
      try? run(&state)
    }
  }

  private func run(_ state: inout State) throws {
    do {
      try forward()
      if state.failures > 0 { report(.recovered) }
      state = State()
    } catch {
      state.failures += 1
      let askedMs = ((error as? any BusyReceiver)?.retryAfterS).map { 1_000 * min($0, Self.longestPauseS) } ?? 0
      state.resumeMs = MonotonicClock.milliseconds() + max(askedMs, BackOff.pauseMs(failures: state.failures))
      if state.cause != "\(error)" { report(.failing("\(error)")) }
      state.cause = "\(error)"
      throw error
    }
  }

  /// The longest pause that a receiver may ask for, in seconds.
  private static let longestPauseS = 600

  private func forward() throws {
    // Batches that are sent, and whose removal a dead process has begun.
    for entry in try Directory.entries(ifAt: spool.trash) {
      try? DurableFile.removeTree(spool.trash + "/" + entry.name)
    }
    for entry in try spool.waiting() where entry.kind == .directory {
      let path = spool.incoming + "/" + entry.name
      let files = try Directory(opening: path, followingLinks: false).entries().filter { $0.kind == .file }
      let contents = try files.compactMap { file in
        try DurableFile.contents(of: path + "/" + file.name, limit: limits.fileBytes).map { (file.name, $0) }
      }
      let name = entry.name + ".tar"
      do {
        // The name has a random part.
        guard try receiver.take(Archive.tar(contents), as: name) else {
          throw RefusedBatch(name: name, cause: "another batch has the name", advice: "look at both")
        }
        try DurableFile.removeTree(spool.hide(path))
        report(.sent(batch: entry.name))
      } catch let refused as RefusedBatch {
        let reason = BadBatch("send", name, refused.cause, advice: refused.advice)
        report(.refused(refused, quarantined: try Quarantine(of: spool).add(waiting: entry.name, reason)))
      }
    }
  }
}
