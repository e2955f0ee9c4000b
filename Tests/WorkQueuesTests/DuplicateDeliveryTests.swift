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
  ///
  /// - Parameter refusal: the reason why this worker cannot encode it; nil if it can.
  private func work(_ objects: any ObjectClient, keep: Bool, refusal: BadBatch? = nil) throws {
    let names = MemoryNames()
    _ = names.add(["a@1.tar"])
    let id = WorkerID()
    let staging = try Staging(scratch: scratch.path("\(id)"), worker: id)
    let queue = ObjectQueue(
      names, objects, name: "s3://test", staging: staging, worker: id, maximumBytes: 1 << 30)
    let encoder = BatchEncoder(
      BatchEncoder.Options(), publishingTo: ObjectStore(objects, name: "s3://test", staging: staging),
      keyFrames: KeyFrameCache())
    var claim = try #require(names.next())
    if case .batch(let fetched) = try queue.fetch(claim) {
      defer { fetched.discard() }
      claim = fetched.claim
      do {
        if let refusal { throw refusal }
        try queue.retire(claim, try encoder.publish(fetched.path), keep: keep)
      } catch let bad as BadBatch {
        do { try queue.quarantine(claim, bad) } catch is Cancelled {}
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

  @Test func batchThatAnotherWorkerPublishesIsNotQuarantined() throws {
    let reason = BadBatch("read", "a@1.tar", "no memory for it", advice: "use another machine")
    var (number, withoutTrace) = (0, 0)
    while true {
      let objects = MemoryObjects()
      objects["incoming/a@1.tar"] = batch
      let failure = Mutex<String?>(nil)
      let first = StoppingObjects(objects) { [number] request in
        guard request == number else { return }
        do { try work(objects, keep: false) } catch { failure.withLock { $0 = "\(error)" } }
      }
      try work(first, keep: false, refusal: reason)
      #expect(failure.withLock { $0 } == nil, "before request \(number)")
      let receipts = try objects.keys.filter { $0.hasPrefix("receipts/") }.map {
        try JSONParser.parse(objects[$0] ?? []).object?["outcome"]?.string
      }
      let isPublished = objects.keys.contains { $0.hasPrefix("output/") }
      let kept = objects.keys.filter { $0.hasPrefix("quarantine/") }
      #expect(receipts == [isPublished ? "published" : "quarantined"], "before request \(number)")
      // A reason lies beside the bytes, or there is none.
      #expect(kept.count == 2 || isPublished && kept.isEmpty, "before request \(number): \(kept)")
      #expect(!objects.keys.contains("incoming/a@1.tar"))
      withoutTrace += kept.isEmpty ? 1 : 0
      guard first.requests > number else { break }
      number += 1
    }
    #expect(withoutTrace > 2)
  }

  @Test func batchThatCannotBeEncodedIsQuarantinedOnce() throws {
    let (alone, raced) = try race(Array("no batch".utf8), keep: false)
    #expect(alone.keys.count { $0.hasPrefix("quarantine/") } == 2)
    for objects in raced { #expect(objects.keys.sorted() == alone.keys.sorted()) }
  }
}
