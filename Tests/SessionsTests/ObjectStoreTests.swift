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

/// Sessions in an object store equal those in a directory, even with concurrent writers and failures.
@Suite struct ObjectStoreTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let session: GeneratedSession

  init() throws {
    scratch = try ScratchDirectory()
    session = try GeneratedSession(seed: 7, in: scratch)
    #expect(session.batches.count > 2)
  }

  /// All views on request.
  private static let all: ViewKinds = [.hls, .thumbnails, .sentry]

  private func encoder(quality: Quality = .balanced, _ views: ViewKinds = []) throws -> BatchEncoder {
    let staging = try Staging(scratch: scratch.path("own"), worker: WorkerID())
    var options = BatchEncoder.Options()
    options.quality = quality
    return BatchEncoder(
      options, publishingTo: ObjectStore(objects, name: "s3://test", staging: staging, views),
      keyFrames: KeyFrameCache())
  }

  /// Publishes batches, and writes their pending views.
  private func publish(_ batches: [String], with encoder: BatchEncoder) throws {
    for batch in batches { _ = try encoder.publish(batch) }
    let outdatedViews = encoder.store.flushPending(all: true)
    if let outdated = outdatedViews.first { throw outdated.error }
  }

  /// Returns all files that a directory has after these batches, by object key.
  private func directory(_ batches: [String], _ views: ViewKinds = []) throws -> [String: [UInt8]] {
    let output = scratch.path("output-\(UUID().uuidString)")
    let staging = try Staging(output: output, worker: WorkerID())
    let index = SessionViews(views)
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: index)
    for batch in batches { _ = try encoder.publish(batch) }
    #expect(index.flushPending(staging, all: true).isEmpty)
    staging.remove()
    var files: [String: [UInt8]] = [:]
    for case let name as String in try #require(FileManager.default.enumerator(atPath: output)) {
      guard DurableFile.isFile(output + "/" + name) else { continue }
      files["output/" + name] = try DurableFile.contents(of: output + "/" + name, limit: .max)
    }
    return files
  }

  private func expectSame(_ files: [String: [UInt8]]) {
    // Besides the directory's files, a store has the index of published segments.
    #expect(objects.keys.filter { !$0.hasPrefix("index/") } == files.keys.sorted())
    for (name, bytes) in files { #expect(objects[name] == bytes, "\(name)") }
  }

  @Test(arguments: [3, 8, 11, 12]) func aStoreHasWhatADirectoryHas(seed: Int) throws {
    let session = try GeneratedSession(seed: seed, in: scratch)
    let encoder = try encoder()
    for batch in session.batches { #expect(try !encoder.publish(batch).duplicate) }
    expectSame(try directory(session.batches))
    let puts = objects.puts
    // A second run changes nothing. It rewrites at most the script, with the same bytes.
    let before = objects.keys.map { objects[$0] }
    for batch in session.batches { #expect(try encoder.publish(batch).duplicate) }
    #expect(objects.keys.map { objects[$0] } == before && objects.puts - puts <= session.batches.count)
  }

  @Test func touchesAreInAStoreAsInADirectory() throws {
    let batch = try scratch.directory("touched")
    try scratch.file("touched/a.jpg", Fixture("single-frame").bytes("1767859512340.jpg"))
    let json = #"""
      {"version":1,"frames":[{"file":"a.jpg","timeMs":1767859512340}],"events":[{"timeMs":1767859512341,"type":"down","x":1,"y":2}]}
      """#
    try scratch.file("touched/batch.json", Array(json.utf8))
    try publish([batch], with: encoder())
    let files = try directory([batch])
    expectSame(files)
    let manifest = try #require(files["output/touched/segment-1767859512340.json"])
    #expect(try JSONParser.parse(manifest).object?["touches"]?.object?["events"]?.line == #"[[1,"down",0,1,2]]"#)
  }

  @Test(arguments: [3, 8]) func itsViewsGrowWithIt(seed: Int) throws {
    let session = try GeneratedSession(seed: seed, in: scratch)
    let inOrder = session.batches.sorted()
    try publish(inOrder, with: encoder(Self.all))
    expectSame(try directory(inOrder, Self.all))
  }

  @Test func lateBatchChangesTheViews() throws {
    let late = session.batches.sorted().reversed()
    try publish(Array(late), with: encoder(Self.all))
    // Fragments of the earlier playlist remain for a while, because players may have them.
    let files = try directory(Array(late), Self.all).filter { !$0.key.hasPrefix("output/.superseded/") }
    for (name, bytes) in files where [".m3u8", ".vtt", ".sentry.json"].contains(where: name.hasSuffix) {
      #expect(objects[name] == bytes, "\(name)")
    }
    #expect(Set(files.keys).isSubset(of: objects.keys))
  }

  @Test(arguments: ["/head.json", "/session.json"])
  func concurrentPublicationIsNotLost(before write: String) throws {
    let others = Mutex(Array(session.batches.dropFirst()))
    let hurrying = try encoder(Self.all)
    // Another worker publishes a batch of the same session before each write of the index or of a view.
    objects.before { [objects] key in
      guard key.hasSuffix(write), let next = others.withLock({ $0.popLast() }) else { return }
      objects.before(nil)
      #expect((try? hurrying.publish(next)) != nil)
    }
    try publish([session.batches[0]], with: encoder(Self.all))
    try publish(others.withLock { $0 }, with: hurrying)
    for (name, bytes) in try directory(session.batches, [.thumbnails, .sentry]) {
      #expect(objects[name] == bytes, "\(name)")
    }
    // All files that the playlist names exist, and it names each segment.
    let playlist = String(decoding: try #require(objects["output/\(session.name)/hls/session.m3u8"]), as: UTF8.self)
    let named = playlist.split(separator: "\n").filter { $0.hasPrefix("segment-") }
    #expect(named.allSatisfy { objects["output/\(session.name)/hls/\($0)"] != nil })
    let videos = objects.keys.filter { $0.hasSuffix(".mp4") && !$0.contains("/hls/") }
    #expect(Set(named).count == named.count && named.count == videos.count)
  }

  @Test func publicationIsRetriedAfterAKillBeforeAnyWrite() throws {
    let batch = [session.batches[0]]
    let files = try directory(batch, Self.all)
    try publish(batch, with: encoder(Self.all))
    let writes = objects.puts
    #expect(writes > 4)
    for write in 0..<writes {
      for key in objects.keys { objects[key] = nil }
      objects.fail(from: write)
      #expect {
        try publish(batch, with: encoder(Self.all))
      } throws: {
        MemoryObjects.isFailure($0)
      }
      objects.fail(from: nil)
      try publish(batch, with: encoder(Self.all))
      expectSame(files)
    }
  }

  /// An error of the views means that the whole batch is published. Any other error means that nothing is published.
  @Test func errorTypeShowsWhetherTheBatchIsPublished() throws {
    let batch = session.batches[0]
    _ = try encoder(Self.all).publish(batch)
    let writes = objects.puts
    var published = 0
    for write in 0..<writes {
      for key in objects.keys { objects[key] = nil }
      objects.fail(from: write)
      let error = #expect(throws: (any Error).self) { _ = try encoder(Self.all).publish(batch) }
      objects.fail(from: nil)
      let isPublished = error is ViewUpdateFailure
      published += isPublished ? 1 : 0
      #expect(try encoder(Self.all).publish(batch).duplicate == isPublished, "write \(write) of \(writes)")
    }
    #expect((1..<writes).contains(published))
  }

  @Test func lostResponseIsNotAConflict() throws {
    let files = try directory([session.batches[0]])
    _ = try encoder().publish(session.batches[0])
    for write in 0..<objects.puts {
      for key in objects.keys { objects[key] = nil }
      objects.loseAnswer(of: write)
      _ = try encoder().publish(session.batches[0])
      expectSame(files)
    }
  }

  @Test func conflictDuringEncodingIsDetected() throws {
    let batch = session.batches[0]
    let other = try scratch.directory("other@2")
    for name in try FileManager.default.contentsOfDirectory(atPath: batch) {
      try FileManager.default.copyItem(atPath: batch + "/" + name, toPath: other + "/" + name)
    }
    let text = try String(contentsOfFile: other + "/batch.json", encoding: .utf8)
    try text.replacing("\"version\"", with: "\"metadata\": {\"take\": 2}, \"version\"")
      .write(toFile: other + "/batch.json", atomically: true, encoding: .utf8)
    let another = try encoder()
    // Just before the first video is created.
    objects.before { [objects] _ in
      objects.before(nil)
      #expect((try? another.publish(batch)) != nil)
    }
    #expect(throws: BadBatch.self) { try encoder().publish(other) }
    expectSame(try directory([batch]))
  }

  @Test func overflowingTotalInTheViewIsRebuilt() throws {
    let encoder = try encoder()
    let batches = session.batches.sorted()
    _ = try encoder.publish(batches[0])
    let key = "output/\(session.name)/session.json"
    let json = try JSONParser.parse(try #require(objects[key]))
    objects[key] = json.setting(["bytes": .number(Int64.max)]).bytes() + [10]
    _ = try encoder.publish(batches[1])
    expectSame(try directory(Array(batches[...1])))
  }

  @Test func segmentsOfADeadWorkerWithOtherSettingsAreAdoptedOrRetried() throws {
    let batch = session.batches[0]
    _ = try encoder(quality: .sharp).publish(batch)
    let sharp = Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, objects[$0]) })
    let manifests = objects.keys.filter { $0.contains("/segment-") && $0.hasSuffix(".json") }
    // The worker died before it listed the batch. Its segments are valid.
    let listing = ["output/\(session.name)/session.json", "index/\(session.name)/head.json"]
    for key in listing { objects[key] = nil }
    #expect(try !encoder().publish(batch).duplicate)
    for (key, bytes) in sharp { #expect(objects[key] == bytes, "\(key)") }
    // The worker died before it wrote the manifests, so the content is unknown.
    for key in manifests + listing { objects[key] = nil }
    let error = #expect(throws: SegmentWriteConflict.self) { try encoder().publish(batch) }
    #expect(error.map { Disposition(of: $0, batch: "b") } == .retry)
    // The objects are so old that the worker that wrote them is dead.
    for key in objects.keys { objects.age(key, seconds: ObjectStore.orphanTTL) }
    #expect(try !encoder().publish(batch).duplicate)
    expectSame(try directory([batch]))
  }

  @Test func scratchDirectoryThatIsNotPrivateIsRefused() throws {
    let path = try scratch.directory("open")
    chmod(path, 0o775)
    #expect(throws: Failure.self) { try Staging(scratch: path, worker: WorkerID()) }
    chmod(path, 0o700)
    symlink(path, scratch.path("link"))
    #expect(throws: Failure.self) { try Staging(scratch: scratch.path("link"), worker: WorkerID()) }
  }
}
