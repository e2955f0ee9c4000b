// The only file that uses hiredis. Commands are sent one at a time. A caller gets the error of its own command; the
// next caller gets a new connection. After an error it is unknown whether Redis has run the command.

import CHiredis
import FileSystem
import Glibc
import Synchronization

/// A connection to Redis, opened by the first command. For several threads.
final class RedisConnection: Sendable {
  /// Loaded for queues only.
  private static let hiredis = DynamicLibrary(
    "hiredis, the client of Redis", package: String(cString: chr_name()).replacing(".so.", with: ""), chr_library()
  ) { chr_load(&$0) }

  let url: RedisURL
  private let library: chr_library
  /// Seconds that connecting or a reply may take.
  private let timeoutS: Int32
  /// Milliseconds after a timeout in which no command is sent: callers that waited for the lock fail at once.
  private let respiteMs: Int
  private let admit: @Sendable (RedisInfo) throws -> Void
  private let link = Mutex(Link())

  private struct Link: ~Copyable {
    nonisolated(unsafe) var context: UnsafeMutablePointer<redisContext>?
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
      guard link.context != nil || beganMs >= link.silentUntilMs else {
        throw Failure.redis(url, operation, silence, advice: Self.unreachable)
      }
      do {
        if link.context == nil { try connect(&link, to: operation) }
        let steadyMs = MonotonicClock.milliseconds() - min(link.steadySinceMs, MonotonicClock.milliseconds())
        return try ask(words(steadyMs), &link, to: operation)
      } catch {
        // The kernel measures the timeout with another clock: half of it counts as a timeout.
        let nowMs = MonotonicClock.milliseconds()
        if nowMs - beganMs >= 500 * Int(timeoutS) { link.silentUntilMs = nowMs + respiteMs }
        throw error
      }
    }
  }

  private func connect(_ link: inout Link, to operation: String) throws {
    let context =
      switch url.server {
      case .host(let host, let port):
        withUnsafePointer(to: library) { chr_connect($0, nil, host, Int32(port), timeoutS) }
      case .socket(let path): withUnsafePointer(to: library) { chr_connect($0, path, nil, 0, timeoutS) }
      }
    guard let context else { throw Failure.redis(url, operation, "no memory", advice: "add memory") }
    guard context.pointee.err == 0 else {
      defer { library.redisFree(context) }
      throw Failure.redis(url, operation, "connect: \(Self.reason(context))", advice: Self.unreachable)
    }
    link.context = context
    do {
      if let password = url.password {
        try require(["AUTH"] + (url.user.map { [$0] } ?? []) + [password], &link, to: operation)
      }
      if url.database != 0 { try require(["SELECT", "\(url.database)"], &link, to: operation) }
      let facts = RedisInfo(try require(["INFO"], &link, to: operation))
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

  @discardableResult
  private func require(_ words: [String], _ link: inout Link, to operation: String) throws -> RedisReply {
    try ask(words, &link, to: operation).checked(url, operation)
  }

  private func ask(_ words: [String], _ link: inout Link, to operation: String) throws -> RedisReply {
    let bytes = words.flatMap(\.utf8)
    let sizes = words.map(\.utf8.count)
    var code: Int32 = 0
    let context = link.context
    let answer = bytes.withUnsafeBufferPointer { bytes in
      let base = UnsafeRawPointer(bytes.baseAddress)?.assumingMemoryBound(to: CChar.self)
      var position = 0
      var pointers = sizes.map { size in
        defer { position += size }
        return base?.advanced(by: position)
      }
      return withUnsafePointer(to: library) { chr_command($0, context, Int32(words.count), &pointers, sizes, &code) }
    }
    guard let answer else {
      let cause = [EAGAIN, ETIMEDOUT].contains(code) ? silence : context.map(Self.reason) ?? "no connection"
      drop(&link)
      throw Failure.redis(url, operation, cause, advice: Self.unreachable)
    }
    let reply = RedisReply(reading: answer)
    library.freeReplyObject(answer)
    guard reply.code == "LOADING" else { return reply }
    // Redis counts as unreachable until it has read its files.
    drop(&link)
    return try reply.checked(url, operation)
  }

  private func drop(_ link: inout Link) {
    if let context = link.context { library.redisFree(context) }
    link.context = nil
    link.steadySinceMs = .max
  }

  private static let unreachable = "see that Redis runs there and can be reached from here"
  private var silence: String { "no answer within \(timeoutS) s" }

  private static func reason(_ context: UnsafeMutablePointer<redisContext>) -> String {
    withUnsafeBytes(of: context.pointee.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
