// Batches in an object store, and a queue of their names. The store decides: an object in `incoming/` without a receipt
// waits, even if the queue does not name it.
//
//   incoming/NAME                batches, each written once under a name of its own
//   receipts/NAME/TAG.json       the outcome of the batch with this content
//   quarantine/NAME              and NAME.reason.json: cannot be encoded
//   accepted/MARK                a batch that is published as it is, on request
//   done/NAME                    published, kept on request
//   index/SESSION/head.json      the published segments of a session, or its tombstone
//   notifications/KEY.json       events that their receiver has refused
//   output/SESSION/…             published sessions
//   ending/SESSION               sessions that are to end, or whose end is not announced yet
//   open/SESSION                 sessions that may still go on, for workers that end quiet ones

import FileSystem
import FrameBatches
import Notifying
import Sessions
import Synchronization

package final class ObjectQueue: BatchQueue {
  private let names: any NameQueue
  /// nil if the queue has no stream of events.
  private let stream: (any EventStream)?
  private let batches: ObjectBatchRepository
  package let notifications: RefusedNotifications
  private let staging: Staging
  private let worker: WorkerID
  private let maximumBytes: Int
  /// Whether published batches leave a receipt. The index of a session knows its batches without one.
  private let hasReceipts: Bool
  private let clock: @Sendable () -> Int
  private let pace = Mutex(ClaimPace())

  /// Maximum number of entries that ``waiting()`` returns.
  private static let maximumEntries = 64

  /// - Parameters:
  ///   - name: the store's name in messages.
  ///   - staging: the place for fetched batches.
  ///   - maximumBytes: the size limit of a stored batch.
  ///   - hasReceipts: whether published batches leave a receipt. Without them, a name without a batch counts as finished.
  ///   - clock: a monotonic clock, in milliseconds.
  package init(
    _ names: any NameQueue, _ objects: any ObjectClient, name: String, staging: Staging, worker: WorkerID,
    maximumBytes: Int, hasReceipts: Bool = true,
    clock: @escaping @Sendable () -> Int = { MonotonicClock.milliseconds() }
  ) {
    self.hasReceipts = hasReceipts
    self.clock = clock
    self.names = names
    stream = names as? any EventStream
    batches = ObjectBatchRepository(objects, name: name)
    notifications = RefusedNotifications(in: objects, name: name)
    self.staging = staging
    self.worker = worker
    self.maximumBytes = maximumBytes
  }

  package func waiting() throws -> [QueueEntry] {
    let count = min(max(0, try names.claimableCount()), Self.maximumEntries)
    if count == 0 { pace.withLock { $0.noteNoneWaiting() } }
    return Array(repeating: QueueEntry(name: nil), count: count)
  }

  package func claim(_ entry: QueueEntry) throws -> Claim? {
    // Entries have no names: the first that brings nothing is an answer to all that were counted with it.
    if isPausing { return nil }
    return try paced { try names.next() }
  }

  package func takeOver() throws -> (claims: [Claim], failures: [any Error]) { (try names.takeOver(), []) }

  package func begin(_ claim: Claim) throws -> Claim? { try paced { try names.begin(claim) } }

  package var isPausing: Bool {
    let now = clock()
    return pace.withLock { $0.isPausing(atMs: now) }
  }

  package var emptyClaims: Int { pace.withLock(\.emptyInARow) }

  /// Asks for a claim, and notes whether there is one.
  private func paced(_ ask: () throws -> Claim?) rethrows -> Claim? {
    let askedMs = clock()
    let claim = try ask()
    let now = clock()
    pace.withLock { claim == nil ? $0.noteEmpty(askedMs: askedMs, nowMs: now) : $0.noteFound() }
    return claim
  }

  package func fail(_ claim: Claim) throws -> Claim {
    // If another worker has it, the next attempt finds that out.
    var next = try names.fail(claim) ?? claim
    next.tag = claim.tag
    return next
  }

  package func fetch(_ claim: Claim) throws -> FetchResult {
    try batches.requirePlain(claim.name)
    let copy = Staging.Scratch(in: staging)
    var isFetched = false
    defer { if !isFetched { copy.remove() } }
    try copy.make()
    let path = copy.path + "/" + lastComponent(of: claim.name)
    if let tag = try batches.fetch(claim.name, to: path, limit: maximumBytes) {
      isFetched = true
      var claim = claim
      claim.tag = tag
      return .batch(FetchedBatch(claim: claim, path: path, copy: copy))
    }
    // A worker died, or lost the queue, before it acknowledged the name.
    switch try batches.outcome(of: claim.name) {
    case .finished:
      try names.acknowledge(claim)
      return .alreadyFinished(.published)
    case .quarantined(let cause):
      try names.deadLetter(claim, reason: cause)
      return .alreadyFinished(.quarantined)
    case nil:
      guard !hasReceipts else { throw noObject(claim) }
      try names.acknowledge(claim)
      return .alreadyFinished(.gone)
    }
  }

  /// The queue names a batch that is not in the store, and never was: a producer may still write it.
  private func noObject(_ claim: Claim) -> Failure {
    Failure(
      .gone, "", batches.path(of: claim.name), "no such object", advice: "write a batch before its name is queued")
  }

  package func handBack(_ claim: Claim) throws { try names.handBack(claim) }

  package var takesEvents: Bool { stream != nil }

  package func announce(_ claim: Claim, key: String, event: String) throws {
    guard try stream?.announce(claim, key: key, event: event) ?? true else { throw Cancelled() }
  }

  package func announce(key: String, event: String) throws { try stream?.announce(key: key, event: event) }

  package func owed(limit: Int) throws -> [String] { try batches.owed(limit: limit) }

  /// A worker brings its pictures into the store before it asks for an end.
  package func isClosing(_ session: SessionID) -> Bool { false }

  package func forgive(_ claim: Claim) throws -> Claim {
    guard claim.attempt > 1 else { return claim }
    guard var forgiven = try names.forgive(claim) else { throw Cancelled() }
    forgiven.tag = claim.tag
    return forgiven
  }

  package func retire(_ claim: Claim, _ receipts: [Receipt], keep: Bool) throws {
    // An object without a plain name is no batch: it stays.
    guard batches.isPlain(claim.name) else { return try names.acknowledge(claim) }
    // The claim has no tag if the batch was too large to fetch.
    guard let tag = try claim.tag ?? batches.tag(of: claim.name) else {
      throw noObject(claim)
    }
    if keep { try batches.keep(claim.name, tag) }
    // The receipt of one session is that of the batch.
    let members =
      receipts.count == 1 ? receipts[0].members : ["sessions": .array(receipts.map { .object($0.members) })]
    let isRefused = receipts.allSatisfy { $0.refusal != nil }
    if isRefused || hasReceipts {
      try batches.writeReceipt(claim.name, tag, isRefused ? .refused : .published, members)
    } else {
      try batches.remove(claim.name, tag)
    }
    try names.acknowledge(claim)
  }

  package func isAccepted(_ mark: String) throws -> Bool { try batches.isAccepted(mark) }

  package func acceptingCommand(_ name: String) -> String { batches.acceptingCommand(name) }

  @discardableResult
  package func quarantine(_ claim: Claim, _ reason: BadBatch) throws -> String {
    // Before anything is written: a worker that was frozen for a lease may not know yet that another one has it.
    guard try names.renew(claim) else { throw Cancelled() }
    try batches.requireUnchanged(claim)
    guard let name = try batches.quarantine(claim, reason, worker: worker) else {
      try names.acknowledge(claim)
      throw Cancelled()
    }
    try names.deadLetter(claim, reason: "\(reason)")
    return name
  }

  package func hasLost(_ claim: Claim) -> Bool { !names.holds(claim.id) }

  package var fault: QueueFault? { names.lostState ? .dataLost : nil }

  package func heldElsewhere() throws -> Int { try names.heldElsewhereCount() }

  package func watch() -> (descriptor: Int32, pollMs: Int) { (-1, 200) }

  package func status(output: String) throws -> QueueStatus {
    .counts(waiting: try names.waitingCount(), claimed: try names.heldElsewhereCount() + names.heldCount)
  }

  package func show(_ counters: WorkerCounters) {}

  package func leave() { names.leave() }
}
