import Glibc
import SegmentEncoder
import Synchronization

/// Ends connections that do not send a whole request in time, however busily they send parts of it. While many of them wait, the
/// one that has waited longest is ended at once, so that there is always room for whoever sends a request in one go.
final class RequestDeadlines: Sendable {
  /// In monotonic milliseconds.
  private static let patienceMs = 10_000
  /// Connections that wait for their request.
  private static let mostWaiting = 256

  private struct Connection {
    let descriptor: Int32
    /// Since when it owes a request, in monotonic milliseconds; nil while one is answered.
    var waitingSinceMs: Int?
  }

  private struct State {
    /// By their addresses in libmicrohttpd.
    var connections: [UInt: Connection] = [:]
    var isStopped = false

    /// Ends a connection; its thread notices, and closes it.
    mutating func shutDown(_ key: UInt) {
      guard let connection = connections[key] else { return }
      shutdown(connection.descriptor, Int32(SHUT_RDWR))
      connections[key]?.waitingSinceMs = nil
    }
  }

  private let state = Mutex(State())
  private let thread = Mutex(ThreadGroup())

  /// Watches until ``stop()``.
  func start() throws(ThreadError) {
    try thread.withLock { (thread) throws(ThreadError) in
      try thread.start { [self] in while !sweep() { usleep(100_000) } }
    }
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    thread.withLock { $0.join() }
  }

  /// A connection was accepted.
  func begin(_ connection: OpaquePointer, _ descriptor: Int32) {
    let key = UInt(bitPattern: connection)
    state.withLock { state in
      state.connections[key] = Connection(descriptor: descriptor, waitingSinceMs: MonotonicClock.milliseconds())
      let waiting = state.connections.compactMap { key, waiting in waiting.waitingSinceMs.map { (since: $0, key: key) }
      }
      guard waiting.count > Self.mostWaiting, let oldest = waiting.min(by: { $0.since < $1.since }) else { return }
      state.shutDown(oldest.key)
    }
  }

  /// Its request is there as a whole.
  func met(by connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { $0.connections[key]?.waitingSinceMs = nil }
  }

  /// Its request is answered, and it may send another one.
  func restart(_ connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { $0.connections[key]?.waitingSinceMs = MonotonicClock.milliseconds() }
  }

  /// It is about to be closed.
  func end(_ connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { $0.connections[key] = nil }
  }

  /// - Returns: whether there is nothing more to watch over.
  private func sweep() -> Bool {
    state.withLock { state in
      let latest = MonotonicClock.milliseconds() - Self.patienceMs
      for (key, connection) in state.connections where connection.waitingSinceMs.map({ $0 < latest }) == true {
        state.shutDown(key)
      }
      return state.isStopped
    }
  }
}
