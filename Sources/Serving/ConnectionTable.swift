// The connections of a server, as their limits see them. Strangers can neither hold all of them nor keep them without reading and
// writing.

import CMicroHTTP
import FileSystem
import Glibc
import Synchronization

/// A connection, with its deadlines in monotonic milliseconds.
struct TrackedConnection {
  /// The order in which connections are closed when there are too many.
  enum Rank: Int {
    /// The client takes answers at less than the least rate, for a second by now.
    case readsTooSlowly
    /// There is no complete request.
    case waitsForRequest
    case isAnswered
  }

  let descriptor: Int32
  /// An IPv4 address, or the /64 network of an IPv6 address.
  let network: UInt64
  /// When the request has to be complete; nil during a response.
  var requestDeadlineMs: Int?
  /// The body that is being sent: its latest deadline.
  var bodyEndMs: Int?
  /// When the client has to take more of the answers; nil if it has taken all that was sent.
  var answerDeadlineMs: Int?
  /// The bytes that the client had taken at the last look.
  var takenBytes: UInt64 = 0
  /// The time of acceptance, of the last complete request, or of the last answer.
  var sinceMs: Int
  /// Shut down. Its thread has not closed it yet.
  var isClosing = false

  /// Whether the client has taken less than the least rate, by a second or more.
  func readsTooSlowly(at nowMs: Int, _ limits: ConnectionTable.Limits) -> Bool {
    answerDeadlineMs.map { $0 < nowMs + limits.answerMs - 1_000 } ?? false
  }

  /// Returns the rank, and a number that is smaller the sooner the connection is closed within its rank.
  func order(at nowMs: Int, _ limits: ConnectionTable.Limits) -> (rank: Int, place: Int) {
    if let answerDeadlineMs, readsTooSlowly(at: nowMs, limits) {
      return (Rank.readsTooSlowly.rawValue, answerDeadlineMs)
    }
    if let requestDeadlineMs { return (Rank.waitsForRequest.rawValue, requestDeadlineMs) }
    // The request that has just begun loses the least work.
    return (Rank.isAnswered.rawValue, -sinceMs)
  }

  /// Moves the deadline of the answers.
  ///
  /// - Parameters:
  ///   - unread: bytes that were sent, and that the client has not taken.
  ///   - taken: bytes that it has taken since the connection was opened.
  mutating func look(unread: Int, taken: UInt64, at nowMs: Int, _ limits: ConnectionTable.Limits) {
    defer { takenBytes = taken }
    guard unread > 0 else {
      answerDeadlineMs = nil
      return
    }
    let latestMs = nowMs + limits.answerMs
    guard let deadlineMs = answerDeadlineMs else {
      answerDeadlineMs = latestMs
      return
    }
    let creditMs = 1_000 * (taken - min(taken, takenBytes)) / UInt64(limits.answerBytesPerSecond)
    answerDeadlineMs = min(deadlineMs + Int(clamping: creditMs), latestMs)
  }
}

/// Closes connections that do not send a complete request before a deadline, and those that do not take their answers at a least rate. The
/// deadline of a body or an answer moves on with its bytes, and is never farther away than at its beginning: bytes sent before buy no time
/// to wait.
///
/// All networks share two maxima of connections. Above one of them a connection is closed at once, of a network that has the most.
final class ConnectionTable: Sendable {
  struct Limits: Sendable {
    /// Milliseconds for the headers, and the longest pause in a body.
    var headersMs = 10_000
    /// The least speed of a body.
    var bytesPerSecond = 1
    /// The longest time for a body, in milliseconds.
    var bodyMs = 0
    /// The answer to a body that is too slow.
    var late: [UInt8] = []
    /// The longest pause in an answer, in milliseconds.
    var answerMs = 30_000
    /// The least speed at which a client takes an answer.
    var answerBytesPerSecond = 4_096
  }

  /// The maximum of connections, and of those without a complete request.
  static let (maximum, maximumWaiting) = (512, 256)

  /// The decisions, without a socket.
  struct Connections {
    /// Keyed by libmicrohttpd's connection pointer.
    private(set) var all: [UInt: TrackedConnection] = [:]

    var keys: [UInt] { Array(all.keys) }

    subscript(key: UInt) -> TrackedConnection? { all[key] }

    mutating func add(_ connection: TrackedConnection, as key: UInt) { all[key] = connection }

    mutating func change(_ key: UInt, _ body: (inout TrackedConnection) -> Void) {
      guard var connection = all[key], !connection.isClosing else { return }
      body(&connection)
      all[key] = connection
    }

    mutating func remove(_ key: UInt) { all[key] = nil }

