import FileSystem
import Glibc
import Synchronization

/// Closes connections that do not send a complete request before a timeout. Above a maximum of waiting connections, it
/// closes the oldest one at once: slow clients cannot keep others out.
final class RequestDeadlines: Sendable {
  private static let timeoutMs = 10_000
  /// The maximum of connections without a complete request.
  private static let maximumWaiting = 256

  private struct Connection {
    let descriptor: Int32
    /// When the server began to wait for a request, in monotonic milliseconds; nil during a response.
    var waitingSinceMs: Int?
  }

  private struct State {
    /// Keyed by libmicrohttpd's connection pointer.
    var connections: [UInt: Connection] = [:]

    /// Shuts the socket down; the connection's thread then closes it.
    mutating func shutDown(_ key: UInt) {
      guard let connection = connections[key] else { return }
      shutdown(connection.descriptor, Int32(SHUT_RDWR))
      connections[key]?.waitingSinceMs = nil
    }
  }

  private let state = Mutex(State())
  private let thread = Mutex<PeriodicThread?>(nil)

  /// Starts the thread that checks the timeouts, until ``stop()``.
  func start() throws {
    let started = try PeriodicThread("timeouts", everyMs: 100) { [self] in sweep() }
    thread.withLock { $0 = started }
  }

  func stop() { thread.withLock { $0.take() }?.stop() }

  /// Records an accepted connection.
  func begin(_ connection: OpaquePointer, _ descriptor: Int32) {
    let key = UInt(bitPattern: connection)
    state.withLock { state in
      state.connections[key] = Connection(descriptor: descriptor, waitingSinceMs: MonotonicClock.milliseconds())
      let waiting = state.connections.compactMap { key, connection in
        connection.waitingSinceMs.map { (since: $0, key: key) }
      }
      guard waiting.count > Self.maximumWaiting, let oldest = waiting.min(by: { $0.since < $1.since }) else { return }
      state.shutDown(oldest.key)
    }
  }

  /// Stops the timeout of a connection that has sent a complete request.
  func requestCompleted(on connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { $0.connections[key]?.waitingSinceMs = nil }
  }

  /// Starts the timeout of a connection's next request.
  func responseCompleted(on connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { $0.connections[key]?.waitingSinceMs = MonotonicClock.milliseconds() }
  }

  /// Forgets a connection before libmicrohttpd closes its socket.
  func end(_ connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { $0.connections[key] = nil }
  }

  /// Shuts down connections whose timeout has passed.
  private func sweep() {
    state.withLock { state in
      let latest = MonotonicClock.milliseconds() - Self.timeoutMs
      for (key, connection) in state.connections where connection.waitingSinceMs.map({ $0 < latest }) == true {
        state.shutDown(key)
      }
    }
  }
}
