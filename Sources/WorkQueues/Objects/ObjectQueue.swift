// Batches that lie in an object store, and a queue of their names. The store is the truth: an object in `incoming/` without a
// receipt is owed work, whatever the queue says.
//
//   incoming/NAME                batches, each written once under a name of its own
//   receipts/NAME/TAG.json       what became of the batch with this content
//   quarantine/NAME              and NAME.reason.json: cannot be encoded
//   done/NAME                    published, kept on request
//   output/SESSION/…             what is published

import FileSystem
import FrameBatches
import Glibc
import Sessions

package final class ObjectQueue: BatchQueue {
  private let names: any NameQueue
  private let batches: ObjectBatchRepository
  private let staging: Staging
  private let worker: WorkerID
  private let maximumBytes: Int

  /// More are asked for when these have been taken.
  private static let offers = 64

  /// - Parameters:
  ///   - name: what the store is called in messages.
  ///   - staging: where batches are fetched to.
  ///   - mostBytes: of one batch as it is stored.
  package init(
    _ names: any NameQueue, _ objects: any ObjectClient, name: String, staging: Staging, worker: WorkerID,
    maximumBytes: Int
  ) {
    self.names = names
    batches = ObjectBatchRepository(objects, name: name)
    self.staging = staging
    self.worker = worker
    self.maximumBytes = maximumBytes
  }

  package func waiting() throws -> [QueueEntry] {
    Array(repeating: QueueEntry(name: nil), count: min(try names.waitingCount(), Self.offers))
  }

  package func claim(_ offer: QueueEntry) throws -> Claim? { try names.next().map { Claim($0) } }

  package func takeOver() throws -> (claims: [Claim], failures: [any Error]) {
    (try names.takeOver().map { Claim($0) }, [])
  }

  package func begin(_ claim: Claim) throws -> Claim? { try names.begin(QueuedName(claim)).map { Claim($0) } }

  package func fail(_ claim: Claim) throws -> Claim {
    // If another worker has it, the next attempt finds that out.
    try names.fail(QueuedName(claim)).map { Claim($0, tag: claim.tag) } ?? claim
  }

  package func fetch(_ claim: Claim) throws -> FetchResult {
    try batches.requirePlain(claim.name)
    let scratch = Staging.Scratch(in: staging)
    var isFetched = false
    defer { if !isFetched { scratch.remove() } }
    try DurableFile.makeDirectories(scratch.path)
    let path = scratch.path + "/" + lastComponent(of: claim.name)
    if let tag = try batches.fetch(claim.name, to: path, limit: maximumBytes) {
      isFetched = true
      return .batch(FetchedBatch(claim: Claim(QueuedName(claim), tag: tag), path: path))
    }
    // A worker died, or lost the queue, before the name was taken from it.
    switch try batches.outcome(of: claim.name) {
    case .published:
      try names.acknowledge(QueuedName(claim))
      return .alreadyFinished(isQuarantined: false)
    case .quarantined(let cause):
      try names.deadLetter(QueuedName(claim), reason: cause)
      return .alreadyFinished(isQuarantined: true)
    case nil: throw NoSuchBatchObject(name: batches.path(of: claim.name))
    }
  }

  package func discard(_ batch: FetchedBatch) {
    try? DurableFile.removeTree(DurableFile.parentDirectory(of: batch.path))
  }

  package func handBack(_ claim: Claim) throws {
    try names.handBack(QueuedName(claim))
  }

  package func retire(_ claim: Claim, _ receipts: [Receipt], keep: Bool) throws {
    guard let tag = claim.tag else {
      throw NoSuchBatchObject(name: batches.path(of: claim.name))
    }
    if keep { try batches.keep(claim.name, tag) }
    // The receipt of one session is that of the batch.
    let members =
      receipts.count == 1 ? receipts[0].members : ["sessions": .array(receipts.map { .object($0.members) })]
    try batches.writeReceipt(claim.name, tag, "published", members)
    try names.acknowledge(QueuedName(claim))
  }

  @discardableResult
  package func quarantine(_ claim: Claim, _ reason: BadBatch) throws -> String {
    // Before anything is written: a worker that was frozen for a lease may not know yet that another one has it.
    guard try names.renew(QueuedName(claim)) else { throw Cancelled() }
    let name = try batches.quarantine(claim, claim.tag, reason, worker: worker)
    try names.deadLetter(QueuedName(claim), reason: "\(reason)")
    return name
  }

  package func hasLost(_ claim: Claim) -> Bool { !names.holds(claim.token) }

  package var isCutOff: Bool { false }

  package var lostState: Bool { names.lostState }

  package func heldElsewhere() throws -> Int { try names.heldElsewhereCount() }

  package func watch() -> Int32 { -1 }

  package var pollIntervalMs: Int { 200 }

  package func status(output: String) throws -> QueueStatus {
    .counts(waiting: try names.waitingCount(), claimed: try names.heldElsewhereCount() + names.heldCount)
  }

  package func show(_ counters: WorkerCounters) {}

  package func leave() { names.leave() }
}

extension Claim {
  fileprivate init(_ name: QueuedName, tag: ObjectTag? = nil) {
    self.init(name: name.name, attempt: name.attempt, failures: name.failures, token: name.id, tag: tag)
  }
}

extension QueuedName {
  fileprivate init(_ claim: Claim) {
    self.init(id: claim.token, name: claim.name, attempt: claim.attempt, failures: claim.failures)
  }
}

/// The queue names a batch that is not there, and never was: it may be written yet.
struct NoSuchBatchObject: Error, CustomStringConvertible {
  package let name: String
  package var description: String { "\(name): no such object; write a batch before its name is queued" }
}
