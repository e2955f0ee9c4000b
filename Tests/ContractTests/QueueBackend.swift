import FileSystem
import Foundation
import FrameBatches
import Sessions
import Synchronization
import TestSupport
import Testing

@testable import Notifying
@testable import Remote
@testable import WorkQueues

/// A queue for one test: what its workers, a producer and an operator do to it from outside.
protocol QueueBackend {
  /// Returns a new worker's end of the queue.
  func worker(_ name: String) throws -> any BatchQueue
  /// Adds a batch of one file, as a producer does.
  func add(_ name: String, _ bytes: [UInt8]) throws
  /// Takes the worker with this claim for dead, so that the named worker's next takeover returns the claim.
  func expire(_ claim: Claim, for worker: String) throws
  /// Retries a batch in quarantine, as an operator does.
  ///
  /// - Returns: its former name.
  func retry(_ name: String, accepting: Bool) throws -> String
  /// Returns the files or objects below `incoming`, `done` or `quarantine` by name.
  func files(_ state: String) throws -> [String: [UInt8]]
}

/// The queues that the program has. A new one is added here, and has to pass ``QueueContractTests``.
enum QueueKind: String, CaseIterable, CustomTestStringConvertible {
  case spool
  case namesInMemory
  case redis
  case sqs

  /// Those that can run on this machine. A test of its own reports a missing server.
  static let installed: [QueueKind] = allCases.filter { kind in
    switch kind {
    case .spool, .namesInMemory: true
    case .redis: QueueServer.isInstalled
    case .sqs: StoreServer.isInstalled
    }
  }

  var testDescription: String { rawValue }

  func backend() throws -> any QueueBackend {
    switch self {
    case .spool: try SpoolBackend()
    case .namesInMemory: try MemoryBackend()
    case .redis: try RedisBackend()
    case .sqs: try SQSBackend()
    }
  }
}

private struct SpoolBackend: QueueBackend {
  private let scratch: ScratchDirectory
  private let spool: Spool

  init() throws {
    scratch = try ScratchDirectory()
    spool = try Spool(creating: scratch.path("spool"))
  }

  func worker(_ name: String) throws -> any BatchQueue {
    try SpoolQueue(spool, worker: WorkerID(), elsewhere: HeartbeatMonitor(lease: 60))
  }

  func add(_ name: String, _ bytes: [UInt8]) throws {
    try scratch.file("draft", bytes)
    try FileManager.default.moveItem(atPath: scratch.path("draft"), toPath: spool.incoming + "/" + name)
  }

  func expire(_ claim: Claim, for worker: String) throws {
    let dead = "\(WorkerID.host)~99999999~dead"
    _ = try scratch.directory("spool/claimed/" + dead)
    try scratch.file("spool/claimed/\(dead)/alive", [1])
    try FileManager.default.moveItem(
      atPath: claim.id, toPath: "\(spool.claimed)/\(dead)/\(lastComponent(of: claim.id))")
  }

  func retry(_ name: String, accepting: Bool) throws -> String {
    let quarantine = Quarantine(of: spool)
    return try quarantine.retry(quarantine.batch(name), accepting: accepting)
  }

  func files(_ state: String) throws -> [String: [UInt8]] {
    let directory = scratch.path("spool/" + state)
    guard DurableFile.exists(directory) else { return [:] }
    return Dictionary(
      uniqueKeysWithValues: try names(in: directory).map { name in
        (name, Array(try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name))))
      })
  }
}

/// Batches in an object store in memory. Their names are in a queue of the backend's choice.
private struct StoredBatches {
  let objects = MemoryObjects()
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  func worker(_ names: any NameQueue) throws -> any BatchQueue {
    let id = WorkerID()
    return ObjectQueue(
      names, objects, name: "s3://test", staging: try Staging(scratch: scratch.path("own"), worker: id), worker: id,
      maximumBytes: 1 << 20)
  }

  func retry(_ name: String, accepting: Bool, in names: any NameQueue) throws -> String {
    try ObjectBatchRepository(objects, name: "s3://test/").retry(name, accepting: accepting, in: names)
  }

  func files(_ state: String) -> [String: [UInt8]] {
    let prefix = state + "/"
    return Dictionary(
      uniqueKeysWithValues: objects.keys.filter { $0.hasPrefix(prefix) }.compactMap { key in
        objects[key].map { (String(key.dropFirst(prefix.count)), $0) }
      })
  }
}

