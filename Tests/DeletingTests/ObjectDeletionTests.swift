import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Deleting
@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions
@testable import WorkQueues

/// Deletion of sessions in an object store, among publishers and crashes at every request.
@Suite struct ObjectDeletionTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let session: GeneratedSession
  private let id: SessionID
  private let pictures: PictureBytes

  init() throws {
    scratch = try ScratchDirectory()
    session = try GeneratedSession(seed: 7, in: scratch)
    id = try #require(SessionID(session.name))
    pictures = try PictureBytes(in: session.batches)
  }

  private func store(_ client: any ObjectClient) throws -> ObjectStore {
    let staging = try Staging(scratch: scratch.path("own"), worker: WorkerID())
    return ObjectStore(client, name: "s3://test/", staging: staging, .hls)
  }

  private func encoder(_ client: any ObjectClient) throws -> BatchEncoder {
    BatchEncoder(BatchEncoder.Options(), publishingTo: try store(client), keyFrames: KeyFrameCache())
  }

  private func place(_ client: any ObjectClient) throws -> StoreDeletionPlace {
    StoreDeletionPlace(
      client, name: "s3://test/", staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()),
      BatchIdentifier(unpacker: nil))
  }

  @discardableResult
  private func delete(_ client: any ObjectClient) throws -> Deletion {
    let run = try place(client).delete([Tombstone(id, deletedAtMs: 1_767_859_512_340, reason: "asked for")])
    try run.end.get()
    return run
  }

  private func archive(_ batch: String) throws -> [UInt8] {
    let archive = scratch.path("archive.tar")
    _ = try Tool.output("tar", ["-cf", archive, "--sort=name", "-C", batch, "."])
    return try DurableFile.contents(of: archive, limit: .max) ?? []
  }

  private static let reason = Array(#"{"format":"quarantine-reason/1","object":"NAME"}"#.utf8)

  /// Publishes the session, and adds batches of it and of another session in all states.
  private func fill() throws {
    for batch in session.batches.dropLast() { _ = try encoder(objects).publish(batch) }
    let (own, other) = (try archive(session.batches[0]), try archive(Fixture("colour-bars").path))
    for (key, bytes) in [
      "incoming/own.tar": own, "incoming/colour-bars.tar": other, "done/day/own.tar": own, "done/other.tar": other,
      "quarantine/own.tar": own, "quarantine/\(session.name)@9.tar.2": Array(own.prefix(5_000)),
      "quarantine/unknown": [1, 2, 3], "quarantine/unknown.reason.json": Self.reason,
    ] { objects[key] = bytes }
    objects["quarantine/own.tar.reason.json"] = Self.reason
    objects["quarantine/\(session.name)@9.tar.2.reason.json"] = Array(
      String(decoding: Self.reason, as: UTF8.self).replacing("NAME", with: "\(session.name)@9.tar").utf8)
    objects["index/\(id)/0000000000000-0000000000000000.json"] = [1]
    objects["output/\(id)2/segment-1767859512340.mp4"] = [1]
  }

  private var foreign: [String] {
    [
      "done/other.tar", "incoming/colour-bars.tar", "output/\(id)2/segment-1767859512340.mp4", "quarantine/unknown",
      "quarantine/unknown.reason.json",
    ]
  }

  private func copies(in objects: MemoryObjects) -> [String] {
    objects.keys.filter { pictures.isPart(of: Data(objects[$0] ?? [])) }
  }

  /// Expects only the tombstone of the session, and the objects of others.
  private func expectGone(_ objects: MemoryObjects) throws {
    #expect(copies(in: objects).isEmpty, "\(copies(in: objects))")
    let left = objects.keys.filter { !$0.hasPrefix("receipts/") }
    #expect(left == (foreign.filter { objects[$0] != nil } + ["index/\(id)/head.json"]).sorted())
    #expect(try ObjectDeletion(objects, name: "").tombstone(of: id) != nil)
  }

  @Test func deletedSessionLeavesATombstoneAndNothingElse() throws {
    try fill()
    let segments = objects.keys.count { $0.hasPrefix("output/\(id)/segment-") && $0.hasSuffix(".mp4") }
    let run = try delete(objects)
    let report = try #require(run.reports[id])
    #expect(run.failures.isEmpty && report.session.segments == segments && report.session.files.files > 2 * segments)
    #expect(
      report.batches == [
        "incoming/own.tar", "done/day/own.tar", "quarantine/\(id)@9.tar.2", "quarantine/own.tar",
      ])
    #expect(run.remains.unidentified == ["quarantine/unknown"])
    try expectGone(objects)
    #expect(foreign.allSatisfy { objects[$0] != nil })
    // A worker that is told of the removed batch finds its receipt.
    let receipts = objects.keys.filter { $0.hasPrefix("receipts/own.tar/") }
    #expect(receipts.count == 1 && String(decoding: objects[receipts[0]] ?? [], as: UTF8.self).contains("refused"))
    let again = try delete(objects)
    #expect(again.reports[id]?.files.files == 0 && again.reports[id]?.tombstone == report.tombstone)
    #expect(try encoder(objects).publish(session.batches[1])[0].refusal != nil)
    try expectGone(objects)
  }

  @Test func dryRunShowsWhatADeletionRemovesAndWritesNothing() throws {
    try fill()
    let before = Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, objects[$0]) })
    let shown = try place(objects).delete([Tombstone(id, deletedAtMs: 1, reason: "")], isDryRun: true)
    try shown.end.get()
    #expect(objects.keys == before.keys.sorted() && objects.keys.allSatisfy { objects[$0] == before[$0] })
    let run = try delete(objects)
    let (preview, report) = (try #require(shown.reports[id]), try #require(run.reports[id]))
    #expect(preview.session.segments == report.session.segments && preview.batches == report.batches)
    // A removal does not count the views that it removes first, so that readers find no session.
    #expect(preview.files.files >= report.files.files && preview.files.bytes >= report.files.bytes)
    #expect(preview.files.files > 10 && shown.remains == run.remains && shown.failures.isEmpty)
  }

  /// Keys may have folders, and an object in quarantine may have another name than its batch had.
  @Test func patternFindsTheSessionInNamesWithFolders() throws {
    _ = try scratch.directory("plain")
    try scratch.file("plain/1767859512340.jpg", Fixture("exact-1fps").bytes("0000.jpg"))
    let plain = try archive(scratch.path("plain"))
    for name in ["lobby/3", "desk/3"] {
      objects["incoming/\(name).tar"] = plain
      objects["done/\(name).tar"] = plain
      objects["quarantine/\(name).tar.2"] = plain
      objects["quarantine/\(name).tar.2.reason.json"] = Array(
        String(decoding: Self.reason, as: UTF8.self).replacing("NAME", with: "\(name).tar").utf8)
    }
    var options = InputOptions()
    options.sessionFrom = try SessionPattern("{session}/{part}")
    let place = StoreDeletionPlace(
      objects, name: "s3://test/", staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()),
      BatchIdentifier(options: options, unpacker: nil))
    let lobby = try #require(SessionID("lobby"))
    let run = place.delete([Tombstone(lobby, deletedAtMs: 1, reason: "")])
    try run.end.get()
    #expect(
      run.reports[lobby]?.batches == ["incoming/lobby/3.tar", "done/lobby/3.tar", "quarantine/lobby/3.tar.2"])
    #expect(run.failures.isEmpty && run.remains == RemainingBatches())
    #expect(!objects.keys.contains { $0.contains("lobby/3") && !$0.hasPrefix("receipts/") })
    #expect(objects.keys.count { $0.contains("desk/3") } == 4)
  }

  @Test func crashBeforeAnyRequestLeavesTheSessionWholeOrGone() throws {
    try fill()
    let before = Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, objects[$0]) })
    let later = session.batches[session.batches.count - 1]
    let all = StoppingObjects(copy(before))
    try delete(all)
    #expect(all.requests > 40)
    for number in stride(from: 0, to: all.requests, by: Extent.of(3, full: 1)) {
      let own = copy(before)
      let run = try? delete(StoppingObjects(own, after: number))
      #expect(run.map { $0.failures.contains { $0 is StoppingObjects.Stopped } } ?? true)
      let isDeleted = try ObjectDeletion(own, name: "").tombstone(of: id) != nil
      if isDeleted {
        // A batch that comes later stays out, and the worker removes the rest of the published files.
        #expect(try encoder(own).publish(later)[0].refusal != nil)
        #expect(own.keys.filter { $0.hasPrefix("output/\(id)/") } == [])
      } else {
        #expect(own.keys == before.keys.sorted() && own.keys.allSatisfy { own[$0] == before[$0] })
      }
      let second = try delete(own)
      #expect(second.failures.isEmpty, "\(second.failures)")
      try expectGone(own)
    }
  }

  private func copy(_ all: [String: [UInt8]?]) -> MemoryObjects {
    let copy = MemoryObjects()
    for (key, bytes) in all { copy[key] = bytes }
    return copy
  }

  /// The deletion happens before any request of a publisher. Then the publisher ends, or dies before a later request; the next worker
  /// gets its batch.
  @Test func deletionBeforeAnyRequestOfAPublisherWins() throws {
    let batch = session.batches[1]
    _ = try encoder(objects).publish(session.batches[0])
    let before = Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, objects[$0]) })
    let all = StoppingObjects(copy(before))
    _ = try encoder(all).publish(batch)
    for number in 0..<all.requests {
      for death in [Int.max, number + 1, number + 2, number + 4, number + 8] {
        let own = copy(before)
        let publisher = StoppingObjects(own, after: death) { request in
          if request == number { #expect(throws: Never.self) { try self.delete(own) } }
        }
        let receipts = try? encoder(publisher).publish(batch)
        #expect(receipts.map { $0[0].refusal != nil } ?? (death < .max), "request \(number), death \(death)")
        if death < .max { #expect(try encoder(own).publish(batch)[0].refusal != nil) }
        try expectGone(own)
      }
    }
  }

  /// The session is deleted and allowed again while a publisher works; then another worker publishes a batch that the publisher has
  /// seen. Every listed segment is there.
  @Test(arguments: [false, true]) func sessionAllowedAgainIsNotTakenForTheOldOne(isNew: Bool) throws {
    if !isNew { _ = try encoder(objects).publish(session.batches[0]) }
    let before = Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, objects[$0]) })
    let all = StoppingObjects(copy(before))
    _ = try encoder(all).publish(session.batches[1])
    for number in 0..<all.requests {
      let own = copy(before)
      let publisher = StoppingObjects(own) { request in
        guard request == number else { return }
        #expect(throws: Never.self) {
          try self.delete(own)
          #expect(try self.place(own).removeTombstone(of: self.id))
          if !isNew { #expect(try !self.encoder(own).publish(self.session.batches[0])[0].duplicate) }
        }
      }
      // After a failure the worker tries again.
      if (try? encoder(publisher).publish(session.batches[1])) == nil {
        _ = try encoder(own).publish(session.batches[1])
      }
      let published = try ObjectSession(id: id, objects: own, name: "").published()
      for entry in published?.index.entries ?? [] {
        for file in [SegmentName.video(entry.startMs), SegmentName.manifest(entry.startMs)] {
          #expect(own["output/\(id)/\(file)"] != nil, "request \(number): \(file)")
        }
      }
    }
  }

  @Test func unfinishedRemovalIsNotAllowedAgain() throws {
    _ = try encoder(objects).publish(session.batches[0])
    _ = try ObjectDeletion(objects, name: "s3://test/").add(Tombstone(id, deletedAtMs: 1, reason: ""))
    #expect(throws: BadSession.self) { try place(objects).removeTombstone(of: id) }
    try delete(objects)
    #expect(try place(objects).removeTombstone(of: id))
    #expect(try !place(objects).removeTombstone(of: id))
    let receipt = try encoder(objects).publish(session.batches[0])[0]
    #expect(receipt.refusal == nil && !receipt.duplicate && receipt.segments > 0)
    #expect(try encoder(objects).publish(session.batches[0])[0].duplicate)
    // A later deletion finds the session of the new generation.
    #expect(try delete(objects).reports[id]?.session.segments == receipt.segments)
    try expectGone(objects)
  }

  @Test func damagedHeadCanBeDeleted() throws {
    _ = try encoder(objects).publish(session.batches[0])
    objects["index/\(id)/head.json"] = Array("{".utf8)
    #expect(throws: DamagedOutput.self) { try encoder(objects).publish(session.batches[0]) }
    try delete(objects)
    try expectGone(objects)
  }

  @Test func deferredViewsAndMarkersOfADeletedSessionVanish() throws {
    let store = try store(objects)
    let encoder = BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
    _ = try encoder.publish(session.batches[0])
    objects["behind/\(id)"] = [1]
    try delete(objects)
    #expect(store.flushPending(all: true).isEmpty)
    try expectGone(objects)
  }

  /// A worker with `--keep-batches`, a good batch and a broken one of the session.
  @Test func workerKeepsNoBatchOfADeletedSession() throws {
    try delete(objects)
    let good = try archive(session.batches[0])
    objects["incoming/own.tar"] = good
    objects["incoming/\(id)@2.tar"] = Array(good.prefix(5_000))
    objects["incoming/other.tar"] = Array(good.prefix(5_000))
    let names = MemoryNames()
    _ = names.add(["own.tar", "\(id)@2.tar", "other.tar"])
    let (worker, store) = (WorkerID(), try store(objects))
    let queue = ObjectQueue(
      names, objects, name: "s3://test/", staging: store.staging, worker: worker, maximumBytes: 1 << 30)
    let own = Worker(
      worker, queue: queue, store: store, options: BatchEncoder.Options(),
      WorkerRules(keepsBatches: true, maxTimeS: 60),
      reports: WorkerReports(to: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })))
    while let entry = try queue.waiting().first {
      _ = own.perform(.waiting(entry), with: own.makeEncoder(), stop: .never)
    }
    #expect(own.counters.refusedBatches == 2 && own.counters.quarantined == 1 && own.counters.published == 0)
    #expect(names.count == 0)
    let left = objects.keys.filter { !$0.hasPrefix("receipts/") }
    #expect(left == ["index/\(id)/head.json", "quarantine/other.tar", "quarantine/other.tar.reason.json"])
    #expect(try objects.list("receipts/", after: nil).count == 3)
  }
}
