import Batching
import FileSystem
import Foundation
import FrameBatches
import TestSupport
import Testing
import WorkQueues

@testable import Ingesting

/// Batches and pictures that go into an object store and a queue of names.
@Suite struct ObjectIntakeTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let names = MemoryNames()
  private let batches: ObjectBatchRepository

  init() throws {
    scratch = try ScratchDirectory()
    batches = ObjectBatchRepository(objects, name: "s3://test/")
  }

  private func take(_ text: String, as name: String = "one.tar") throws -> IntakeOutcome {
    let intake = ObjectIntake(batches, names) { [scratch] in scratch.path }
    let file = try scratch.file("draft", Array(text.utf8))
    return try intake.take(file, as: DeliveredName(name, of: nil), digest: SHA256.hex(of: Array(text.utf8)))
  }

  @Test func batchIsStoredQueuedAndKnown() throws {
    #expect(try take("a") == .taken && take("a") == .known && take("b") == .conflict)
    #expect(objects["incoming/one.tar"] == Array("a".utf8))
    #expect(names.waitingCount() == 1)
    let intake = ObjectIntake(batches, names) { [scratch] in scratch.path }
    #expect(try intake.receipt(of: DeliveredName("one.tar", of: nil))?.digest == SHA256.hex(of: Array("a".utf8)))
    #expect(try intake.receipt(of: DeliveredName("two", of: nil)) == nil && intake.waitingCounts().all == 1)
    // Published and gone.
    objects["incoming/one.tar"] = nil
    #expect(try take("a") == .known && take("b") == .conflict && objects["incoming/one.tar"] == nil)
  }

  @Test func entryOfTheQueueHasTheTraceOfTheFirstRequest() throws {
    let step = TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    let other = TraceParent("00-aaaa2f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    let intake = ObjectIntake(batches, names) { [scratch] in scratch.path }
    let digest = SHA256.hex(of: Array("a".utf8))
    for (trace, outcome) in [(step, IntakeOutcome.taken), (other, .known)] {
      let file = try scratch.file("draft", Array("a".utf8))
      #expect(
        try intake.take(file, as: DeliveredName("one.tar", of: nil), digest: digest, traceParent: trace) == outcome)
    }
    #expect(try #require(names.next()).traceParent == step)
  }

  @Test func objectOfAnotherProducerIsAConflict() throws {
    objects["incoming/one.tar"] = Array("other".utf8)
    #expect(try take("a") == .conflict)
    objects["incoming/one.tar"] = nil
    // The name is free again.
    #expect(try take("b") == .taken)
  }

  /// Each write fails once, as if the worker had died; the client repeats, and only its content gets the name.
  @Test(arguments: 0...2) func requestIsRepeatedAfterAFailureOfAnyWrite(write: Int) throws {
    objects.fail(from: write)
    #expect(throws: MemoryObjects.Refused.self) { try take("a") }
    objects.fail(from: nil)
    if write > 0 { #expect(try take("b") == .conflict) }
    #expect(try take("a") == .taken && take("a") == .known)
    #expect(objects["incoming/one.tar"] == Array("a".utf8) && names.waitingCount() == 1)
  }

  @Test(arguments: 0...2) func lostAnswersAreNoConflicts(write: Int) throws {
    objects.loseAnswer(of: write)
    #expect(try take("a") == .taken && take("a") == .known && names.waitingCount() == 1)
  }

  @Test func batchesOfPicturesAreForwardedOnce() throws {
    let spool = try Spool(creating: scratch.path("state"))
    let batch = spool.incoming + "/film@1767859512340.0000000000000"
    try FileManager.default.createDirectory(atPath: batch, withIntermediateDirectories: true)
    try Data(Fixture("exact-1fps").bytes("0000.jpg")).write(to: URL(fileURLWithPath: batch + "/1767859512340.jpg"))
    try Data(#"{"version":1,"session":"film"}"#.utf8).write(to: URL(fileURLWithPath: batch + "/batch.json"))
    let forwarder = BatchForwarder(spool, to: StoreReceiver(batches, names), limits: Limits())
    objects.fail(from: 0)
    #expect(throws: MemoryObjects.Refused.self) { try forwarder.run() }
    #expect(DurableFile.exists(batch))
    objects.fail(from: nil)
    // Of a process that died while it removed a batch.
    try FileManager.default.createDirectory(atPath: spool.trash + "/left/over", withIntermediateDirectories: true)
    try forwarder.run()
    try forwarder.run()
    #expect(try Directory.entries(ifAt: spool.trash).isEmpty)
    #expect(names.waitingCount() == 1 && !DurableFile.exists(batch))
    let name = "incoming/film@1767859512340.0000000000000.tar"
    let tar = try scratch.file("film.tar", #require(objects[name]))
    #expect(try BatchReader(reading: tar).batch.frames.map(\.timeMs) == [1_767_859_512_340])
  }
}
