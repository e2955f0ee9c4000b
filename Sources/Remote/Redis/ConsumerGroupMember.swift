import FileSystem
import Synchronization

/// A worker in the consumer group of a stream: the entries that it holds, as far as it knows, and its calls of scripts.
final class ConsumerGroupMember: Sendable {
  let connection: RedisConnection
  private let worker: String
  private let keys: [String]
  private let store: String
  private let warn: @Sendable (String) -> Void
  /// The ID of the group that this worker has joined. After Redis has lost its data, the group gets another ID.
  private let group = Mutex("")
  private let hasLost = Atomic(false)
  /// The SHA-1 of each loaded script, by operation.
  private let loaded = Mutex<[String: String]>([:])
  /// The entries of this worker, with whether work on them has begun.
  private let held = Mutex<[String: Bool]>([:])

  /// - Parameter warn: called once for each loss of data.
  init(
    _ url: RedisURL, worker: String, store: String, connection: RedisConnection,
    warn: @escaping @Sendable (String) -> Void
  ) {
    self.store = store
    self.warn = warn
    self.connection = connection
    self.worker = worker
    keys = Self.keys(of: url)
  }

  /// The keys that each script gets. The braces put all of them into one slot of a cluster.
  static func keys(of url: RedisURL) -> [String] {
    [url.stream] + ["batches", "dead", "store", "group", "published"].map { "{\(url.stream)}:\($0)" }
  }

  var heldIDs: [String] { held.withLock { Array($0.keys) } }
  func holds(_ id: String) -> Bool { held.withLock { $0[id] != nil } }
  func hasBegun(_ id: String) -> Bool { held.withLock { $0[id] ?? true } }
  func hold(_ id: String, hasBegun: Bool) { held.withLock { $0[id] = hasBegun } }
  func drop(_ id: String) { held.withLock { $0[id] = nil } }

  /// Whether Redis has lost its data since this worker joined.
  var lostState: Bool { hasLost.load(ordering: .relaxed) }

  /// Joins the group. Creates it, and the stream, if they are missing; entries that wait already belong to the group.
  ///
  /// - Throws: ``Failure``.
  func join() throws { try group.withLock { $0 = try joined() } }

  /// - Throws: ``Failure``; then it is unknown whether the script has run.
  func run(_ script: StreamScript, _ arguments: [String] = []) throws -> RedisReply {
    try run(script) { _ in arguments }
  }

  /// - Parameter arguments: gets the milliseconds for which Redis has been reachable without a break.
  func run(_ script: StreamScript, _ arguments: (_ steadyMs: Int) -> [String]) throws -> RedisReply {
    let joined = group.withLock { $0 }
    var reply = try call(script, in: joined, arguments)
    if reply.code == "NOGROUP" { reply = try call(script, in: try rejoined(after: joined), arguments) }
    return try reply.checked(connection.url, script.operation)
  }

  /// Renews the leases of all held entries, and drops those that other workers have taken over.
  func renew() throws {
    let ids = heldIDs
    if ids.isEmpty { return }
    guard let lost = try run(.renew, ids).lost(of: ids) else {
      throw Failure.unexpectedReply(connection.url, StreamScript.renew.operation)
    }
    for id in lost { drop(id) }
  }

  /// Joins again after Redis has lost its data, and with it all claims. Of several threads that notice it, one warns.
  private func rejoined(after lost: String) throws -> String {
    let (now, isFirst) = try group.withLock { group in
      guard group == lost else { return (group, false) }
      held.withLock { $0.removeAll() }
      group = try joined()
      hasLost.store(true, ordering: .relaxed)
      return (group, true)
    }
    if isFirst {
      warn("the queue \(connection.url) has lost its data; run reconcile to queue all waiting batches again")
    }
    return now
  }

  /// - Returns: the group's ID.
  private func joined() throws -> String {
    let operation = StreamScript.join.operation
    let reply = try call(.join, in: "") { _ in [store] }.checked(connection.url, operation)
    if case .bytes(let other)? = reply.list?.first { throw Failure.otherStore(other, connection.url, store) }
    guard let group = reply.group else { throw Failure.unexpectedReply(connection.url, operation) }
    return group
  }

  private func call(
    _ script: StreamScript, in group: String, _ arguments: (_ steadyMs: Int) -> [String]
  ) throws -> RedisReply {
    func words(_ steadyMs: Int) -> [String] { ["\(keys.count)"] + keys + [worker] + arguments(steadyMs) + [group] }
    let digest = try digest(of: script)
    let reply = try connection.ask(to: script.operation) { ["EVALSHA", digest] + words($0) }
    // Redis has been restarted.
    guard reply.code == "NOSCRIPT" else { return reply }
    return try connection.ask(to: script.operation) { ["EVAL", script.text] + words($0) }
  }

  private func digest(of script: StreamScript) throws -> String {
    if let digest = loaded.withLock({ $0[script.operation] }) { return digest }
    let reply = try connection.ask(["SCRIPT", "LOAD", script.text], to: script.operation)
      .checked(connection.url, script.operation)
    guard let digest = reply.digest else { throw Failure.unexpectedReply(connection.url, script.operation) }
    loaded.withLock { $0[script.operation] = digest }
    return digest
  }
}

extension Failure {
  /// The stream belongs to another store than the one that was named.
  static func otherStore(_ other: [UInt8], _ url: RedisURL, _ store: String) -> Failure {
    let key = ConsumerGroupMember.keys(of: url)[3]
    return Failure(
      .environment, "the queue \(url) is of the store \(RedisReply.line(other)), not of \(store)",
      advice: "name another stream with ?stream=NAME, or, if the store has moved, delete the key \(key)")
  }
}
