import FileSystem
import WorkQueues

extension RedisStream {
  /// Returns the state of a stream. Does not join its group, and changes nothing in Redis.
  ///
  /// - Parameter store: the store of the batches; a stream belongs to one store.
  /// - Throws: ``Failure``.
  static func status(of url: RedisURL, store: String) throws -> NameQueueStatus {
    let connection = try RedisConnection(url)
    defer { connection.close() }
    let (script, keys) = (StreamScript.status, ConsumerGroupMember.keys(of: url))
    // The scripts take the name of a worker and the ID of a group.
    let words = ["EVAL_RO", script.text, "\(keys.count)"] + keys + ["", ""]
    let reply = try connection.ask(words, to: script.operation).checked(url, script.operation)
    guard let (other, status) = reply.streamStatus else { throw Failure.unexpectedReply(url, script.operation) }
    guard other.isEmpty || other == Array(store.utf8) else { throw Failure.otherStore(other, url, store) }
    return status
  }
}

extension RedisReply {
  /// The store of a stream, empty for none, and its state.
  var streamStatus: (store: [UInt8], NameQueueStatus)? {
    guard let list, list.count == 6, case .bytes(let store) = list[0], let nowMs = list[1].text.flatMap({ Int64($0) }),
      let waiting = Self.depth(list[2], list[3], atMs: nowMs), let held = Self.depth(list[4], list[5], atMs: nowMs)
    else { return nil }
    return (store, NameQueueStatus(waiting: waiting, claimed: held, isApproximate: false))
  }

  /// - Parameter first: the ID of the oldest entry, which begins with its time in milliseconds; empty for none.
  private static func depth(_ count: RedisReply, _ first: RedisReply, atMs nowMs: Int64) -> QueueDepth? {
    guard let count = count.count, first == .bytes([]) || first.id != nil else { return nil }
    let addedMs = first.id.flatMap { Int64($0.prefix { $0 != "-" }) }
    // Whatever Redis says, a difference of two numbers that are not negative does not overflow.
    let ageMs = addedMs.map { max(0, max(0, nowMs) - $0) }
    return QueueDepth(count: count, oldestMs: count > 0 ? ageMs : nil)
  }
}
