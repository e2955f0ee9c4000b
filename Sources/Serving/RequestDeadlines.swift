import CMicroHTTP
import FileSystem
import Glibc
import Synchronization

/// Closes connections that do not send a complete request before a deadline. The deadline of a body moves on with the bytes that come,
/// and is never farther away than that of a new connection: bytes sent before buy no time to wait.
/// Above a maximum of waiting connections, the one with the earliest deadline is closed at once: slow clients cannot keep others out.
final class RequestDeadlines: Sendable {
  struct Limits: Sendable {
    /// Milliseconds for the headers, and the longest pause in a body.
    var headersMs = 10_000
    /// The least speed of a body.
    var bytesPerSecond = 1
    /// The longest time for a body, in milliseconds.
    var bodyMs = 0
    /// The answer to a body that is too slow.
    var late: [UInt8] = []
  }

  /// The maximum of connections without a complete request.
  private static let maximumWaiting = 256

  private struct Connection {
    let descriptor: Int32
    /// When the connection is closed, in monotonic milliseconds; nil during a response.
    var deadlineMs: Int?
    /// The body that is being sent: its latest deadline.
    var bodyEndMs: Int?
  }

  private struct State {
    /// Keyed by libmicrohttpd's connection pointer.
    var connections: [UInt: Connection] = [:]

    /// Shuts the socket down; the connection's thread then closes it.
    mutating func shutDown(_ key: UInt, _ limits: Limits) {
      guard let connection = connections[key] else { return }
      if connection.bodyEndMs != nil { cmh_send_early(connection.descriptor, limits.late, limits.late.count) }
      shutdown(connection.descriptor, Int32(SHUT_RDWR))
      connections[key]?.deadlineMs = nil
      connections[key]?.bodyEndMs = nil
    }

    /// Closes the connection with the earliest deadline if too many wait.
    mutating func makeRoom(_ limits: Limits) {
      let waiting = connections.compactMap { key, connection in connection.deadlineMs.map { (at: $0, key: key) } }
      guard waiting.count > RequestDeadlines.maximumWaiting, let first = waiting.min(by: { $0.at < $1.at }) else {
        return
      }
      shutDown(first.key, limits)
    }
  }

  private let limits: Limits
  private let state = Mutex(State())
  private let thread = Mutex<PeriodicThread?>(nil)

  init(_ limits: Limits = Limits()) { self.limits = limits }

  /// Starts the thread that checks the deadlines, until ``stop()``.
  func start() throws {
    let started = try PeriodicThread("timeouts", everyMs: 100) { [self] in sweep() }
    thread.withLock { $0 = started }
  }

  func stop() { thread.withLock { $0.take() }?.stop() }

  /// Records an accepted connection.
  func begin(_ connection: OpaquePointer, _ descriptor: Int32) {
    let key = UInt(bitPattern: connection)
    state.withLock { state in
      state.connections[key] = Connection(descriptor: descriptor, deadlineMs: nextRequestMs)
      state.makeRoom(limits)
    }
  }

  /// The headers of a request with a body have come.
  func bodyBegan(on connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    let nowMs = MonotonicClock.milliseconds()
    state.withLock { state in
      state.connections[key]?.bodyEndMs = nowMs + limits.bodyMs
      state.connections[key]?.deadlineMs = nowMs + min(limits.headersMs, limits.bodyMs)
    }
  }

  /// Moves the deadline of a body on, unless the connection is being closed.
  func bodyReceived(_ bytes: Int, on connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { state in
      guard let known = state.connections[key], let deadlineMs = known.deadlineMs, let endMs = known.bodyEndMs else {
        return
      }
      let creditMs = max(1, 1_000 * bytes / limits.bytesPerSecond)
      state.connections[key]?.deadlineMs = min(deadlineMs + creditMs, nextRequestMs, endMs)
    }
  }

  /// Stops the deadline of a connection that has sent a complete request.
  func requestCompleted(on connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { state in
      state.connections[key]?.deadlineMs = nil
      state.connections[key]?.bodyEndMs = nil
    }
  }

  /// Starts the deadline of a connection's next request.
  func responseCompleted(on connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { $0.connections[key]?.deadlineMs = nextRequestMs }
  }

  /// Forgets a connection before libmicrohttpd closes its socket.
  func end(_ connection: OpaquePointer) {
    let key = UInt(bitPattern: connection)
    state.withLock { $0.connections[key] = nil }
  }

  private var nextRequestMs: Int { MonotonicClock.milliseconds() + limits.headersMs }

  /// Shuts down connections whose deadline has passed.
  private func sweep() {
    state.withLock { state in
      let nowMs = MonotonicClock.milliseconds()
      for (key, connection) in state.connections where connection.deadlineMs.map({ $0 < nowMs }) == true {
        state.shutDown(key, limits)
      }
    }
  }
}
