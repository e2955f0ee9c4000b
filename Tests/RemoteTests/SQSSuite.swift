import FileSystem
import Foundation
import FrameBatches
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import JSON
@testable import Remote

/// A suite with a server of SQS, and what its tests do with a queue.
protocol SQSSuite {
  var store: StoreServer { get }
  /// The store of the batches.
  var objects: MemoryObjects { get }
  var clock: TestClock { get }
}

/// A clock that a test sets ahead.
final class TestClock: Sendable {
  private let aheadMs = Mutex(0)
  var now: Int { MonotonicClock.milliseconds() + aheadMs.withLock { $0 } }
  func advance(seconds: Int) { aheadMs.withLock { $0 += 1_000 * seconds } }
}

extension SQSSuite {
  var place: ObjectPlace { ObjectPlace(bucket: "replay", prefix: "prod/") }

  func client(
    _ address: String, of store: StoreServer? = nil, _ changes: [String: String] = [:]
  ) throws -> SQSClient {
    let environment = (store ?? self.store).environment.merging(changes) { $1 }
    return try SQSClient(SQSAddress(address), AWSSettings(environment: { environment[$0] }), pauseMs: 1)
  }

  func worker(
    _ queue: MessageQueue, address: String? = nil, role: QueueRole = .worker(drains: false), lease: Int = 3_600,
    warn: @escaping @Sendable (String) -> Void = { _ in }
  ) throws -> SQSQueue {
    try SQSQueue(
      client(address ?? queue.address), objects: objects, place: place, role: role, lease: lease, waitS: 0,
      clock: { [clock] in clock.now }, warn: warn)
  }

  func notification(_ keys: String..., bucket: String = "replay") -> String {
    let records = keys.map { key in
      JSONValue.object([
        "eventSource": .string("aws:s3"), "eventName": .string("ObjectCreated:Put"),
        "s3": .object([
          "bucket": .object(["name": .string(bucket)]),
          "object": .object(["key": .string(PercentEncoding.encoded(key))]),
        ]),
      ])
    }
    return JSONValue.object(["Records": .array(records)]).line
  }

  func names(of worker: SQSQueue) throws -> [String] {
    var names: [String] = []
    while let claim = try worker.next() {
      names.append(claim.name)
      try worker.acknowledge(claim)
    }
    return names
  }
}
