/// Locks by key: threads wait for others with the same key only.
package final class KeyLocks<Key: Hashable & Sendable>: Sendable {
  private let held = Monitor<Set<Key>>([])
  private let width: Int
  /// Milliseconds between checks of a thread that waits.
  private static var checkMs: Int { 200 }

  /// - Parameter width: maximum number of keys that are locked at the same time; further ones wait.
  package init(width: Int = .max) { self.width = width }

  package func withLock<R>(_ key: Key, _ body: () throws -> R) rethrows -> R {
    held.wait { held -> Monitor<Set<Key>>.CheckResult<Void> in
      guard held.count < width, held.insert(key).inserted else { return .wait(ms: nil) }
      return .found(())
    }
    defer { _ = held.change { $0.remove(key) } }
    return try body()
  }

  /// Like ``withLock(_:_:)``, but the wait can end.
  ///
  /// - Parameter check: called some times a second while the thread waits; an error that it throws ends the wait.
  package func withLock<R>(_ key: Key, checking check: () throws -> Void, _ body: () throws -> R) throws -> R {
    while true {
      let dueMs = MonotonicClock.milliseconds() + Self.checkMs
      let isLocked = held.wait { held -> Monitor<Set<Key>>.CheckResult<Bool> in
        if held.count < width, held.insert(key).inserted { return .found(true) }
        let leftMs = dueMs - MonotonicClock.milliseconds()
        return leftMs > 0 ? .wait(ms: leftMs) : .found(false)
      }
      if isLocked { break }
      try check()
    }
    defer { _ = held.change { $0.remove(key) } }
    return try body()
  }
}
