// Names of batches in a Redis stream. The workers of all hosts are consumers of one group. A worker renews the leases
// of its entries; others take over an entry with an expired lease. Each step is one script, which is atomic. A step of
// an entry's holder checks the holder first, so a late step does nothing.
//
// A step that throws may have run: its reply may be lost. Every step is idempotent.

import FileSystem
import FrameBatches
import Synchronization
import WorkQueues

/// A queue of batches in Redis; for several threads.
package final class RedisStream: EventStream {
  /// Its `id` is Redis' own: `1767859512340-0`.
  package typealias Entry = Claim

  /// The number of events that the stream of events keeps at least.
  static let maximumEvents = 10_000
  /// The maximum of entries that one call takes over; other workers may be free for the rest.
  private static let takenOverAtOnce = 16
  /// The maximum of replies without a valid entry that one claim reads. Then the worker pauses: they may never end.
  private static let uselessReplies = 200
  private static let addedAtOnce = 1_000

  private let membership: ConsumerGroupMember
  private let renewal: PeriodicThread
  private let leaseMs: Int
  private let forgetAfterMs: Int
  /// Serializes ``next()`` and ``takeOver()``: entries are recorded as held before the next request.
  private let taking = Mutex<Void>(())

  /// Connects, and joins the group.
  ///
  /// - Parameters:
  ///   - consumer: this worker's name in the group, unique for each run.
  ///   - store: the store of the batches; a stream belongs to one store.
  ///   - lease: seconds without renewal after which other workers take over an entry.
  ///   - allowsNonDurable: whether to warn of a Redis that may lose data, instead of refusing it.
  ///   - forgetAfter: seconds after which an idle consumer without entries is removed from the group.
  ///   - warn: called when Redis may lose data, or has lost it.
  /// - Throws: ``Failure``, ``NonDurableRedis``.
  package init(
    _ url: RedisURL, consumer: String, store: String, lease: Int, allowsNonDurable: Bool, forgetAfter: Int = 3_600,
    warn: @escaping @Sendable (String) -> Void
  ) throws {
    let reported = Mutex<[NonDurableRedis.Weakness]>([])
    // Check each new connection: Redis may have other settings, or be another server.
    let connection = try RedisConnection(url) { facts in
      guard facts.generation >= 7 else {
        throw Failure.redis(
          url, "ask what it is", "Redis \(facts.line("redis_version") ?? "of an unknown version") is too old",
          advice: "take 7.0 or later")
      }
      let weaknesses = facts.weaknesses
      let nonDurable = NonDurableRedis(queue: url.description, weaknesses: weaknesses)
      guard allowsNonDurable || weaknesses.isEmpty else { throw nonDurable }
      let isNew = reported.withLock { reported in
        defer { reported = weaknesses }
        return reported != weaknesses
      }
      if isNew, !weaknesses.isEmpty { warn(nonDurable.risk) }
    }
    let membership = ConsumerGroupMember(url, worker: consumer, store: store, connection: connection, warn: warn)
    try membership.join()
    self.membership = membership
    leaseMs = 1_000 * max(1, lease)
    forgetAfterMs = 1_000 * forgetAfter
    // A failed renewal is retried; the next operation reports why.
    renewal = try PeriodicThread("lease", everyMs: leaseMs / 3) { try? membership.renew() }
  }

  package func waitingCount() throws -> Int { try integer(.waiting) }

  /// The number of entries that other workers hold, dead or alive, and of entries in lost replies to this worker.
  package func heldElsewhereCount() throws -> Int {
    guard let counts = try membership.run(.held).heldCounts else { throw unexpectedReply(to: .held) }
    return max(0, counts.all - min(counts.own, membership.heldIDs.count))
  }

  /// Takes the next waiting entry. Invalid entries go to the dead letters.
  package func next() throws -> Entry? {
    try taking.withLock { _ in
      for _ in 0..<Self.uselessReplies {
        switch try membership.run(.next).next {
        case .entry(let entry):
          if let entry = try admit(entry, hasBegun: true) { return entry }
        case .duplicates: continue
        case NextEntry.none?: return nil
        case nil: throw unexpectedReply(to: .next)
        }
      }
      return nil
    }
  }

  /// Takes over entries with an expired lease. Time in which Redis was not reachable does not count: no worker could
  /// renew its leases.
  package func takeOver() throws -> [Entry] {
    try taking.withLock { _ in
      let reply = try membership.run(.takeOver) { steadyMs in
        let idleMs = steadyMs >= leaseMs ? leaseMs : 1 << 50
        return ["\(idleMs)", "\(Self.takenOverAtOnce)", "\(forgetAfterMs)"] + membership.heldIDs
      }
      guard let entries = reply.entries(atMost: Self.takenOverAtOnce) else { throw unexpectedReply(to: .takeOver) }
      return try entries.compactMap { try admit($0, hasBegun: false) }
    }
  }

  package func begin(_ entry: Entry) throws -> Entry? {
    guard try isDone(.begin, entry, ["\(entry.attempt + 1)"]) else { return nil }
    membership.hold(entry.id, hasBegun: true)
    return entry.with(attempt: entry.attempt + 1)
  }

  package func fail(_ entry: Entry) throws -> Entry? {
    guard try isDone(.fail, entry, [entry.name, "\(entry.failures + 1)"]) else { return nil }
    return entry.with(failures: entry.failures + 1)
  }

  package func forgive(_ entry: Entry) throws -> Entry? {
    guard try isDone(.begin, entry, ["1"]) else { return nil }
    return entry.with(attempt: 1)
  }

  package func announce(_ entry: Entry, key: String, event: String) throws -> Bool {
    try isDone(.announce, entry, [key, event])
  }

  package func announce(key: String, event: String) throws { _ = try integer(.announceEvent, [key, event]) }

  /// Puts an entry back at the end, and does not count this attempt.
  package func handBack(_ entry: Entry) throws {
    let attempt = membership.hasBegun(entry.id) ? entry.attempt - 1 : entry.attempt
    let trace = entry.traceParent?.description ?? ""
    _ = try isDone(.handBack, entry, [entry.name, "\(entry.failures)", "\(max(0, attempt))", trace])
    membership.drop(entry.id)
  }

  package func acknowledge(_ entry: Entry) throws {
    _ = try isDone(.acknowledge, entry, [entry.name])
    membership.drop(entry.id)
  }

  package func deadLetter(_ entry: Entry, reason: String) throws {
    _ = try isDone(.deadLetter, entry, [entry.name, "\(entry.failures)", "\(entry.attempt)", reason])
    membership.drop(entry.id)
  }

  package func add(_ names: [String], traceParent: TraceParent?) throws -> Int {
    for name in names { try QueuedName.check(name) }
    let trace = [traceParent?.description ?? ""]
    return try stride(from: 0, to: names.count, by: Self.addedAtOnce).reduce(0) { sum, start in
      sum + (try integer(.add, trace + names[start...].prefix(Self.addedAtOnce)))
    }
  }

  package var lostState: Bool { membership.lostState }

  package func renew(_ entry: Entry) throws -> Bool {
    guard let lost = try membership.run(.renew, [entry.id]).lost(of: [entry.id]) else {
      throw unexpectedReply(to: .renew)
    }
    if !lost.isEmpty { membership.drop(entry.id) }
    return lost.isEmpty
  }

  package var heldCount: Int { membership.heldIDs.count }

  /// Whether this worker holds an entry, as of the last renewal. Sends no command.
  package func holds(_ id: String) -> Bool { membership.holds(id) }

  /// Stops renewing leases. Without entries, the worker leaves the group; else other workers take them over after the
  /// lease.
  package func leave() {
    renewal.stop()
    _ = try? membership.run(.leave)
    membership.connection.close()
  }

  /// Records an entry as held. Moves one that names no batch to the dead letters, and returns nil; also for one that this
  /// worker holds already.
  private func admit(_ entry: StreamEntry, hasBegun: Bool) throws -> Entry? {
    if membership.holds(entry.claim.id) { return nil }
    if let fault = entry.fault {
      let reason = "the entry's field batch \(fault); a batch is added by: XADD STREAM * batch NAME"
      try deadLetter(entry.claim, reason: reason)
      return nil
    }
    membership.hold(entry.claim.id, hasBegun: hasBegun)
    return entry.claim
  }

  /// - Returns: whether this worker held the entry.
  private func isDone(_ script: StreamScript, _ entry: Entry, _ arguments: [String]) throws -> Bool {
    let isHolder = try integer(script, [entry.id] + arguments) == 1
    if !isHolder { membership.drop(entry.id) }
    return isHolder
  }

  private func integer(_ script: StreamScript, _ arguments: [String] = []) throws -> Int {
    guard let value = try membership.run(script, arguments).count else { throw unexpectedReply(to: script) }
    return value
  }

  private func unexpectedReply(to script: StreamScript) -> Failure {
    Failure.unexpectedReply(membership.connection.url, script.operation)
  }
}
