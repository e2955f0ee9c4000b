import Synchronization

@testable import WorkQueues

/// An in-memory queue of names for a single worker, which may die.
package final class MemoryNames: NameQueue {
  private struct State {
    var waiting: [String] = []
    var held: [String: (name: String, attempt: Int)] = [:]
    var expired: [String: (name: String, attempt: Int)] = [:]
    var deadLetters: [String] = []
    var events: [(key: String, event: String)] = []
    var last = 0
    var lostState = false
  }

  private let state = Mutex(State())

  package init() {}

  package var count: Int { state.withLock { $0.waiting.count + $0.held.count + $0.expired.count } }
  package var deadLetters: [String] { state.withLock { $0.deadLetters } }

  package var events: [(key: String, event: String)] { state.withLock { $0.events } }

  package func flush() { state.withLock { $0 = State(lostState: true) } }
  /// Simulates a dead worker whose lease has expired.
  package func expire() { state.withLock { ($0.expired, $0.held) = ($0.held, [:]) } }

  package func waitingCount() -> Int { state.withLock { $0.waiting.count } }
  package var heldCount: Int { state.withLock { $0.held.count } }
  package func heldElsewhereCount() -> Int { state.withLock { $0.expired.count } }

  package func next() -> Claim? {
    state.withLock { state in
      guard !state.waiting.isEmpty else { return nil }
      state.last += 1
      let name = state.waiting.removeFirst()
      state.held["\(state.last)"] = (name, 1)
      return Claim(id: "\(state.last)", name: name, attempt: 1, failures: 0)
    }
  }

  package func takeOver() -> [Claim] {
    state.withLock { state in
      defer { (state.held, state.expired) = (state.held.merging(state.expired) { $1 }, [:]) }
      return state.expired.map { Claim(id: $0, name: $1.name, attempt: $1.attempt, failures: 0) }
    }
  }

  package func begin(_ name: Claim) -> Claim? {
    state.withLock { state in
      guard state.held[name.id] != nil else { return nil }
      state.held[name.id]?.attempt += 1
      return Claim(id: name.id, name: name.name, attempt: name.attempt + 1, failures: name.failures)
    }
  }

  package func fail(_ name: Claim) -> Claim? {
    Claim(id: name.id, name: name.name, attempt: name.attempt, failures: name.failures + 1)
  }

  package func renew(_ name: Claim) -> Bool { holds(name.id) }

  package func forgive(_ name: Claim) -> Claim? {
    state.withLock { state in
      guard state.held[name.id] != nil else { return nil }
      state.held[name.id]?.attempt = 1
      return Claim(id: name.id, name: name.name, attempt: 1, failures: name.failures)
    }
  }

  package func announce(_ name: Claim, key: String, event: String) -> Bool {
    state.withLock { state in
      if state.held[name.id] != nil { state.events.append((key, event)) }
      return state.held[name.id] != nil
    }
  }

  package func handBack(_ name: Claim) {
    state.withLock { if $0.held.removeValue(forKey: name.id) != nil { $0.waiting.append(name.name) } }
  }

  package func acknowledge(_ name: Claim) { state.withLock { _ = $0.held.removeValue(forKey: name.id) } }

  package func deadLetter(_ name: Claim, reason: String) {
    state.withLock { if $0.held.removeValue(forKey: name.id) != nil { $0.deadLetters.append(name.name) } }
  }

  package func add(_ names: [String]) -> Int {
    state.withLock { state in
      let there = Set(state.waiting + state.held.values.map(\.name) + state.expired.values.map(\.name))
      let new = names.filter { !there.contains($0) }
      state.waiting += new
      return new.count
    }
  }

  package func holds(_ id: String) -> Bool { state.withLock { $0.held[id] != nil } }

  package var lostState: Bool { state.withLock { $0.lostState } }

  package func leave() {}
}
