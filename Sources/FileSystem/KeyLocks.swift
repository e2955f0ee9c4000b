/// Locks by key: threads wait for others with the same key only.
package final class KeyLocks<Key: Hashable & Sendable>: Sendable {
  private let held = Monitor<Set<Key>>([])
  private let width: Int

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
}
