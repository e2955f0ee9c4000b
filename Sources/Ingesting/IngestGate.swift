// The conditions under which nothing is taken: the worker stops, the disk is full, or too many batches wait.

import FileSystem
import Synchronization

final class IngestGate: Sendable {
  /// Milliseconds for which the number of waiting batches is not counted again.
  private static let countedMs = 1_000

  private let intake: any BatchIntake
  private let settings: IngestSettings
  private let isStopping: @Sendable () -> Bool
  private let waiting = Mutex<(atMs: Int, all: Int, byProducer: [String: Int])?>(nil)

  init(_ intake: any BatchIntake, _ settings: IngestSettings, isStopping: @escaping @Sendable () -> Bool) {
    (self.intake, self.settings, self.isStopping) = (intake, settings, isStopping)
  }

  /// The reason why nothing is taken while the worker stops.
  var stopRefusal: ProblemDetails? {
    isStopping() ? ProblemDetails(.unavailable, "the worker stops", retryAfterS: 5) : nil
  }

  /// The reason why a body is not taken; nil if it is.
  ///
  /// - Parameters:
  ///   - bytes: the body's size as announced.
  ///   - producer: the one that sends it.
  func refusal(ofBytes bytes: Int = 0, from producer: Producer? = nil) -> ProblemDetails? {
    if let stopRefusal { return stopRefusal }
    do {
      try requireRoom(for: min(bytes, settings.bodyBytes))
      let waiting = try waitingCounts()
      // A worker with a queue that counts names only does not know whose they are.
      let own = producer.flatMap { waiting.byProducer[$0.nameInQueues] } ?? 0
      guard FairShare.allows(producer, own: own, all: waiting.all, limit: settings.backlog) else {
        return ProblemDetails(.tooMany, "\(waiting.all) batches wait already", retryAfterS: 10)
      }
      return nil
    } catch let problem as ProblemDetails {
      return problem
    } catch {
      return .failure
    }
  }

  /// Throws ``ProblemDetails`` if some bytes more would leave too little free space. Not each body announces its size, and bodies compete
  /// for the same space, so each asks again while it comes.
  func requireRoom(for bytes: Int = 0) throws {
    do {
      try settings.freeSpace.atLeast(IngestSettings.smallestFree).require(for: bytes, at: intake.drafts)
    } catch is LowDiskSpace {
      throw ProblemDetails(.unavailable, "too little free space on the worker's disk", retryAfterS: 30)
    }
  }

  private func waitingCounts() throws -> (all: Int, byProducer: [String: Int]) {
    try waiting.withLock { known in
      let nowMs = MonotonicClock.milliseconds()
      if let known, nowMs - known.atMs < Self.countedMs { return (known.all, known.byProducer) }
      let counts = try intake.waitingCounts()
      known = (nowMs, counts.all, counts.byProducer)
      return counts
    }
  }
}
