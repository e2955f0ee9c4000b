import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions
@testable import WorkQueues

/// Batches in an object store, and their names in a queue. The store is authoritative.
@Suite struct ObjectQueueTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let names = MemoryNames()

  init() throws { scratch = try ScratchDirectory() }

  /// Uploads an archive of a fixture, with a session of its own.
  private func upload(_ name: String, _ fixture: String = "single-frame") throws {
    let archive = scratch.path("archive.tar")
    _ = try Tool.output("tar", ["-cf", archive, "--sort=name", "-C", Fixture(fixture).path, "."])
    objects["incoming/" + name] = try DurableFile.contents(of: archive, limit: .max)
  }

  private func queue(
    maximumBytes: Int = 1 << 30, _ layout: StoreLayout = .plain
  ) throws -> (queue: ObjectQueue, encoder: BatchEncoder) {
    let (id, names) = (WorkerID(), names)
    let staging = try Staging(scratch: scratch.path("own"), worker: id)
    let store = ObjectStore(objects, name: "s3://test", staging: staging, layout: layout)
    return (
      ObjectQueue(
        names, objects, name: "s3://test", staging: staging, worker: id, maximumBytes: maximumBytes,
        hasReceipts: layout == .plain),
      BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
    )
  }

  /// A pack leaves no receipt: a batch that is gone was finished, and no failure counts against its name.
  @Test func nameOfAFinishedPackIsAcknowledged() throws {
    try upload("a.tar")
    _ = names.add(["a.tar"])
    let (queue, encoder) = try queue(.packed)
    let offer = try #require(try queue.waiting().first)
    let claim = try #require(try queue.claim(offer))
    guard case .batch(let batch) = try queue.fetch(claim) else { throw Tool.Failure("no batch") }
    let receipts = try encoder.publish(batch.path)
    // A reconciliation has listed the batch before, and adds its name again.
    let late = MemoryNames(beside: names)
    try queue.retire(batch.claim, receipts, keep: false)
    batch.discard()
    _ = late.add(["a.tar"])
    #expect(!objects.keys.contains { $0.hasPrefix("receipts/") || $0.hasPrefix("incoming/") })
    let repeated = try #require(try queue.waiting().first)
    let again = try #require(try queue.claim(repeated))
    guard case .alreadyFinished(.gone) = try queue.fetch(again) else { throw Tool.Failure("not finished") }
    #expect(names.count == 0 && names.deadLetters.isEmpty)
  }

  /// Runs a worker's loop until the queue is empty. Throws if the store fails.
  private func drain(maximumBytes: Int = 1 << 30, keep: Bool = false) throws {
    let (queue, encoder) = try queue(maximumBytes: maximumBytes)
    for claim in try queue.takeOver().claims {
      try work(try #require(try queue.begin(claim)), queue, encoder, keep: keep)
    }
    while let offer = try queue.waiting().first, let claim = try queue.claim(offer) {
      try work(claim, queue, encoder, keep: keep)
    }
  }

  private func work(_ claim: Claim, _ queue: ObjectQueue, _ encoder: BatchEncoder, keep: Bool) throws {
    var claim = claim
    do {
      guard case .batch(let batch) = try queue.fetch(claim) else { return }
      defer { batch.discard() }
      claim = batch.claim
      try queue.retire(claim, try encoder.publish(batch.path), keep: keep)
    } catch let bad as BadBatch {
      try queue.quarantine(claim, bad)
    }
  }

  /// Returns all objects except receipts, which record whether the batch was a duplicate.
  private func contents() -> [String: [UInt8]?] {
    Dictionary(uniqueKeysWithValues: objects.keys.filter { !$0.hasPrefix("receipts/") }.map { ($0, objects[$0]) })
  }

  private func keys(_ prefix: String) -> [String] {
    objects.keys.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
  }

  @Test func waitingBatchIsQueuedAgainAndEncodedOnce() throws {
    for number in 0..<7 { try upload("2026/11/s\(number)@1.tar") }
    for name in [".hidden", "s9@1.tar.tmp", "s9.part", "folder/"] { objects["incoming/" + name] = [1] }
    let batches = ObjectBatchRepository(objects, name: "s3://test")
    #expect(try batches.reconcile(with: names) == .init(owed: 7, queued: 7))
    #expect(try batches.reconcile(with: names) == .init(owed: 7, queued: 0))
    // The queue loses all its state.
    names.flush()
    #expect(try batches.reconcile(with: names) == .init(owed: 7, queued: 7))
    try drain()
    #expect(keys("incoming/") == [".hidden", "folder/", "s9.part", "s9@1.tar.tmp"])
    #expect(keys("receipts/").count == 7 && keys("quarantine/").isEmpty)
    #expect(keys("output/").filter { $0.hasSuffix("session.json") }.count == 7)
    #expect(try batches.reconcile(with: names) == .init())
    let receipt = try JSONParser.parse(try #require(objects["receipts/" + keys("receipts/")[0]]))
    #expect(receipt.object?["outcome"]?.string == "published" && receipt.object?["format"]?.string == "batch-receipt/1")
  }

  /// As if a proxy had answered with a page of its own and status 200.
  @Test func whatWasReadForABatchIsNotQuarantinedInItsPlace() throws {
    try upload("s1@1.tar")
    let batch = objects["incoming/s1@1.tar"]
    objects["incoming/s1@1.tar"] = Array("<html>try again later</html>".utf8)
    _ = names.add(["s1@1.tar"])
    let (queue, encoder) = try queue(maximumBytes: 1 << 30)
    let claim = try #require(try queue.claim(QueueEntry(name: nil)))
    guard case .batch(let page) = try queue.fetch(claim) else { return #expect(Bool(false), "not fetched") }
    objects["incoming/s1@1.tar"] = batch
    let bad = try #require(throws: BadBatch.self) { try encoder.publish(page.path) }
    let failure = #expect(throws: Failure.self) { try queue.quarantine(page.claim, bad) }
    #expect(failure?.kind == .environment && failure?.subject.hasSuffix("incoming/s1@1.tar") == true)
    #expect(keys("quarantine/").isEmpty && keys("receipts/").isEmpty && keys("incoming/") == ["s1@1.tar"])
    page.discard()
    let again = try queue.fail(page.claim)
    try work(again, queue, encoder, keep: false)
    #expect(keys("output/").contains { $0.hasSuffix("session.json") } && keys("incoming/").isEmpty)
  }

  @Test func storeWithoutConditionalWritesIsRefused() throws {
    try objects.requireConditions(tryingAt: "conditions/x", name: "s3://test")
    #expect(objects.keys.isEmpty)
    objects.isUnconditional = true
    #expect(throws: Failure.self) { try objects.requireConditions(tryingAt: "x", name: "s3://test") }
  }

  @Test func receiptOfARetriedBatchHasTheFinalOutcome() throws {
    try upload("a@1.tar")
    let batch = objects["incoming/a@1.tar"]
    _ = names.add(["a@1.tar"])
    try drain(maximumBytes: 100)
    #expect(names.deadLetters == ["a@1.tar"] && keys("receipts/").count == 1)
    objects["incoming/a@1.tar"] = batch
    for _ in 0..<2 {
      _ = names.add(["a@1.tar"])
      try drain()
      let receipt = try JSONParser.parse(try #require(objects["receipts/" + keys("receipts/")[0]]))
      #expect(receipt.object?["outcome"]?.string == "published")
    }
    #expect(names.deadLetters == ["a@1.tar"] && names.count == 0)
  }

  @Test func receiptOfAnotherBatchDoesNotCount() throws {
    objects["incoming/a/b"] = [1]
    _ = names.add(["a/b"])
    try drain()
    _ = names.add(["a"])
    #expect(throws: Failure.self) { try drain() }
    #expect(names.deadLetters == ["a/b"])
  }

  @Test func batchNamedLikeAReasonIsQuarantinedSeparately() throws {
    for name in ["x", "x.reason.json"] {
      objects["incoming/" + name] = Array(name.utf8)
      _ = names.add([name])
      try drain()
    }
    let kept = keys("quarantine/")
    #expect(kept.count == 4 && objects["quarantine/x"] == Array("x".utf8))
    let reason = try JSONParser.parse(try #require(objects["quarantine/x.reason.json"])).object
    #expect(reason?["object"]?.string == "x")
  }

  @Test func batchThatLeavesQuarantineIsRetried() throws {
    let bad = Array("no batch".utf8)
    objects["incoming/bad"] = bad
    let batches = ObjectBatchRepository(objects, name: "s3://test")
    for _ in 0..<2 {
      #expect(try batches.reconcile(with: names) == .init(owed: 1, queued: 1))
      try drain()
      #expect(keys("quarantine/") == ["bad", "bad.reason.json"] && keys("incoming/").isEmpty)
      objects["incoming/bad"] = bad
    }
  }

  @Test func missingBatchWithReceiptIsAcknowledged() throws {
    try upload("a@1.tar")
    #expect(names.add(["a@1.tar"]) == 1)
    try drain()
    #expect(names.add(["a@1.tar", "never"]) == 2)
    #expect(throws: Failure.self) { try drain() }
    #expect(names.count == 1)
  }

  @Test func batchIsRetriedAfterAKillBeforeAnyWrite() throws {
    try upload("a@1.tar")
    let batch = objects["incoming/a@1.tar"]
    objects.fail(from: nil)
    _ = names.add(["a@1.tar"])
    try drain(keep: true)
    let after = (objects.keys, contents())
    #expect(keys("done/") == ["a@1.tar"])
    for write in 0..<objects.puts {
      for key in objects.keys { objects[key] = nil }
      objects["incoming/a@1.tar"] = batch
      names.flush()
      _ = names.add(["a@1.tar"])
      objects.fail(from: write)
      #expect {
        try drain(keep: true)
      } throws: {
        MemoryObjects.isFailure($0)
      }
      objects.fail(from: nil)
      names.expire()
      try drain(keep: true)
      #expect(objects.keys == after.0 && contents() == after.1)
      #expect(names.count == 0)
    }
  }

  @Test func batchThatCannotBeEncodedIsQuarantinedOnce() throws {
    let bad = Array("no batch".utf8)
    for write in 0...2 {
      for key in objects.keys { objects[key] = nil }
      names.flush()
      objects["incoming/bad"] = bad
      _ = names.add(["bad"])
      if write < 2 {
        objects.fail(from: write)
        #expect(throws: MemoryObjects.Refused.self) { try drain() }
        objects.fail(from: nil)
        names.expire()
      }
      try drain()
      #expect(keys("quarantine/") == ["bad", "bad.reason.json"] && objects["quarantine/bad"] == bad)
      #expect(names.deadLetters == ["bad"] && keys("incoming/").isEmpty && names.count == 0)
    }
    // The queue never received the acknowledgement.
    _ = names.add(["bad"])
    try drain()
    #expect(names.deadLetters == ["bad", "bad"] && names.count == 0)
    // A second batch of the same name gets a number.
    objects["incoming/bad"] = bad + bad
    _ = names.add(["bad"])
    try drain()
    #expect(keys("quarantine/") == ["bad", "bad.2", "bad.2.reason.json", "bad.reason.json"])
    #expect(try ObjectBatchRepository(objects, name: "s3://test").reconcile(with: names) == .init())
  }

  @Test(arguments: ["a/../b", "a//b", "./a", String(repeating: "x", count: 256)]) func invalidNameIsDeadLettered(
    name: String
  ) throws {
    objects["incoming/" + name] = [1]
    _ = names.add([name])
    try drain()
    // The worker does not touch the objects that such a name would reach.
    #expect(names.deadLetters == [name] && keys("incoming/") == [name] && keys("quarantine/").count == 1)
    #expect(try ObjectBatchRepository(objects, name: "s3://test").reconcile(with: names) == .init(misnamed: 1))
  }

  @Test func batchThatIsTooLargeGoesToQuarantine() throws {
    objects["incoming/large"] = [UInt8](repeating: 7, count: 2_000)
    _ = names.add(["large"])
    try drain(maximumBytes: 1_999)
    #expect(keys("quarantine/") == ["large", "large.reason.json"] && keys("incoming/").isEmpty)
  }

  @Test func objectReplacedDuringEncodingIsKept() throws {
    try upload("a@1.tar")
    _ = names.add(["a@1.tar"])
    objects.before { [objects] key in if key.hasPrefix("receipts/") { objects["incoming/a@1.tar"] = [1, 2, 3] } }
    try drain()
    objects.before(nil)
    #expect(objects["incoming/a@1.tar"] == [1, 2, 3])
    #expect(try ObjectBatchRepository(objects, name: "s3://test").reconcile(with: names) == .init(owed: 1, queued: 1))
    try drain()
    #expect(keys("quarantine/") == ["a@1.tar", "a@1.tar.reason.json"])
  }

  @Test func enqueuedFramesBecomeABatchOfTheStore() throws {
    let frames = try FileManager.default.contentsOfDirectory(atPath: Fixture("jittered").path).filter {
      $0.hasSuffix(".jpg")
    }.map { Fixture("jittered").path + "/" + $0 }
    let batches = ObjectBatchRepository(objects, name: "s3://test")
    let first = frames.map { URL(fileURLWithPath: $0).deletingPathExtension().lastPathComponent }.min() ?? ""
    func enqueue(
      _ frames: [String], session: String = "phone", _ limits: Limits = Limits()
    ) throws -> [String] {
      var shown: [String] = []
      try StoreReceiver(batches, names).enqueue(frames, InputOptions(session: session), limits: limits) {
        shown.append($0)
      }
      return shown
    }
    let name = "phone@\(first).tar"
    #expect(try enqueue(frames) == [name])
    // The same frames are the same batch. Other frames under that name are another batch.
    #expect(try enqueue(frames.reversed()) == [name])
    #expect(try enqueue(frames.dropLast()) == ["phone@\(first).2.tar"])
    objects["incoming/phone@\(first).2.tar"] = nil
    names.flush()
    _ = names.add([name])
    try drain()
    let receipt = try JSONParser.parse(try #require(objects["receipts/" + keys("receipts/")[0]]))
    #expect(receipt.object?["frames"]?.integer == Int64(frames.count))
    // An archive has at most so many bytes.
    var limits = Limits()
    limits.unpackedBytes = limits.jsonBytes + (1 << 16)
    let parts = try enqueue(frames, session: "tablet", limits)
    #expect(parts.count > 1 && Set(parts).count == parts.count)
    for part in parts { #expect(objects["incoming/" + part]?.count ?? .max < limits.unpackedBytes) }
    try drain()
    #expect(keys("quarantine/").isEmpty)
    // Compare the files as stock tar unpacks them.
    let archive = scratch.path("one.tar")
    let long = String(repeating: "é", count: 120)
    try Data(Archive.tar([("a", [1, 2, 3]), (long, [UInt8](repeating: 9, count: 70_000))]))
      .write(to: URL(fileURLWithPath: archive))
    let listed = try Tool.output("tar", ["--utc", "-tvf", archive, "--quoting-style=literal"])
    #expect(String(decoding: listed, as: UTF8.self).contains("70000 1970-01-01 00:00 \(long)"))
  }
}