private struct MemoryBackend: QueueBackend {
  private let batches: StoredBatches
  private let names = MemoryNames()

  init() throws { batches = try StoredBatches() }

  func worker(_ name: String) throws -> any BatchQueue { try batches.worker(MemoryNames(beside: names)) }

  func add(_ name: String, _ bytes: [UInt8]) throws {
    batches.objects["incoming/" + name] = bytes
    _ = names.add([name])
  }

  func expire(_ claim: Claim, for worker: String) throws { names.expire(claim.id) }

  func retry(_ name: String, accepting: Bool) throws -> String {
    try batches.retry(name, accepting: accepting, in: names)
  }

  func files(_ state: String) throws -> [String: [UInt8]] { batches.files(state) }
}

private struct RedisBackend: QueueBackend {
  private let batches: StoredBatches
  private let server: QueueServer

  init() throws {
    batches = try StoredBatches()
    server = try QueueServer()
  }

  private func names(of worker: String) throws -> RedisStream {
    try RedisStream(
      RedisURL(server.url), consumer: worker, store: "s3://test/", lease: 3_600, allowsNonDurable: false,
      warn: { _ in })
  }

  func worker(_ name: String) throws -> any BatchQueue { try batches.worker(names(of: name)) }

  func add(_ name: String, _ bytes: [UInt8]) throws {
    batches.objects["incoming/" + name] = bytes
    _ = try names(of: "producer").add([name])
  }

  func expire(_ claim: Claim, for worker: String) throws {
    // Redis delivers the entry, as in a lost reply. So the test need not wait for a lease.
    try server.command("XCLAIM", "encoder-worker", "encoder-worker", worker, "0", claim.id)
  }

  func retry(_ name: String, accepting: Bool) throws -> String {
    try batches.retry(name, accepting: accepting, in: names(of: "producer"))
  }

  func files(_ state: String) throws -> [String: [UInt8]] { batches.files(state) }
}

private final class SQSBackend: QueueBackend {
  /// A worker's end, and the time that its clock is ahead.
  private struct Member {
    let names: SQSQueue
    let aheadMs: Clock
  }

  private final class Clock: Sendable {
    private let aheadMs = Mutex(0)
    var now: Int { MonotonicClock.milliseconds() + aheadMs.withLock { $0 } }
    func advance(_ milliseconds: Int) { aheadMs.withLock { $0 += milliseconds } }
  }

  private static let leaseS = 3_600

  private let batches: StoredBatches
  private let queue: MessageQueue
  private var members: [String: Member] = [:]

  init() throws {
    batches = try StoredBatches()
    queue = try MessageQueue(try StoreServer.shared.get())
  }

  private func names(_ role: QueueRole, _ clock: Clock = Clock()) throws -> SQSQueue {
    let environment = queue.store.environment
    let client = try SQSClient(SQSAddress(queue.address), AWSSettings(environment: { environment[$0] }))
    // The server's counts are exact, so a zero is believed.
    return try SQSQueue(
      client, objects: batches.objects, place: ObjectPlace(bucket: "test", prefix: ""), role: role,
      lease: Self.leaseS, waitS: 0, probeAfterMs: 1 << 40, clock: { clock.now }, warn: { _ in })
  }

  func worker(_ name: String) throws -> any BatchQueue {
    let clock = Clock()
    let names = try names(.worker(drains: false), clock)
    members[name] = Member(names: names, aheadMs: clock)
    return try batches.worker(names)
  }

  func add(_ name: String, _ bytes: [UInt8]) throws {
    batches.objects["incoming/" + name] = bytes
    _ = try names(.producer).add([name])
    // Longer than workers believe a count.
    for member in members.values { member.aheadMs.advance(2_000) }
  }

  func expire(_ claim: Claim, for worker: String) throws {
    // The lease ends for its holder and for the queue.
    for (name, member) in members where name != worker { member.aheadMs.advance(1_000 * Self.leaseS) }
    try queue.loseVisibility()
    // A worker finds such a message when it looks for the next one, and sets it aside.
    if let claim = try members[worker]?.names.next() { throw Tool.Failure("\(claim) is not set aside") }
  }

  func retry(_ name: String, accepting: Bool) throws -> String {
    defer { for member in members.values { member.aheadMs.advance(2_000) } }
    return try batches.retry(name, accepting: accepting, in: names(.producer))
  }

  func files(_ state: String) throws -> [String: [UInt8]] { batches.files(state) }
}
