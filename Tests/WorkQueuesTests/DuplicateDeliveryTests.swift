import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions
@testable import WorkQueues

/// Two workers hold the same batch at once: a queue has delivered it twice. The store decides: it is published once.
@Suite struct DuplicateDeliveryTests {
  private let scratch: ScratchDirectory
  private let batch: [UInt8]

  init() throws {
    scratch = try ScratchDirectory()
    let archive = scratch.path("archive.tar")
    _ = try Tool.output("tar", ["-cf", archive, "--sort=name", "-C", Fixture("single-frame").path, "."])
    batch = try DurableFile.contents(of: archive, limit: .max) ?? []
  }

  /// Works on the batch until it is finished, as the only worker of a queue that has its name.
  private func work(_ objects: any ObjectClient, keep: Bool) throws {
    let names = MemoryNames()
    _ = names.add(["a@1.tar"])
    let id = WorkerID()
    let staging = try Staging(scratch: scratch.path("\(id)"), worker: id)
    let queue = ObjectQueue(
      names, objects, name: "s3://test", staging: staging, worker: id, maximumBytes: 1 << 30)
    let encoder = BatchEncoder(
      BatchEncoder.Options(), publishingTo: ObjectStore(objects, name: "s3://test", staging: staging, hls: false),
      keyFrames: KeyFrameCache())
    var claim = try #require(names.next())
    if case .batch(let fetched) = try queue.fetch(claim) {
      defer { fetched.discard() }
      claim = fetched.claim
      do {
        try queue.retire(claim, try encoder.publish(fetched.path), keep: keep)
      } catch let bad as BadBatch {
        try queue.quarantine(claim, bad)
      }
    }
    #expect(names.count == 0)
  }

  /// Has another worker do all of the work before each request of a worker.
  ///
  /// - Returns: all objects after an undisturbed run, and after each other one.
  private func race(_ batch: [UInt8], keep: Bool) throws -> (alone: [String: [UInt8]], raced: [[String: [UInt8]]]) {
    func run(_ other: Int?) throws -> (objects: [String: [UInt8]], requests: Int) {
      let objects = MemoryObjects()
      objects["incoming/a@1.tar"] = batch
      let failure = Mutex<String?>(nil)
      let first = StoppingObjects(objects) { number in
        guard number == other else { return }
        do { try work(objects, keep: keep) } catch { failure.withLock { $0 = "\(error)" } }
      }
      try work(first, keep: keep)
      #expect(failure.withLock { $0 } == nil, "before request \(other ?? -1)")
      let all = objects.keys.map { ($0, objects[$0] ?? []) }
      return (Dictionary(uniqueKeysWithValues: all), first.requests)
    }
    let alone = try run(nil)
    let raced = try stride(from: 0, to: alone.requests, by: Extent.of(3, full: 1)).map { try run($0).objects }
    #expect(raced.count > 1)
    return (alone.objects, raced)
  }

  @Test(arguments: [false, true]) func batchIsPublishedOnce(keep: Bool) throws {
    let (alone, raced) = try race(batch, keep: keep)
    #expect(alone.keys.contains("done/a@1.tar") == keep && !alone.keys.contains("incoming/a@1.tar"))
    for objects in raced {
      #expect(objects.keys.sorted() == alone.keys.sorted())
      // A receipt tells whether its worker was the second one.
      for (key, bytes) in objects where !key.hasPrefix("receipts/") { #expect(alone[key] == bytes, "\(key)") }
      let receipts = try objects.filter { $0.key.hasPrefix("receipts/") }.map { try JSONParser.parse($0.value).object }
      #expect(receipts.count == 1 && receipts[0]?["outcome"]?.string == "published")
    }
  }

  @Test func batchThatCannotBeEncodedIsQuarantinedOnce() throws {
    let (alone, raced) = try race(Array("no batch".utf8), keep: false)
    #expect(alone.keys.count { $0.hasPrefix("quarantine/") } == 2)
    for objects in raced { #expect(objects.keys.sorted() == alone.keys.sorted()) }
  }
}
