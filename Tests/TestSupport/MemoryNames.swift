import FrameBatches
import Synchronization

@testable import WorkQueues

/// A worker's end of an in-memory queue of names. Workers may die.
package final class MemoryNames: EventStream {
  private struct Entry {
    let name: String
    var attempt = 1
    var failures = 0
    var traceParent: TraceParent?
    /// Nil once the lease has expired.
    var worker: Int?
  }

  private struct State {
    var waiting: [Entry] = []
    var held: [String: Entry] = [:]
    var workers = 0
    var deadLetters: [String] = []
    var events: [(key: String, event: String)] = []
    var last = 0
    var lostState = false
  }

  /// The state that all workers share.
  private final class Shared: Sendable { let state = Mutex(State()) }

  private let shared: Shared
  private let worker: Int

  package init() { (shared, worker) = (Shared(), 0) }

  /// Another worker's end of the same queue.
  package init(beside other: MemoryNames) {
    shared = other.shared
    worker = other.shared.state.withLock { state in
      state.workers += 1
      return state.workers
    }
  }

  private func withState<Result>(_ body: (inout State) -> Result) -> Result {
    shared.state.withLock { body(&$0) }
  }

  package var count: Int { withState { $0.waiting.count + $0.held.count } }
  package var deadLetters: [String] { withState { $0.deadLetters } }

  package var events: [(key: String, event: String)] { withState { $0.events } }

  package func flush() { withState { $0 = State(workers: $0.workers, lostState: true) } }
  /// Simulates a dead worker whose leases have expired.
  package func expire() {
    withState { state in
      for (id, entry) in state.held where entry.worker == worker { state.held[id]?.worker = nil }
    }
  }

  /// Simulates the expiry of one lease.
  package func expire(_ id: String) { withState { $0.held[id]?.worker = nil } }

  package func waitingCount() -> Int { withState { $0.waiting.count } }
  package var heldCount: Int { withState { $0.held.values.count { $0.worker == worker } } }
  package func heldElsewhereCount() -> Int { withState { $0.held.values.count { $0.worker != worker } } }

  private static func claim(_ id: String, _ entry: Entry) -> Claim {
    Claim(
      id: id, name: entry.name, attempt: entry.attempt, failures: entry.failures, traceParent: entry.traceParent)
  }

  /// Changes a claim that this worker holds; returns nil when another worker has it.
  private func change(_ id: String, _ change: (inout Entry) -> Void) -> Claim? {
    withState { state in
      guard var entry = state.held[id], entry.worker == worker else { return nil }
      change(&entry)
      state.held[id] = entry
      return Self.claim(id, entry)
    }
  }

  /// Removes a claim that this worker holds; returns nil when another worker has it.
  private func take(_ id: String, _ state: inout State) -> Entry? {
    state.held[id]?.worker == worker ? state.held.removeValue(forKey: id) : nil
  }

  package func next() -> Claim? {
    withState { state in
      guard !state.waiting.isEmpty else { return nil }
      state.last += 1
      var entry = state.waiting.removeFirst()
      entry.worker = worker
      state.held["\(state.last)"] = entry
      return Self.claim("\(state.last)", entry)
    }
  }

  package func takeOver() -> [Claim] {
    withState { state in
      let expired = state.held.filter { $0.value.worker == nil }
      for id in expired.keys { state.held[id]?.worker = worker }
      return expired.map(Self.claim)
    }
  }

  package func begin(_ claim: Claim) -> Claim? { change(claim.id) { $0.attempt = claim.attempt + 1 } }

  package func fail(_ claim: Claim) -> Claim? { change(claim.id) { $0.failures = claim.failures + 1 } }

  package func renew(_ claim: Claim) -> Bool { holds(claim.id) }

  package func forgive(_ claim: Claim) -> Claim? { change(claim.id) { $0.attempt = 1 } }

  package func announce(key: String, event: String) {}

  package func announce(_ claim: Claim, key: String, event: String) -> Bool {
    withState { state in
      guard state.held[claim.id]?.worker == worker else { return false }
      state.events.append((key, event))
      return true
    }
  }

  package func handBack(_ claim: Claim) {
    withState { state in
      if let entry = take(claim.id, &state) { state.waiting.append(entry) }
    }
  }

  package func acknowledge(_ claim: Claim) { withState { state in _ = take(claim.id, &state) } }

  package func deadLetter(_ claim: Claim, reason: String) {
    withState { state in
      if take(claim.id, &state) != nil { state.deadLetters.append(claim.name) }
    }
  }

  package func add(_ names: [String]) -> Int { add(names, traceParent: nil) }

  package func add(_ names: [String], traceParent: TraceParent?) -> Int {
    withState { state in
      let there = Set((state.waiting + state.held.values).map(\.name))
      let new = names.filter { !there.contains($0) }
      state.waiting += new.map { Entry(name: $0, traceParent: traceParent) }
      return new.count
    }
  }

  package func holds(_ id: String) -> Bool { withState { $0.held[id]?.worker == worker } }

  package var lostState: Bool { withState { $0.lostState } }

  package func leave() {}
}