    /// Returns the connection that is closed next if there are too many; nil otherwise. It is of a network that has the most.
    func surplus(at nowMs: Int, _ limits: Limits, most: Int = maximum, mostWaiting: Int = maximumWaiting) -> UInt? {
      let open = all.filter { !$1.isClosing }
      let waiting = open.filter { $1.requestDeadlineMs != nil }
      guard open.count > most || waiting.count > mostWaiting else { return nil }
      let candidates = open.count > most ? open : waiting
      let counts = Dictionary(candidates.values.map { ($0.network, 1) }, uniquingKeysWith: +)
      let largest = counts.values.max()
      return
        candidates
        .filter { counts[$1.network] == largest }
        .min { $0.value.order(at: nowMs, limits) < $1.value.order(at: nowMs, limits) }?.key
    }
  }

  private let limits: Limits
  private let state = Mutex(Connections())
  private let thread = Mutex<PeriodicThread?>(nil)

  init(_ limits: Limits = Limits()) { self.limits = limits }

  /// Starts the thread that checks the deadlines, until ``stop()``.
  func start() throws {
    let started = try PeriodicThread("timeouts", everyMs: 100) { [self] in sweep() }
    thread.withLock { $0 = started }
  }

  func stop() { thread.withLock { $0.take() }?.stop() }

  /// Records an accepted connection. Above the maximum, one is closed.
  func begin(_ connection: OpaquePointer, _ descriptor: Int32, network: UInt64) {
    let nowMs = MonotonicClock.milliseconds()
    let new = TrackedConnection(
      descriptor: descriptor, network: network, requestDeadlineMs: nowMs + limits.headersMs, sinceMs: nowMs)
    state.withLock { state in
      state.add(new, as: UInt(bitPattern: connection))
      if let key = state.surplus(at: nowMs, limits) { shutDown(key, in: &state) }
    }
  }

  /// The headers of a request with a body have come.
  func bodyBegan(on connection: OpaquePointer) {
    let nowMs = MonotonicClock.milliseconds()
    change(connection) {
      $0.bodyEndMs = nowMs + limits.bodyMs
      $0.requestDeadlineMs = nowMs + min(limits.headersMs, limits.bodyMs)
    }
  }

  /// Moves the deadline of a body on.
  func bodyReceived(_ bytes: Int, on connection: OpaquePointer) {
    let nextMs = MonotonicClock.milliseconds() + limits.headersMs
    change(connection) {
      guard let deadlineMs = $0.requestDeadlineMs, let endMs = $0.bodyEndMs else { return }
      let creditMs = max(1, 1_000 * bytes / limits.bytesPerSecond)
      $0.requestDeadlineMs = min(deadlineMs + creditMs, nextMs, endMs)
    }
  }

  /// Stops the deadline of a connection that has sent a complete request.
  func requestCompleted(on connection: OpaquePointer) {
    let nowMs = MonotonicClock.milliseconds()
    change(connection) {
      $0.requestDeadlineMs = nil
      $0.bodyEndMs = nil
      $0.sinceMs = nowMs
    }
  }

  /// Starts the deadline of a connection's next request.
  func responseCompleted(on connection: OpaquePointer) {
    let nowMs = MonotonicClock.milliseconds()
    change(connection) {
      $0.requestDeadlineMs = nowMs + limits.headersMs
      $0.sinceMs = nowMs
    }
  }

  /// Forgets a connection before libmicrohttpd closes its socket.
  func end(_ connection: OpaquePointer) { state.withLock { $0.remove(UInt(bitPattern: connection)) } }

  private func change(_ connection: OpaquePointer, _ body: (inout TrackedConnection) -> Void) {
    state.withLock { $0.change(UInt(bitPattern: connection), body) }
  }

  /// Shuts down connections whose deadline has passed.
  private func sweep() {
    state.withLock { state in
      let nowMs = MonotonicClock.milliseconds()
      for key in state.keys {
        state.change(key) { connection in
          var taken: UInt64 = 0
          let unread = cmh_unread(connection.descriptor, &taken)
          connection.look(unread: Int(unread), taken: taken, at: nowMs, limits)
        }
        let deadlines = state[key].map { [$0.requestDeadlineMs, $0.answerDeadlineMs] } ?? []
        if deadlines.contains(where: { $0.map { $0 < nowMs } == true }) { shutDown(key, in: &state) }
      }
    }
  }

  /// Shuts the socket down; the connection's thread then closes it.
  private func shutDown(_ key: UInt, in state: inout Connections) {
    state.change(key) { connection in
      if connection.bodyEndMs != nil { cmh_send_early(connection.descriptor, limits.late, limits.late.count) }
      // The kernel would keep the rest of the answer.
      if connection.readsTooSlowly(at: MonotonicClock.milliseconds(), limits) {
        cmh_discard_at_close(connection.descriptor)
      }
      shutdown(connection.descriptor, Int32(SHUT_RDWR))
      connection.isClosing = true
    }
  }
}
