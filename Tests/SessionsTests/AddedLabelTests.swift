import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import Films
@testable import FrameBatches
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions

/// Labels for a session that is published, in a directory and in a store: a batch without pictures.
@Suite struct AddedLabelTests {
  private let package: GrowingPackage
  private let directory: SessionDirectory
  private let id: SessionID

  init() throws {
    package = try GrowingPackage()
    id = try package.session
    directory = SessionDirectory(output: package.output, session: id)
  }

  private var objects: MemoryObjects { package.objects }
  private func start(_ second: Int) -> Int64 { GrowingPackage.startMs + Int64(second) * 1_000 }

  private func label(_ second: Double, _ text: String, _ kind: String = "step") -> Label {
    Label(timeMs: GrowingPackage.startMs + Int64(second * 1_000), kind: kind, text: text)!
  }

  private func addition(_ labels: [Label], to session: String = "walk", named name: String = "labels") -> LabelAddition
  {
    var list = LabelList()
    for label in labels { list.append(label) }
    return LabelAddition(list, to: SessionID(session)!, name: name)
  }

  private func directoryStore(_ views: ViewKinds = []) throws -> DirectoryStore {
    DirectoryStore(staging: try package.staging(), index: SessionViews(views))
  }

  /// Publishes a batch in both places.
  private func publish(_ seconds: Range<Int>) throws {
    let batch = try package.batch(seconds)
    let encoder = BatchEncoder(
      BatchEncoder.Options(), publishingTo: try directoryStore(), keyFrames: KeyFrameCache())
    _ = try encoder.publish(batch)
    _ = try package.encoder(package.store(nil)).publish(batch)
  }

  /// Adds labels in both places.
  private func add(_ labels: [Label]) throws -> [Int?] {
    [
      try directoryStore().add(addition(labels), cancellation: .never).labels,
      try package.store(nil).add(addition(labels), cancellation: .never).labels,
    ]
  }

