import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// The verification of sessions in an object store.
@Suite struct StoredVerificationTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let id: SessionID

  /// Publishes a session whose worker is idle.
  init() throws {
    scratch = try ScratchDirectory()
    let session = try GeneratedSession(seed: 7, in: scratch)
    id = try #require(SessionID(session.name))
    let store = ObjectStore(
      objects, name: "s3://test/", staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()), .hls)
    let encoder = BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
    for batch in session.batches { _ = try encoder.publish(batch) }
    #expect(store.flushPending(all: true).isEmpty)
    objects.age("index/\(id)/head.json", seconds: 60)
  }

  private func report(_ client: (any ObjectClient)? = nil) throws -> VerificationReport {
    try StoredSessions(client ?? objects, name: "s3://test/").verify(
      id, in: scratch.directory("copy-\(UUID().uuidString)"), copying: { _, _ in }, progress: { _, _ in })
  }

  private func problems() throws -> [String] { try report().problems.map { "\($0.file): \($0.what)" } }

  private func key(_ name: String) -> String { "output/\(id)/\(name)" }

  @Test func soundSessionHasNoProblem() throws {
    let report = try report()
    #expect(report.problems.isEmpty && report.segments > 4 && report.session == id.description)
  }

  @Test func oldUnlistedObjectsAreOrphansAndYoungOnesAreNot() throws {
    let names = [
      "segment-0000000000001.json", "segment-0000000000001.mp4", "x y.txt", "segment-0000000000001.sentry.json",
    ]
    for name in names { objects[key(name)] = [1] }
    #expect(try problems() == [])
    for name in names { objects.age(key(name), seconds: 7_200) }
    #expect(try problems() == names.sorted().map { "\($0): an orphan: no index lists it" })
  }

  @Test func objectsOfKnownFoldersAreNoOrphansAndAnotherFolderIs() throws {
    objects[key("hls/segment-0000000000001-abc.m4s")] = [1]
    objects[key("thumbnails/x.jpg")] = [1]
    #expect(try problems() == [])
    objects[key("other/x.jpg")] = [1]
    #expect(try problems() == ["other: an orphan: no index lists it"])
  }

  @Test(arguments: [nil, "", "{}", "x"]) func viewThatDiffersFromTheIndexIsReported(text: String?) throws {
    // The last one is longer than the view.
    let bytes = text.map { Array((text == "x" ? String(repeating: $0, count: 100_000) : $0).utf8) }
    for name in ["session.json", "session.ffconcat"] {
      let good = objects[key(name)]
      objects[key(name)] = bytes
      let what = bytes == nil ? "missing" : "not what the segments' manifests say"
      #expect(
        try problems().filter { $0.hasPrefix(name) } == [
          "\(name): \(what); a worker rebuilds it with the next batch of the session, also with one that is published already"
        ])
      objects[key(name)] = good
    }
  }

  @Test func viewsThatAWorkerIsAboutToWriteAreNoProblem() throws {
    objects[key("session.json")] = nil
    #expect(try problems().count == 1)
    objects["behind/\(id)"] = [1]
    #expect(try problems() == [])
  }

  @Test func viewsWrittenDuringTheCheckAreReadAgain() throws {
    let good = objects[key("session.json")]
    objects[key("session.json")] = nil
    objects.age("index/\(id)/head.json", seconds: 1)
    // The worker writes the view after the first check.
    let watching = StoppingObjects(objects) { [objects, id] request in
      if request > 0, objects["seen"] != nil { objects["output/\(id)/session.json"] = good }
      objects["seen"] = [1]
    }
    #expect(try report(watching).problems.isEmpty)
  }

  @Test func damagedSegmentsAreReportedAsInADirectory() throws {
    let starts = objects.keys.compactMap { SegmentName.start(ofVideo: ($0 as NSString).lastPathComponent) }.sorted()
    let videos = starts.map(SegmentName.video)
    objects[key(videos[0])]?[100] ^= 1
    objects[key(videos[1])]? += [0, 0]
    let size = try #require(objects[key(videos[1])]).count
    objects[key(videos[2])] = nil
    objects[key(SegmentName.manifest(starts[3]))] = Array("<html>".utf8)
    objects[key(SegmentName.manifest(starts[4]))] = nil
    let found = try problems()
    #expect(
      found.prefix(3) == [
        "\(videos[0]): not the file its manifest describes: other bytes",
        "\(videos[1]): not the file its manifest describes: \(size) bytes instead of \(size - 2)",
        "\(videos[2]): missing",
      ])
    #expect(found.contains { $0.hasPrefix(SegmentName.manifest(starts[3]) + ": ") })
    #expect(found.contains("\(videos[4]): listed in session.json, but it has no manifest"))
    #expect(!found.contains { $0.contains(scratch.path("")) })
  }

  @Test func sessionsAreListedWithOrphansAndWithoutDeletedOnes() throws {
    let store = StoredSessions(objects, name: "s3://test/")
    objects["output/lost/segment-0000000000001.mp4"] = [1]
    objects["output/lost.1/segment-0000000000001.mp4"] = [1]
    objects["output/no id/x"] = [1]
    objects["output/x"] = [1]
    let gone = try #require(SessionID("gone"))
    _ = try ObjectDeletion(objects, name: "s3://test/").add(Tombstone(gone, deletedAtMs: 1, reason: ""))
    #expect(try store.ids().map(\.description) == [id.description, "gone", "lost", "lost.1"].sorted())
    func listed(_ name: String) throws -> VerificationReport? {
      try store.verifyListed(
        #require(SessionID(name)), in: scratch.directory("copy-\(UUID().uuidString)"), copying: { _, _ in },
        progress: { _, _ in })
    }
    #expect(try listed("gone") == nil && listed("lost") == nil && listed(id.description)?.problems.isEmpty == true)
    objects.age("output/lost/segment-0000000000001.mp4", seconds: 7_200)
    #expect(try listed("lost")?.problems.map(\.file) == ["segment-0000000000001.mp4"])
  }

  /// A store that stops to honour conditions loses sessions of its index: two workers write the head over one another.
  @Test func segmentsOfABatchThatTheIndexLostAreOrphans() throws {
    let head = "index/\(id)/head.json"
    let text = String(decoding: try #require(objects[head]), as: UTF8.self)
    let lost = try #require(objects.keys.last { SegmentName.start(ofVideo: ($0 as NSString).lastPathComponent) != nil })
    let start = try #require(SegmentName.start(ofVideo: (lost as NSString).lastPathComponent))
    // Another worker wrote the head without the last segment.
    let entry = try #require(text.range(of: ",[\(start),"))
    let end = try #require(text[entry.lowerBound...].firstIndex(of: "]"))
    let count = try report().segments
    objects[head] = Array(
      text.replacingCharacters(in: entry.lowerBound...end, with: "")
        .replacing("\"segments\":\(count)", with: "\"segments\":\(count - 1)").utf8)
    objects.age(head, seconds: 60)
    let names = [SegmentName.manifest(start), SegmentName.video(start)]
    for name in names { objects.age(key(name), seconds: 10_000) }
    let found = try problems()
    for name in names { #expect(found.contains("\(name): an orphan: no index lists it")) }
  }
}
