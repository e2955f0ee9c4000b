// A worker's place in the stream's group: what it holds, as far as it knows, and how the queue's steps are asked for.

import FrameBatches
import SegmentEncoder
import Synchronization

/// One worker in the group that shares a stream.
final class ConsumerGroupMember: Sendable {
  let connection: RedisConnection
  private let worker: String
  private let keys: [String]
  private let store: String
  private let warn: @Sendable (String) -> Void
  /// Which group this worker is in: that of the same name which is made after Redis has lost all is another one.
  private let group = Mutex("")
  private let hasLost = Atomic(false)
  /// By the names that Redis gives to scripts.
  private let known = Mutex<[StreamScript: String]>([:])
  /// The entries of this worker, and whether work on them has begun.
  private let held = Mutex<[String: Bool]>([:])

  /// - Parameters:
  ///   - store: where the batches lie.
  ///   - warn: told of each loss, once.
  init(
    _ url: RedisURL, worker: String, store: String, connection: RedisConnection,
    warn: @escaping @Sendable (String) -> Void
  ) {
    self.store = store
    self.warn = warn
    self.connection = connection
    self.worker = worker
    // One slot of a cluster: of a key with braces only what stands in them counts.
    keys = [url.stream] + ["batches", "dead", "store", "group"].map { "{\(url.stream)}:\($0)" }
  }

  var heldIDs: [String] { held.withLock { Array($0.keys) } }
  func holds(_ id: String) -> Bool { held.withLock { $0[id] != nil } }
  func hasBegun(_ id: String) -> Bool { held.withLock { $0[id] ?? true } }
  func hold(_ id: String, hasBegun: Bool) { held.withLock { $0[id] = hasBegun } }
  func drop(_ id: String) { held.withLock { $0[id] = nil } }

  /// Whether Redis has lost what it knew, since this worker joined.
  var lostState: Bool { hasLost.load(ordering: .relaxed) }

  /// Makes the group of all workers, and the stream, where there are none; it gets what waits already.
  ///
  /// - Throws: ``RedisError``; ``StreamOfAnotherStore``.
  func join() throws { try group.withLock { $0 = try joined() } }

  /// - Throws: ``RedisError``; it is unknown then whether it was done.
  func run(_ script: StreamScript, _ arguments: [String] = []) throws -> RedisReply {
    try run(script) { _ in arguments }
  }

  /// - Parameter arguments: of the milliseconds for which Redis has been there without a break.
  func run(_ script: StreamScript, _ arguments: (_ steadyMs: Int) -> [String]) throws -> RedisReply {
    let known = group.withLock { $0 }
    var reply = try call(script, in: known, arguments)
    if reply.code == "NOGROUP" { reply = try call(script, in: try joined(after: known), arguments) }
    if case .refusal(let text) = reply { throw RedisError(connection.url, script.operation, refusal: text) }
    return reply
  }

  /// Extends the leases on all that is held, and learns which ones other workers have.
  func renew() throws {
    let ids = heldIDs
    if ids.isEmpty { return }
    for id in try run(.renew, ids).list ?? [] { if let id = id.text { drop(id) } }
  }

  /// Redis has lost its data, and with it all claims: several threads may find that out, and one of them says it.
  private func joined(after lost: String) throws -> String {
    let (now, isFirst) = try group.withLock { group in
      guard group == lost else { return (group, false) }
      held.withLock { $0.removeAll() }
      group = try joined()
      hasLost.store(true, ordering: .relaxed)
      return (group, true)
    }
    if isFirst {
      warn(
        "the queue \(connection.url) has lost its data; run reconcile to queue all waiting batches again")
    }
    return now
  }

  /// - Returns: which group that is.
  private func joined() throws -> String {
    let reply = try call(.join, in: "") { _ in [store] }
    if case .refusal(let text) = reply { throw RedisError(connection.url, StreamScript.join.operation, refusal: text) }
    if let other = reply.list?.first {
      throw StreamOfAnotherStore(
        queue: connection.url.description, key: keys[3], store: other.text ?? "no UTF-8", asked: store)
    }
    guard let group = reply.text else {
      throw RedisError(
        connection.url, StreamScript.join.operation, "an unknown reply",
        advice: "check that it is Redis")
    }
    return group
  }

  private func call(
    _ script: StreamScript, in group: String, _ arguments: (_ steadyMs: Int) -> [String]
  ) throws -> RedisReply {
    func rest(_ steadyMs: Int) -> [String] { ["\(keys.count)"] + keys + [worker] + arguments(steadyMs) + [group] }
    let name = try name(of: script)
    let reply = try connection.ask(to: script.operation) { ["EVALSHA", name] + rest($0) }
    // Redis was started anew.
    guard reply.code == "NOSCRIPT" else { return reply }
    return try connection.ask(to: script.operation) { ["EVAL", script.text] + rest($0) }
  }

  private func name(of script: StreamScript) throws -> String {
    if let name = known.withLock({ $0[script] }) { return name }
    let reply = try connection.ask(["SCRIPT", "LOAD", script.text], to: script.operation)
    guard let name = reply.text else {
      if case .refusal(let text) = reply { throw RedisError(connection.url, script.operation, refusal: text) }
      throw RedisError(connection.url, script.operation, "SCRIPT LOAD: \(reply)", advice: "check that it is Redis")
    }
    known.withLock { $0[script] = name }
    return name
  }
}