  private func names(_ path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".labels.json") }.sorted()
  }

  /// Returns the texts of all labels of a session's directory, by the seconds of their segments.
  private func texts(_ directory: SessionDirectory) throws -> [Int: [String]] {
    try directory.publishedStarts().reduce(into: [:]) { all, startMs in
      let labels = SegmentLabels.labels(in: try directory.soundManifest(startMs).json)
      if !labels.isEmpty { all[Int(startMs - GrowingPackage.startMs) / 1_000] = labels.map(\.text) }
    }
  }

  /// Returns a copy of the stored session.
  private func copy() throws -> SessionDirectory {
    let path = package.scratch.path("copy-\(UUID().uuidString)")
    try DurableFile.makeDirectories(path)
    let copy = try StoredSession(
      id, of: StoredSessions(objects, name: "s3://test/"), in: path, part: .whole
    ) { _, _ in }
    #expect(copy.path == DurableFile.resolved(path) + "/walk")
    return SessionDirectory(output: path, session: id)
  }

  @Test func eachSegmentGetsTheLabelsOfItsTime() throws {
    try publish(0..<20)
    let labels = [
      label(-3, "before"), label(0.5, "a"), label(4.999, "b"), label(5, "c"), label(17, "d"), label(900, "behind"),
    ]
    #expect(try add(labels) == [6, 6] && add(labels) == [0, 0] && add([label(5, "c"), label(6, "e")]) == [1, 1])
    let wanted = [0: ["before", "a", "b"], 5: ["c", "e"], 15: ["d", "behind"]]
    let copy = try copy()
    #expect(try texts(directory) == wanted && texts(copy) == wanted)
    #expect(try names(directory.path) == names(copy.path))
    for name in try names(directory.path) {
      #expect(try directory.bytes(of: name, limit: 1 << 20) == copy.bytes(of: name, limit: 1 << 20))
    }
    #expect(try Verification.report(on: directory.path).problems == [])
  }

  @Test func labelsOfAManifestAreNotAddedAgain() throws {
    try publish(0..<10)
    let labels = [label(1, "same"), label(1, "same"), label(1, "same", "error")]
    #expect(try add(labels) == [2, 2] && texts(directory) == [0: ["same", "same"]])
  }

  /// A label may come before the pictures of its time. Then it moves to their segment.
  @Test func labelsThatCameEarlyMoveToTheirPictures() throws {
    try publish(0..<10)
    _ = try add([label(3, "now"), label(12, "soon"), label(21, "later")])
    #expect(try texts(directory) == [0: ["now"], 5: ["soon", "later"]])
    try publish(10..<20)
    #expect(try texts(directory) == [0: ["now"], 10: ["soon"], 15: ["later"]] && texts(copy()) == texts(directory))
    try publish(20..<30)
    #expect(try texts(directory) == [0: ["now"], 10: ["soon"], 20: ["later"]] && texts(copy()) == texts(directory))
    #expect(try names(directory.path).count == 3 && objects.keys.count { $0.hasSuffix(".labels.json") } == 3)
  }

  @Test func sessionThatIsNotThereIsNoSession() throws {
    for store: any ArtifactStore in [try directoryStore(), try package.store(nil)] {
      #expect(throws: SessionUnpublished.self) { try store.add(addition([label(1, "x")]), cancellation: .never) }
    }
    #expect(!FileManager.default.fileExists(atPath: directory.path) && objects.keys.isEmpty)
    try publish(0..<10)
    _ = try ObjectDeletion(objects, name: "s3://test/").add(Tombstone(id, deletedAtMs: 1, reason: "x"))
    #expect(throws: SessionDeleted.self) {
      try package.store(nil).add(addition([label(1, "x")]), cancellation: .never)
    }
    #expect(!objects.keys.contains { $0.hasSuffix(".labels.json") })
  }

  /// A store that fails before any of the requests: a second run adds what is missing, and readers see each label once.
  @Test func secondRunAddsWhatAFailureHasLeftOut() throws {
    try publish(0..<20)
    let labels = [label(1, "a"), label(6, "b"), label(11, "c"), label(16, "d")]
    var requests = 0
    while true {
      for key in objects.keys where key.hasSuffix(".labels.json") { try objects.delete(key, nil) }
      let client = StoppingObjects(objects, after: requests)
      let store = ObjectStore(client, name: "s3://test/", staging: try package.staging())
      let first = try? store.add(addition(labels), cancellation: .never).labels
      _ = try package.store(nil).add(addition(labels), cancellation: .never)
      #expect(try texts(copy()) == [0: ["a"], 5: ["b"], 10: ["c"], 15: ["d"]], "after \(requests) requests")
      if first == 4 { break }
      requests += 1
    }
    #expect(requests > 8)
  }

  @Test func limitsOfASegmentAreThoseOfABatch() throws {
    try publish(0..<10)
    let labels = (0..<9_990).map { label(Double($0) / 3_000, "\($0)") }
    #expect(try add(labels) == [9_990, 9_990])
    let more = (0..<30).map { label(4, "more \($0)") }
    let receipt = try directoryStore().add(addition(more), cancellation: .never)
    #expect(receipt.labels == 10 && receipt.warnings.contains { $0.hasPrefix("20 labels beyond the limits") })
  }

  @Test func damagedFileIsReportedAndNotShown() throws {
    try publish(0..<10)
    _ = try add([label(1, "a"), label(6, "b")])
    let file = directory.path + "/" + SegmentName.labels(start(0))
    try Data("{}".utf8).write(to: URL(fileURLWithPath: file))
    #expect(try texts(directory) == [5: ["b"]])
    #expect(try Verification.report(on: directory.path).problems.map(\.file) == [SegmentName.labels(start(0))])
    #expect(try add([label(1, "a")])[0] == 1 && Verification.report(on: directory.path).problems == [])
  }

  @Test func removedSegmentsTakeTheirLabels() throws {
    try publish(0..<20)
    _ = try add([label(1, "a"), label(16, "b")])
    try package.dateNewSegments()
    _ = RollingRetention(
      RetentionLimits(ageMs: 12_000), output: package.output, views: SessionViews(),
      temporary: { package.output + "/.temporary" }
    ).run(nowMs: start(20))
    #expect(try names(directory.path) == [SegmentName.labels(start(15))])
    let receipt = try directoryStore().add(addition([label(1, "a"), label(17, "c")]), cancellation: .never)
    #expect(receipt.labels == 1 && receipt.warnings == ["1 label of removed time: left out"])
    #expect(try texts(directory) == [15: ["b", "c"]])
  }

  /// Views do not have them, and stay as they are: the next batch extends them.
  @Test func viewsAreExtendedBehindThem() throws {
    let store = try directoryStore(.hls)
    func publish(_ seconds: Range<Int>) throws {
      let encoder = BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
      _ = try encoder.publish(package.batch(seconds))
    }
    try publish(0..<60)
    #expect(store.flushPending(all: true).isEmpty)
    #expect(SessionIndexCache.read(of: directory.path)?.count == 12)
    _ = try store.add(addition([label(6, "Add to cart"), label(62, "soon")]), cancellation: .never)
    #expect(SessionIndexCache.read(of: directory.path)?.count == 12)
    try publish(60..<70)
    #expect(store.flushPending(all: true).isEmpty)
    #expect(try texts(directory) == [5: ["Add to cart"], 60: ["soon"]])
    #expect(try Verification.report(on: directory.path).problems == [])
  }

  @Test func batchOfLabelsIsNoBatchForOthers() throws {
    let path = try package.scratch.directory("only labels")
    try Data(NativeFormat.description(of: [label(1, "x")], for: id)).write(
      to: URL(fileURLWithPath: path + "/batch.json"))
    #expect(throws: BadBatch.self) { try BatchSessions(reading: path) }
    var options = InputOptions()
    options.takesAdditions = true
    let batch = try BatchSessions(reading: path, options: options)
    #expect(batch.readers.isEmpty && batch.sessions == [id])
    options.takesLabels = false
    #expect(throws: BadBatch.self) { try BatchSessions(reading: path, options: options) }
  }
}
