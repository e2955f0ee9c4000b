// A worker's place in the stream's group: what it holds, as far as it knows, and how the queue's steps are asked for.

import SegmentEncoder
import Synchronization

/// One worker in the group that shares a stream.
final class StreamMembership: Sendable {
  let connection: RedisConnection
  private let worker: String
  private let keys: [String]
  /// By the names that Redis gives to scripts.
  private let known = Mutex<[StreamScript: String]>([:])
  /// What this worker holds, by entries; whether work on it has begun.
  private let held = Mutex<[String: Bool]>([:])

  init(_ url: RedisURL, worker: String, connection: RedisConnection) {
    self.connection = connection
    self.worker = worker
    // One slot of a cluster: of a key with braces only what stands in them counts.
    keys = [url.stream, "{\(url.stream)}:batches", "{\(url.stream)}:dead"]
  }

  var heldIDs: [String] { held.withLock { Array($0.keys) } }
  func holds(_ id: String) -> Bool { held.withLock { $0[id] != nil } }
  func hasBegun(_ id: String) -> Bool { held.withLock { $0[id] ?? true } }
  func hold(_ id: String, hasBegun: Bool) { held.withLock { $0[id] = hasBegun } }
  func drop(_ id: String) { held.withLock { $0[id] = nil } }

  /// Makes the group of all workers, and the stream, where there are none; it gets what waits already.
  func makeGroup() throws {
    let operation = "make the group"
    let reply = try connection.ask(
      ["XGROUP", "CREATE", keys[0], StreamScript.group, "0", "MKSTREAM"], to: operation)
    if case .refusal(let text) = reply, reply.code != "BUSYGROUP" {
      throw RedisError(connection.url, operation, refusal: text)
    }
  }

  /// - Throws: ``RedisError``; nobody knows then whether it was done.
  func run(_ script: StreamScript, _ arguments: [String] = []) throws -> RedisReply {
    var reply = try call(script, arguments)
    if reply.code == "NOGROUP" {
      // What Redis knew is gone, and with it what was held.
      held.withLock { $0.removeAll() }
      try makeGroup()
      reply = try call(script, arguments)
    }
    if case .refusal(let text) = reply { throw RedisError(connection.url, script.operation, refusal: text) }
    return reply
  }

  /// Extends the leases on all that is held, and learns what somebody else has.
  func renew() throws {
    let ids = heldIDs
    if ids.isEmpty { return }
    for id in try run(.renew, ids).list ?? [] { if let id = id.text { drop(id) } }
  }

  private func call(_ script: StreamScript, _ arguments: [String]) throws -> RedisReply {
    let rest = ["\(keys.count)"] + keys + [worker] + arguments
    let reply = try connection.ask(["EVALSHA", try name(of: script)] + rest, to: script.operation)
    // Redis was started anew.
    guard reply.code == "NOSCRIPT" else { return reply }
    return try connection.ask(["EVAL", script.text] + rest, to: script.operation)
  }

  private func name(of script: StreamScript) throws -> String {
    if let name = known.withLock({ $0[script] }) { return name }
    let reply = try connection.ask(["SCRIPT", "LOAD", script.text], to: script.operation)
    guard let name = reply.text else {
      if case .refusal(let text) = reply { throw RedisError(connection.url, script.operation, refusal: text) }
      throw RedisError(connection.url, script.operation, "SCRIPT LOAD: \(reply)", advice: "see that it is a Redis")
    }
    known.withLock { $0[script] = name }
    return name
  }
}
