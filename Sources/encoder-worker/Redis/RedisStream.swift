// Batches by name in a stream of Redis, shared by workers of any number of hosts: each is one consumer of one group. A worker
// renews the leases of its entries; others take over an entry with an expired lease. Every step that changes more than one thing
// is one script, and one that is for the holder alone asks first who that is: so it happened or it did not, and a late one does
// nothing.
//
// An operation that throws may have been done: its reply may be lost. Every step may be asked for again.

import FileSystem
import JSON
import SegmentEncoder
import Synchronization
import WorkQueues

/// A queue of batches in Redis; for several threads.
final class RedisStream: NameQueue {
  /// Its `id` is Redis' own: `1767859512340-0`.
  typealias Entry = Claim

  /// Bytes of a batch's name.
  static let nameBytes = 1_024
  /// As many are taken over at once: others may have time for the rest.
  private static let takenOverAtOnce = 16
  private static let addedAtOnce = 1_000

  private let membership: ConsumerGroupMember
  private let renewal: PeriodicThread
  private let leaseMs: Int
  private let forgetAfterMs: Int
  /// Serializes takers: an entry is recorded before the next request for what it does not know of.
  private let taking = Mutex<Void>(())

  /// Connects, and joins the group.
  ///
  /// - Parameters:
  ///   - consumer: this worker's name in the group; no two runs have the same.
  ///   - store: where the batches lie; a stream is that of one store.
  ///   - lease: seconds for which what is not renewed is still this worker's.
  ///   - mayForget: a Redis that may lose what waits is only warned of.
  ///   - forgetAfter: seconds after which a worker that holds nothing, and asks for nothing, is forgotten.
  ///   - warn: told when Redis may lose something, or has.
  /// - Throws: ``BadRedisURL``, ``NonDurableRedis``, ``StreamOfAnotherStore``, ``RedisError``, ``MissingLibrary``.
  init(
    _ url: RedisURL, consumer: String, store: String, lease: Int, allowsNonDurable: Bool, forgetAfter: Int = 3_600,
    warn: @escaping @Sendable (String) -> Void = { say("encoder-worker: \($0)", .warning) }
  ) throws {
    let told = Mutex<[NonDurableRedis.Weakness]>([])
    // Also of one that comes back: it may have other settings, or be another one.
    let connection = try RedisConnection(url) { facts in
      guard facts.generation >= 7 else {
        throw RedisError(
          url, "ask what it is", "Redis \(facts["redis_version"] ?? "of an unknown version") is too old",
          advice: "take 7.0 or later")
      }
      let forgetful = NonDurableRedis(queue: url.description, weaknesses: facts.weaknesses)
      guard allowsNonDurable || forgetful.weaknesses.isEmpty else { throw forgetful }
      let isNew = told.withLock { told in
        defer { told = forgetful.weaknesses }
        return told != forgetful.weaknesses
      }
      if isNew, !forgetful.weaknesses.isEmpty { warn(forgetful.risk) }
    }
    let membership = ConsumerGroupMember(url, worker: consumer, store: store, connection: connection, warn: warn)
    try membership.join()
    self.membership = membership
    leaseMs = 1_000 * max(1, lease)
    forgetAfterMs = 1_000 * forgetAfter
    // A failed renewal is retried; the next operation reports why.
    renewal = try PeriodicThread("lease", everyMs: leaseMs / 3) { try? membership.renew() }
  }

  /// The number of entries that no worker has taken.
  func waitingCount() throws -> Int { try integer(membership.run(.waiting), .waiting) }

  /// How many entries other workers hold, dead or alive; also what this one was given in an answer that got lost.
  func heldElsewhereCount() throws -> Int {
    let counts = try membership.run(.held).list?.compactMap(\.integer) ?? []
    guard counts.count == 2 else { throw strange(.held) }
    return max(0, counts[0] - min(counts[1], membership.heldIDs.count))
  }

  /// Takes the next entry that no worker has taken; what no worker could understand goes to the dead letters.
  func next() throws -> Entry? {
    try taking.withLock { _ in
      while true {
        let reply = try membership.run(.next)
        switch reply {
        case .list:
          if let entry = try admit(reply, from: .next, hasBegun: true) { return entry }
        // So many were there twice; there may be more.
        case .integer: continue
        default: return nil
        }
      }
    }
  }

  /// Takes over entries whose lease has expired. Any of these may be what killed its worker; work on it has not begun
  /// before ``begin(_:)``.
  ///
  /// Time during which Redis was not there, or not within reach, does not count: no worker could renew anything.
  func takeOver() throws -> [Entry] {
    try taking.withLock { _ in
      let reply = try membership.run(.takeOver) { steadyMs in
        let idleMs = steadyMs >= leaseMs ? leaseMs : 1 << 50
        return ["\(idleMs)", "\(Self.takenOverAtOnce)", "\(forgetAfterMs)"] + membership.heldIDs
      }
      guard let entries = reply.list else { throw strange(.takeOver) }
      return try entries.compactMap { try admit($0, from: .takeOver, hasBegun: false) }
    }
  }

