// The one place that sees hiredis: commands go out, replies come back, one at a time. The caller whose request breaks a connection
// gets the error; the next caller gets another connection. So after an error it is unknown whether it was done.

import CHiredis
import Encoding
import FileSystem
import Glibc
import SegmentEncoder
import Synchronization
import WorkQueues

/// A connection to Redis, made when it is needed; for several threads.
final class RedisConnection: Sendable {
  let url: RedisURL

  private let library: chr_library
  /// Seconds that a connection or an answer may take.
  private let timeoutS: Int32
  /// Milliseconds for which Redis is not asked after a timeout: callers that waited behind it fail at once.
  private let respiteMs: Int
  private let admit: @Sendable (RedisInfo) throws -> Void
  private let link = Mutex(Link())

  private struct Link: ~Copyable {
    nonisolated(unsafe) var context: UnsafeMutablePointer<redisContext>?
    /// Since when both Redis and the connection to it have been there, in monotonic milliseconds.
    var steadySinceMs = Int.max
    var silentUntilMs = Int.min
    var wasConnected = false
  }

  /// - Parameter admit: what Redis says of itself, whenever a connection is made; what this throws is why there is none.
  init(
    _ url: RedisURL, timeoutS: Int32 = 5, respiteMs: Int = 1_000,
    admit: @escaping @Sendable (RedisInfo) throws -> Void = { _ in }
  ) throws {
    try url.check()
    self.url = url
    self.timeoutS = timeoutS
    self.respiteMs = respiteMs
    self.admit = admit
    library = try hiredis.functions()
  }

  deinit { close() }

  /// Hangs up, until something is asked again.
  func close() { link.withLock { drop(&$0) } }

  /// - Parameters:
  ///   - words: a command; any bytes may be in them.
  ///   - operation: what it is for.
  /// - Throws: ``RedisError`` when there is no answer; what ``init(_:timeoutS:respiteMs:admit:)`` was given throws. A refusal is an
  ///   answer.
  func ask(_ words: [String], to operation: String) throws -> RedisReply { try ask(to: operation) { _ in words } }

  /// The same for a command that depends on how long Redis has been there without a break, as far as this process knows: who held
  /// something has had so much time to say that he still does. That is time on the connection by which the command goes out.
  func ask(to operation: String, _ words: (_ steadyMs: Int) -> [String]) throws -> RedisReply {
    try link.withLock { link in
      let beganMs = MonotonicClock.milliseconds()
      guard link.context != nil || beganMs >= link.silentUntilMs else {
        throw RedisError(url, operation, silence, advice: Self.unreachable)
      }
      do {
        if link.context == nil { try connect(&link, to: operation) }
        let steadyMs = MonotonicClock.milliseconds() - min(link.steadySinceMs, MonotonicClock.milliseconds())
        return try ask(words(steadyMs), &link, to: operation)
      } catch {
        // The kernel's clock is not ours: most of the patience will do.
        let nowMs = MonotonicClock.milliseconds()
        if nowMs - beganMs >= 500 * Int(timeoutS) { link.silentUntilMs = nowMs + respiteMs }
        throw error
      }
    }
  }

  private func connect(_ link: inout Link, to operation: String) throws {
    let context =
      switch url.place {
      case .host(let host, let port):
        withUnsafePointer(to: library) { chr_connect($0, nil, host, Int32(port), timeoutS) }
      case .socket(let path): withUnsafePointer(to: library) { chr_connect($0, path, nil, 0, timeoutS) }
      }
    guard let context else {
      throw RedisError(url, operation, "no memory", advice: "add memory")
    }
    guard context.pointee.err == 0 else {
      defer { library.redisFree(context) }
      throw RedisError(
        url, operation, "connect: \(Self.reason(context))", advice: Self.unreachable)
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
    let reply = try ask(words, &link, to: operation)
    if case .refusal(let text) = reply { throw RedisError(url, operation, refusal: text) }
    return reply
  }

  private func ask(_ words: [String], _ link: inout Link, to operation: String) throws -> RedisReply {
    var bytes: [UInt8] = []
    var sizes: [Int] = []
    for word in words {
      bytes += word.utf8
      sizes.append(word.utf8.count)
    }
    var code: Int32 = 0
    let context = link.context
    let answer = bytes.withUnsafeBufferPointer { bytes in
      let base = UnsafeRawPointer(bytes.baseAddress)?.assumingMemoryBound(to: CChar.self)
      var position = 0
      var pointers = sizes.map { size in
        defer { position += size }
        return base?.advanced(by: position)
      }
      return withUnsafePointer(to: library) {
        chr_command($0, context, Int32(words.count), &pointers, sizes, &code)
      }
    }
    guard let answer else {
      let cause =
        [EAGAIN, ETIMEDOUT].contains(code)
        ? silence : context.map(Self.reason) ?? "no connection"
      drop(&link)
      throw RedisError(url, operation, cause, advice: Self.unreachable)
    }
    let reply = RedisReply(reading: answer)
    library.freeReplyObject(answer)
    if case .refusal(let text) = reply, reply.code == "LOADING" {
      // It counts as gone until it has read its files.
      drop(&link)
      throw RedisError(url, operation, refusal: text)
    }
    return reply
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
