// The one place that sees hiredis: commands go out, replies come back, one at a time. What breaks a connection is said once, to
// whoever asked; the next one to ask gets another connection. So after an error nobody knows whether it was done.

import CHiredis
import Glibc
import SegmentEncoder
import Synchronization

/// A connection to Redis, made when it is needed; for several threads.
final class RedisConnection: Sendable {
  let url: RedisURL

  private let library: chr_library
  /// Seconds that a connection or an answer may take.
  private let patience: Int32
  private let link = Mutex(Link())

  private struct Link: ~Copyable {
    nonisolated(unsafe) var context: UnsafeMutablePointer<redisContext>?
    /// Since when both Redis and the connection to it have been there, in monotonic milliseconds.
    var steadySinceMs = Int.max
    var wasConnected = false
  }

  init(_ url: RedisURL, patience: Int32 = 5) throws {
    try url.check()
    self.url = url
    self.patience = patience
    library = try HiredisLibrary.functions()
  }

  deinit { close() }

  /// Hangs up, until something is asked again.
  func close() { link.withLock { drop(&$0) } }

  /// For how long Redis has been there without a break, as far as anybody here knows; who held something has had so much
  /// time to say that he still does.
  var steadyMs: Int {
    link.withLock { MonotonicClock.milliseconds() - min($0.steadySinceMs, MonotonicClock.milliseconds()) }
  }

  /// - Parameters:
  ///   - words: a command; any bytes may be in them.
  ///   - operation: what it is for.
  /// - Throws: ``RedisError`` when there is no answer. A refusal is one.
  func ask(_ words: [String], to operation: String) throws -> RedisReply {
    try link.withLock { link in
      if link.context == nil { try connect(&link, to: operation) }
      return try ask(words, &link, to: operation)
    }
  }

  private func connect(_ link: inout Link, to operation: String) throws {
    let context =
      switch url.place {
      case .host(let host, let port):
        withUnsafePointer(to: library) { chr_connect($0, nil, host, Int32(port), patience) }
      case .socket(let path): withUnsafePointer(to: library) { chr_connect($0, path, nil, 0, patience) }
      }
    guard let context else {
      throw RedisError(url, operation, "no memory", advice: "give this machine more")
    }
    guard context.pointee.err == 0 else {
      defer { library.redisFree(context) }
      throw RedisError(
        url, operation, "connect: \(Self.reason(context))",
        advice: "see that Redis runs there and can be reached from here")
    }
    link.context = context
    do {
      if let password = url.password {
        try require(["AUTH"] + (url.user.map { [$0] } ?? []) + [password], &link, to: operation)
      }
      if url.database != 0 { try require(["SELECT", "\(url.database)"], &link, to: operation) }
      let facts = ServerFacts(try require(["INFO"], &link, to: operation))
      let upMs = link.wasConnected ? 0 : 1_000 * (facts["uptime_in_seconds"].flatMap { Int($0) } ?? 0)
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
        ? "no answer within \(patience) s" : context.map(Self.reason) ?? "no connection"
      drop(&link)
      throw RedisError(url, operation, cause, advice: "see that Redis runs there and can be reached from here")
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
  }

  private static func reason(_ context: UnsafeMutablePointer<redisContext>) -> String {
    withUnsafeBytes(of: context.pointee.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}
