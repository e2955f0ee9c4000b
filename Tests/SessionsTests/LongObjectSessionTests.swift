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

/// A session in an object store with more segments than the head of its index lists.
@Suite struct LongObjectSessionTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let views = ["output/walk/session.json", "output/walk/session.ffconcat"]

  init() throws { scratch = try ScratchDirectory() }

  private func store() throws -> ObjectStore {
    ObjectStore(
      objects, name: "s3://test", staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()))
  }

  private func encoder(_ store: ObjectStore) -> BatchEncoder {
    BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
  }

  /// Writes a batch with one segment for each picture.
  private func batch(_ pictures: Range<Int>) throws -> String {
    let path = try scratch.directory(String(format: "walk@%06d", pictures.lowerBound))
    for number in pictures {
      try FileManager.default.copyItem(
        atPath: Fixture("gap").path + "/0000.jpg", toPath: "\(path)/\(1_767_859_512_340 + number * 5_000).jpg")
    }
    return path
  }

  /// Expects the views of the store to equal those of a directory with these batches.
  private func expectViewsOfDirectory(_ batches: [String]) throws {
    let output = scratch.path("output-\(UUID().uuidString)")
    let staging = try Staging(output: output, worker: WorkerID())
    let index = SessionViews()
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: index)
    for batch in batches { _ = try encoder.publish(batch) }
    #expect(index.flushPending(staging, all: true).isEmpty)
    for view in views {
      let wanted = try DurableFile.contents(
        of: output + "/walk/" + (view as NSString).lastPathComponent, limit: .max)
      #expect(wanted != nil && objects[view] == wanted, "\(view)")
    }
  }

  private var pages: [String] { objects.keys.filter { $0.hasPrefix("index/") && !$0.hasSuffix("/head.json") } }
  private var marks: [String] { objects.keys.filter { $0.hasPrefix("behind/") } }

  @Test func batchWritesHeadOnlyAndViewsFollowLater() throws {
    let store = try store()
    let batches = [try batch(0..<130), try batch(130..<131), try batch(131..<133)]
    _ = try encoder(store).publish(batches[0])
    #expect(pages.count == 1 && marks.count == 1)
    let written = Mutex<[String]>([])
    objects.before { key in written.withLock { $0.append((key as NSString).lastPathComponent) } }
    for batch in batches[1...] { _ = try encoder(store).publish(batch) }
    objects.before(nil)
    let others = written.withLock { $0 }.filter { !$0.hasPrefix("segment-") }
    #expect(others == ["head.json", "head.json"])
    #expect(store.flushPending(all: true).isEmpty && marks.isEmpty)
    try expectViewsOfDirectory(batches)
    // The worker recognises existing pages and does not write them again.
    let before = objects.puts
    for batch in batches { #expect(try encoder(store).publish(batch).duplicate) }
    #expect(store.flushPending(all: true).isEmpty)
    // The worker writes only the dirty-session marker.
    #expect(objects.puts == before + 1 && marks.isEmpty)
  }

  @Test func viewsAreExtendedWithoutReadingPages() throws {
    let store = try store()
    let batches = [try batch(0..<130), try batch(130..<135)]
    _ = try encoder(store).publish(batches[0])
    #expect(store.flushPending(all: true).isEmpty)
    // The worker extends the views without reading any page.
    let kept = pages.map { ($0, objects[$0]) }
    for page in pages { objects[page] = nil }
    _ = try encoder(store).publish(batches[1])
    #expect(store.flushPending(all: true).isEmpty)
    for (page, bytes) in kept { objects[page] = bytes }
    try expectViewsOfDirectory(batches)
  }

  @Test func lateBatchIsInsertedInTimeOrder() throws {
    let store = try store()
    let batches = [
      try batch(0..<20), try batch(21..<200), try batch(200..<230), try batch(20..<21), try batch(225..<226),
    ]
    for batch in batches[..<3] { _ = try encoder(store).publish(batch) }
    #expect(store.flushPending(all: true).isEmpty)
    _ = try encoder(store).publish(batches[3])
    #expect(store.flushPending(all: true).isEmpty)
    try expectViewsOfDirectory(Array(batches[..<4]))
    // One batch before all others, and one that splits a page into two.
    let earlier = [try batch(-3..<0), try batch(-200 ..< -3)]
    for batch in earlier {
      _ = try encoder(store).publish(batch)
      #expect(store.flushPending(all: true).isEmpty)
    }
    try expectViewsOfDirectory(batches[..<4] + earlier)
    // The same instant again, with different content.
    #expect(throws: BadBatch.self) { try encoder(store).publish(batches[4]) }
  }

  @Test func staleViewsOfADeadWorkerAreUpdated() throws {
    let batches = [try batch(0..<130)]
    _ = try encoder(try store()).publish(batches[0])
    #expect(views.allSatisfy { objects[$0] == nil })
    let next = try store()
    // The worker that wrote the marker may still be alive.
    #expect(next.flushPending(all: false).isEmpty && views.allSatisfy { objects[$0] == nil })
    objects.age(try #require(marks.first), seconds: 3_600)
    #expect(try store().flushPending(all: false).isEmpty && marks.isEmpty)
    try expectViewsOfDirectory(batches)
  }

  @Test func dirtyMarkerOfAnotherWorkerIsKept() throws {
    let (one, other) = (try store(), try store())
    _ = try encoder(one).publish(try batch(0..<130))
    objects.before { [objects] key in
      guard key.hasSuffix("session.json") else { return }
      objects.before(nil)
      // Another worker publishes while this worker writes the views.
      #expect((try? encoder(other).publish(try batch(130..<131))) != nil)
    }
    #expect(one.flushPending(all: false).isEmpty)
    #expect(one.flushPending(all: true).isEmpty && other.flushPending(all: true).isEmpty && marks.isEmpty)
    try expectViewsOfDirectory([scratch.path("walk@000000"), scratch.path("walk@000130")])
  }

  @Test func sessionOfAnOlderVersionIsContinued() throws {
    let store = try store()
    let batches = [try batch(0..<130), try batch(130..<131)]
    _ = try encoder(store).publish(batches[0])
    #expect(store.flushPending(all: true).isEmpty)
    // The older version listed all segments in session.json.
    for key in objects.keys where key.hasPrefix("index/") { objects[key] = nil }
    #expect(try encoder(store).publish(batches[0]).duplicate)
    #expect(try !encoder(store).publish(batches[1]).duplicate)
    #expect(store.flushPending(all: true).isEmpty && pages.count == 1)
    try expectViewsOfDirectory(batches)
  }

  @Test func publishingOnADamagedIndexIsRefused() throws {
    let store = try store()
    _ = try encoder(store).publish(try batch(0..<130))
    let head = "index/walk/head.json"
    let good = try #require(objects[head])
    let text = String(decoding: good, as: UTF8.self)
    let damages = [
      "", "{}", "[]", text.replacing("\"walk\"", with: "\"other\""),
      text.replacing("session-index/1", with: "session-index/9"),
      text.replacing("\"pages\":[\"", with: "\"pages\":[\"../"),
      text.replacing("\"segments\":130", with: "\"segments\":1"),
      text.replacing("\"bytes\":", with: "\"bytes\":-"), String(text.dropLast(20)),
    ]
    let next = try batch(130..<131)
    for damage in damages {
      objects[head] = Array(damage.utf8)
      #expect(throws: DamagedOutput.self, "\(damage.prefix(40))") { try encoder(store).publish(next) }
      #expect(objects[head] == Array(damage.utf8))
    }
    objects[head] = good
    let page = try #require(pages.first)
    objects[page] = Array("[]".utf8)
    #expect(throws: DamagedOutput.self) { try encoder(store).publish(try batch(3..<4)) }
    #expect(try !encoder(store).publish(next).duplicate)
    #expect(store.flushPending(all: true).map { $0.error is DamagedOutput } == [true])
  }
}