  /// Writes down that work begins on an entry that was taken over.
  ///
  /// - Returns: nil when it is not this worker's any more.
  func begin(_ entry: Entry) throws -> Entry? {
    guard try isDone(.begin, entry, ["\(entry.attempt + 1)"]) else { return nil }
    membership.hold(entry.id, hasBegun: true)
    return Entry(id: entry.id, name: entry.name, attempt: entry.attempt + 1, failures: entry.failures)
  }

  /// Writes down that work on an entry has failed for an unknown reason.
  ///
  /// - Returns: nil when it is not this worker's any more.
  func fail(_ entry: Entry) throws -> Entry? {
    guard try isDone(.fail, entry, [entry.name, "\(entry.failures + 1)"]) else { return nil }
    return Entry(id: entry.id, name: entry.name, attempt: entry.attempt, failures: entry.failures + 1)
  }

  /// Puts an entry back, at the end, as if this worker had never taken it.
  func handBack(_ entry: Entry) throws {
    let attempt = membership.hasBegun(entry.id) ? entry.attempt - 1 : entry.attempt
    _ = try isDone(.handBack, entry, [entry.name, "\(entry.failures)", "\(max(0, attempt))"])
    membership.drop(entry.id)
  }

  /// Nothing more is owed for an entry.
  func acknowledge(_ entry: Entry) throws {
    _ = try isDone(.acknowledge, entry, [entry.name])
    membership.drop(entry.id)
  }

  /// Nothing can be made of an entry: it goes to the dead letters, once.
  func deadLetter(_ entry: Entry, reason: String) throws {
    _ = try isDone(.deadLetter, entry, [entry.name, "\(entry.failures)", "\(entry.attempt)", reason])
    membership.drop(entry.id)
  }

  /// Adds those batches that neither wait nor are held.
  ///
  /// - Returns: how many were new.
  func add(_ names: [String]) throws -> Int {
    for name in names { if let fault = Self.fault(of: name) { throw UnusableBatchName(name: name, fault: fault) } }
    return try stride(from: 0, to: names.count, by: Self.addedAtOnce).reduce(0) { sum, start in
      let some = names[start..<min(start + Self.addedAtOnce, names.count)]
      return sum + (try integer(membership.run(.add, Array(some)), .add))
    }
  }

  /// Whether Redis has lost what it knew since this worker joined; it was warned of.
  var lostState: Bool { membership.lostState }

  /// Renews this one's lease now.
  ///
  /// - Returns: false when it is not this worker's any more.
  func renew(_ entry: Entry) throws -> Bool {
    guard let lost = try membership.run(.renew, [entry.id]).list else { throw strange(.renew) }
    if !lost.isEmpty { membership.drop(entry.id) }
    return lost.isEmpty
  }

  /// Whether an entry is still this worker's, as of the last renewal; asks no server.
  var heldCount: Int { membership.heldIDs.count }

  func holds(_ id: String) -> Bool { membership.holds(id) }

  /// Renews nothing any more; a worker that holds nothing is forgotten. Remaining entries are taken over after a lease.
  func leave() {
    renewal.stop()
    _ = try? membership.run(.leave)
    membership.connection.close()
  }

  /// An entry as Redis tells of it: from here on this worker's, and renewed; nil when it is buried at once.
  private func admit(_ reply: RedisReply, from script: StreamScript, hasBegun: Bool) throws -> Entry? {
    guard let values = reply.list, values.count >= 4, let id = values[0].text, case .bytes(let bytes) = values[1],
      let attempt = values[2].integer, let failures = values[3].integer
    else { throw strange(script) }
    let name = String(validating: bytes, as: UTF8.self)
    let entry = Entry(id: id, name: name ?? "", attempt: attempt, failures: failures)
    if let fault = name.map(Self.fault) ?? "is no UTF-8" {
      try deadLetter(entry, reason: "the entry's field batch \(fault); a batch is added by: XADD STREAM * batch NAME")
      return nil
    }
    membership.hold(id, hasBegun: hasBegun)
    return entry
  }

  /// Why a batch cannot have that name.
  private static func fault(of name: String) -> String? {
    if name.isEmpty { return "is missing or empty" }
    if name.utf8.count > nameBytes { return "is longer than \(nameBytes) bytes" }
    return name.utf8.contains(0) ? "holds a NUL" : nil
  }

  /// - Returns: whether the entry was this worker's.
  private func isDone(_ script: StreamScript, _ entry: Entry, _ arguments: [String]) throws -> Bool {
    let isOwn = try integer(membership.run(script, [entry.id] + arguments), script) == 1
    if !isOwn { membership.drop(entry.id) }
    return isOwn
  }

  private func integer(_ reply: RedisReply, _ script: StreamScript) throws -> Int {
    guard let value = reply.integer else { throw strange(script) }
    return value
  }

  private func strange(_ script: StreamScript) -> RedisError {
    RedisError(
      membership.connection.url, script.operation, "an unknown reply", advice: "check that it is Redis"
    )
  }
}

/// A name that no batch in a queue can have.
struct UnusableBatchName: Error, CustomStringConvertible {
  let name: String
  let fault: String
  var description: String { "add \(name.prefix(80)): its name \(fault); name it otherwise" }
}
