// Commands are sent one at a time. A caller gets the error of its own command; the next caller gets a new connection.
// After an error it is unknown whether Redis has run the command.

import CHiredis
import FileSystem
import Synchronization

/// A connection to Redis, opened by the first command. For several threads.
final class RedisConnection: Sendable {
  /// Loaded for queues only.
  static let hiredis = DynamicLibrary(
    "hiredis, the client of Redis", package: String(cString: chr_name()).replacing(".so.", with: ""), chr_library()
  ) { chr_load(&$0) }

  let url: RedisURL
  private let library: chr_library
  /// Seconds that connecting may take, all commands that open the connection, and each other command with its whole reply.
  private let timeoutS: Int32
  /// Milliseconds after a timeout in which no command is sent: callers that waited for the lock fail at once.
  private let respiteMs: Int
  private let admit: @Sendable (RedisInfo) throws -> Void
  private let link = Mutex(Link())

  private struct Link: ~Copyable {
    nonisolated(unsafe) var wire: RedisWire?
    /// The time since when Redis runs and is connected, in monotonic milliseconds.
    var steadySinceMs = Int.max
    var silentUntilMs = Int.min
    var wasConnected = false
  }

  /// - Parameter admit: checks the `INFO` of each new connection. If it throws, the connection is closed.
  init(
    _ url: RedisURL, timeoutS: Int32 = 5, respiteMs: Int = 1_000,
    admit: @escaping @Sendable (RedisInfo) throws -> Void = { _ in }
  ) throws {
    if let fault = url.fault { throw fault }
    self.url = url
    self.timeoutS = timeoutS
    self.respiteMs = respiteMs
    self.admit = admit
    library = try Self.hiredis.functions()
  }

  deinit { close() }

  /// Closes the connection; the next command opens another one.
  func close() { link.withLock { drop(&$0) } }

  /// Sends a command.
  ///
  /// - Parameter operation: the purpose of the command, for errors.
  /// - Throws: ``Failure`` if there is no reply; the errors of `admit`. An error reply is returned.
  func ask(_ words: [String], to operation: String) throws -> RedisReply { try ask(to: operation) { _ in words } }

  /// Sends a command that depends on the time for which this process has reached Redis without a break, on this
  /// connection. That is the time that other workers had to renew their leases.
  func ask(to operation: String, _ words: (_ steadyMs: Int) -> [String]) throws -> RedisReply {
    try link.withLock { link in
      let beganMs = MonotonicClock.milliseconds()
      guard link.wire != nil || beganMs >= link.silentUntilMs else {
        let fault = RedisWire.Fault(cause: "no answer within \(timeoutS) s")
        throw Failure.redis(url, operation, fault.cause, advice: fault.advice)
      }
      do {
        if link.wire == nil { try connect(&link, to: operation) }
        let steadyMs = MonotonicClock.milliseconds() - min(link.steadySinceMs, MonotonicClock.milliseconds())
        return try ask(words(steadyMs), &link, to: operation, by: RedisWire.Deadline(seconds: timeoutS))
      } catch {
        // A connection is opened by the kernel's clock: half of the time counts as a timeout.
        let nowMs = MonotonicClock.milliseconds()
        if nowMs - beganMs >= 500 * Int(timeoutS) { link.silentUntilMs = nowMs + respiteMs }
        throw error
      }
    }
  }

  private func connect(_ link: inout Link, to operation: String) throws {
    let deadline = RedisWire.Deadline(seconds: timeoutS)
    func require(_ words: [String]) throws -> RedisReply {
      try ask(words, &link, to: operation, by: deadline).checked(url, operation)
    }
    link.wire = try reporting(operation) { () throws(RedisWire.Fault) in
      try RedisWire(library, to: url.server, timeoutS: timeoutS)
    }
    do {
      if let password = url.password {
        _ = try require(["AUTH"] + (url.user.map { [$0] } ?? []) + [password])
      }
      if url.database != 0 { _ = try require(["SELECT", "\(url.database)"]) }
      let facts = RedisInfo(try require(["INFO"]))
      try admit(facts)
      let upS = facts["uptime_in_seconds"].flatMap { Int($0) } ?? 0
      let upMs = link.wasConnected ? 0 : 1_000 * min(max(0, upS), 1 << 30)
      link.steadySinceMs = MonotonicClock.milliseconds() - upMs
      link.wasConnected = true
    } catch {
      drop(&link)
      throw error
    }
  }

  private func ask(
    _ words: [String], _ link: inout Link, to operation: String, by deadline: RedisWire.Deadline
  ) throws -> RedisReply {
    guard let wire = link.wire else { throw Failure.redis(url, operation, "no connection", advice: "run it again") }
    let reply: RedisReply
    do {
      reply = try reporting(operation) { () throws(RedisWire.Fault) in try wire.ask(words, by: deadline) }
    } catch {
      drop(&link)
      throw error
    }
    guard reply.code == "LOADING" else { return reply }
    // Redis counts as unreachable until it has read its files.
    drop(&link)
    return try reply.checked(url, operation)
  }

  private func reporting<Result>(
    _ operation: String, _ body: () throws(RedisWire.Fault) -> Result
  ) throws(Failure) -> Result {
    do {
      return try body()
    } catch {
      throw Failure.redis(url, operation, error.cause, advice: error.advice)
    }
  }

  private func drop(_ link: inout Link) {
    link.wire = nil
    link.steadySinceMs = .max
  }
}
