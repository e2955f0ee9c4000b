import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import Films
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions
@testable import Showing

/// Copies of sessions in an object store, which readers take for a session's directory.
@Suite struct StoredSessionTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()

  init() throws { scratch = try ScratchDirectory() }

  private var sessions: StoredSessions { StoredSessions(objects, name: "s3://test/") }

  /// Publishes batches in the store and in a directory.
  ///
  /// - Returns: the directory's path.
  private func publish(_ batches: [String], named name: String) throws -> String {
    let store = ObjectStore(
      objects, name: "s3://test/", staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()))
    let stored = BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
    let output = scratch.path("output")
    let staging = try Staging(output: output, worker: WorkerID())
    let index = SessionViews()
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: index)
    for batch in batches {
      _ = try stored.publish(batch)
      _ = try encoder.publish(batch)
    }
    #expect(store.flushPending(all: true).isEmpty && index.flushPending(staging, all: true).isEmpty)
    return output + "/" + name
  }

  private func generated(_ seed: Int = 7) throws -> (id: SessionID, path: String) {
    let session = try GeneratedSession(seed: seed, in: scratch)
    return (try #require(SessionID(session.name)), try publish(session.batches, named: session.name))
  }

  /// Publishes a session of segments with one picture each, of five seconds.
  private func long(_ count: Int) throws -> (id: SessionID, path: String) {
    let batch = try scratch.directory("walk")
    for number in 0..<count {
      try FileManager.default.copyItem(
        atPath: Fixture("gap").path + "/0000.jpg",
        toPath: "\(batch)/\(LongSession.startMs + Int64(number) * 5_000).jpg")
    }
    return (try #require(SessionID("walk")), try publish([batch], named: "walk"))
  }

  private func copy(
    _ id: SessionID, from client: (any ObjectClient)? = nil, part: StoredPart = .whole,
    damage: StoredSession.Damage = .refused
  ) throws -> StoredSession {
    try StoredSession(
      id, of: StoredSessions(client ?? objects, name: "s3://test/"),
      in: scratch.directory("copy-\(UUID().uuidString)"), part: part, damage: damage
    ) { _, _ in }
  }

  /// Returns the files of a directory by their names.
  private func files(_ path: String) throws -> [String: Data] {
    try FileManager.default.contentsOfDirectory(atPath: path).reduce(into: [:]) { files, name in
      files[name] = FileManager.default.contents(atPath: path + "/" + name)
    }
  }

  private func message(_ body: () throws -> Void) -> String {
    do {
      try body()
      return ""
    } catch {
      return "\(error)"
    }
  }

  @Test(arguments: [3, 7, 8]) func copyEqualsTheDirectoryOfTheSameBatches(seed: Int) throws {
    let (id, path) = try generated(seed)
    let copy = try copy(id)
    try copy.writeIndex()
    try copy.fetchVideos(of: nil) { _, _ in }
    #expect(try files(copy.path) == files(path))
  }

  @Test func endOfTheSessionIsCopied() throws {
    let batch = try scratch.directory("walk")
    try scratch.file("walk/a.jpg", Fixture("single-frame").bytes("1767859512340.jpg"))
    try scratch.file(
      "walk/batch.json",
      Array(#"{"version":1,"session":"walk","frames":[{"file":"a.jpg","timeMs":1767859512340}],"final":true}"#.utf8))
    let path = try publish([batch], named: "walk")
    let copy = try copy(#require(SessionID("walk")))
    try copy.writeIndex()
    try copy.fetchVideos(of: nil) { _, _ in }
    #expect(try files(copy.path) == files(path))
    #expect(try files(path).keys.contains(SessionEnd.file))
  }

  @Test func onePictureOfALongSessionNeedsFewRequests() throws {
    let (id, path) = try long(400)
    #expect(objects.keys.count { $0.hasPrefix("index/walk/") } == 6)
    for seconds: Int64 in [0, 7, 900, 1_611, 1_999] {
      let at = SessionInstant.afterStartMs(seconds * 1_000)
      let counted = StoppingObjects(objects)
      let copy = try copy(id, from: counted, part: .between(at, at.after(ms: 1)))
      let frame = try SessionFrame(of: copy.path, at: at)
      try copy.fetchVideos(of: [frame.shown.segment.startMs]) { _, _ in }
      // The head, four pages, six manifests and a video.
      #expect(counted.requests <= 12, "\(seconds) s: \(counted.requests)")
      let wanted = try SessionFrame(of: path, at: at)
      #expect(try frame.shown == wanted.shown && frame.image(as: .jpeg) == wanted.image(as: .jpeg))
    }
  }

  @Test func filmOfAPartReadsTheVideosOfThePartOnly() throws {
    let (id, path) = try long(200)
    let clip = Clip(from: .afterStartMs(301_000), to: .afterStartMs(322_000))
    let counted = StoppingObjects(objects)
    let copy = try copy(id, from: counted, part: .between(.afterStartMs(301_000), .afterStartMs(322_000)))
    let film = scratch.path("stored.mp4")
    let videos = try Stitching.videos(of: copy.path, showing: clip, as: .mp4, to: film, gaps: .hold)
    #expect(videos.count == 5)
    try copy.fetchVideos(of: videos) { _, _ in }
    #expect(counted.requests <= 20)
    let stored = try Stitching.film(of: copy.path, showing: clip, to: film, gaps: .hold, decoders: nil) { _, _ in }
    let other = scratch.path("other.mp4")
    let made = try Stitching.film(of: path, showing: clip, to: other, gaps: .hold, decoders: nil) { _, _ in }
    #expect(FileManager.default.contents(atPath: film) == FileManager.default.contents(atPath: other))
    #expect(stored.json == made.json.replacing(other, with: film))
  }

  @Test func pagesOfTheIndexAreReadInOrder() throws {
    let (id, path) = try long(400)
    let copy = try copy(id)
    try copy.writeIndex()
    let (own, wanted) = (try files(copy.path), try files(path))
    for name in wanted.keys where !name.hasSuffix(".mp4") { #expect(own[name] == wanted[name], "\(name)") }
  }

  // MARK: - Damage

  @Test func damagedObjectIsFetchedOnceMoreAndThenNamed() throws {
    let batch = try scratch.directory("walk")
    try scratch.file("walk/1767859512340.jpg", Fixture("single-frame").bytes("1767859512340.jpg"))
    _ = try publish([batch], named: "walk")
    let id = try #require(SessionID("walk"))
    let page = Array("<html><body>Log in first</body></html>".utf8)
    let names = ["segment-1767859512340.json", "segment-1767859512340.mp4"]
    for (number, name) in names.enumerated() {
      let key = "output/walk/" + name
      let good = try #require(objects[key])
      var flipped = good
      flipped[good.count / 2] ^= 1
      let faults: [[UInt8]?] = [
        nil, [], page, flipped, good + good, Array(good.dropLast(3)), Array(repeating: 0, count: 9 << 20),
      ]
      for bad in faults {
        objects[key] = bad
        // The head, then the manifest, then the video: the second request for the object finds it well.
        let mending = StoppingObjects(objects) { [objects] request in
          if request == number + 2 { objects[key] = good }
        }
        let mended = try copy(id, from: mending)
        try mended.fetchVideos(of: nil) { _, _ in }
        #expect(try files(mended.path)[name] == Data(good))
        objects[key] = bad
        let text = message { try copy(id).fetchVideos(of: nil) { _, _ in } }
        #expect(text.hasPrefix("s3://test/output/walk/\(name): ") && text.contains("delete the session"), "\(text)")
        objects[key] = good
      }
    }
  }

  @Test func manifestOfAnotherVideoThanTheIndexListsIsRefused() throws {
    let (id, _) = try generated()
    let keys = objects.keys.filter { SegmentName.start(ofManifest: ($0 as NSString).lastPathComponent) != nil }
    objects[keys[0]] = objects[keys[1]]
    #expect(message { _ = try copy(id) }.hasPrefix("s3://test/\(keys[0]): "))
  }

  @Test func unknownAndDeletedSessionsAreNamedAndNoOthers() throws {
    let (id, _) = try generated()
    let unknown = message { _ = try copy(#require(SessionID("other"))) }
    #expect(unknown.hasPrefix("s3://test/output/other: no such session") && !unknown.contains(id.description))
    _ = try ObjectDeletion(objects, name: "s3://test/").add(Tombstone(id, deletedAtMs: 1, reason: "x"))
    #expect(message { _ = try copy(id) }.hasPrefix("s3://test/output/\(id): session \(id) was deleted at 1970-01-01"))
  }

  @Test func sessionDeletedMeanwhileIsReportedAsDeleted() throws {
    let (id, _) = try generated()
    let copy = try copy(id)
    let deletion = ObjectDeletion(objects, name: "s3://test/")
    _ = try deletion.add(Tombstone(id, deletedAtMs: 1, reason: "x"))
    _ = try deletion.remove(id)
    #expect(message { try copy.fetchVideos(of: nil) { _, _ in } }.contains("session \(id) was deleted"))
  }

  @Test func readerErrorsNameTheStoreAndNotTheCopy() throws {
    let (id, _) = try generated()
    let copy = try copy(id)
    let error = #expect(throws: BadSession.self) {
      do {
        _ = try SessionDirectory(at: copy.path).soundManifest(1)
      } catch {
        throw copy.renamed(error)
      }
    }
    #expect(error?.file == "s3://test/output/\(id)/segment-0000000000001.json")
  }

  // MARK: - Hostile stores

  @Test func hostileHeadsEndWithAnErrorThatNamesThem() throws {
    let (id, _) = try long(130)
    let head = "index/walk/head.json"
    let good = String(decoding: try #require(objects[head]), as: UTF8.self)
    let page = try #require(objects.keys.first { $0.hasPrefix("index/walk/1") })
    let name = (page as NSString).lastPathComponent
    let pages = "\"pages\":[\"\(name)\""
    let damages = [
      "", "<html>", "[]", String(repeating: "[", count: 100_000), String(repeating: " ", count: 5 << 20),
      good.replacing(pages, with: "\"pages\":[\"../../\(name)\""),
      good.replacing(pages, with: pages + ",\"\(name)\""),
      good.replacing("\"pages\":[", with: "\"pages\":[" + String(repeating: "\"\(name)\",", count: 1_000)),
      good.replacing("\"segments\":130", with: "\"segments\":129"),
      good.replacing("\"segments\":130", with: "\"segments\":4398046511104"),
      good.replacing("\"startMs\":\(LongSession.startMs)", with: "\"startMs\":0"),
    ]
    for damage in damages {
      objects[head] = Array(damage.utf8)
      let text = message { _ = try copy(id) }
      #expect(text.hasPrefix("s3://test/index/walk/"), "\(damage.prefix(60)): \(text)")
    }
    objects[head] = Array(good.utf8)
    for damage in ["", "[]", "{}", "[[]]", "<html>"] {
      objects[page] = Array(damage.utf8)
      #expect(message { _ = try copy(id) }.hasPrefix("s3://test/\(page): "), "\(damage)")
    }
  }

  @Test func sizesBeyondTheDiskEndBeforeADownload() throws {
    let (id, _) = try generated()
    let head = "index/\(id)/head.json"
    var copied: StoredSession?
    let manifests = objects.keys.filter { SegmentName.start(ofManifest: ($0 as NSString).lastPathComponent) != nil }
    let size = try #require(objects[manifests[0].replacing(".json", with: ".mp4")]).count
    objects[head] = Array(
      String(decoding: try #require(objects[head]), as: UTF8.self)
        .replacing(",\(size),", with: ",4398046511104,").utf8)
    let counted = StoppingObjects(objects)
    copied = try copy(id, from: counted, damage: .kept)
    let before = counted.requests
    let text = message { try copied?.fetchVideos(of: nil) { _, _ in } }
    #expect(text.contains("it needs ") && text.contains("TMPDIR") && text.contains("s3://test/output/\(id)"), "\(text)")
    #expect(counted.requests == before)
  }

  @Test func listThatDoesNotGoOnEndsWithAnError() throws {
    let (id, _) = try generated()
    for kind in HostileLists.Kind.allCases {
      let store = StoredSessions(HostileLists(objects, kind), name: "s3://test/")
      for body in [
        { _ = try store.ids() },
        { _ = try store.verify(id, in: scratch.directory("x-\(UUID())"), copying: { _, _ in }, progress: { _, _ in }) },
      ] {
        let text = message(body)
        #expect(text.hasPrefix("list s3://test/"), "\(kind): \(text)")
      }
    }
  }

  @Test func stopEndsACopy() throws {
    let (id, _) = try long(130)
    // Progress is told ten times a second: a copy that takes no longer cannot be stopped.
    let slow = StoppingObjects(objects) { _ in usleep(20_000) }
    #expect(throws: Cancelled.self) {
      _ = try StoredSession(
        id, of: StoredSessions(slow, name: "s3://test/"), in: scratch.directory("stopped"), part: .whole
      ) { done, _ in
        if done > 1 { throw Cancelled() }
      }
    }
  }
}

/// A store whose lists never end.
private struct HostileLists: ObjectClient {
  enum Kind: CaseIterable { case same, backwards, others, many }

  private let objects: MemoryObjects
  private let kind: Kind

  init(_ objects: MemoryObjects, _ kind: Kind) { (self.objects, self.kind) = (objects, kind) }

  func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    let keys: [String] =
      switch kind {
      case .same: [prefix + "a/b"]
      case .backwards: [prefix + "b/b", prefix + "a/b"]
      case .others: ["elsewhere/a/b"]
      // Each answer has keys that come behind those of the one before.
      case .many: (0..<2_000).map { (key ?? prefix) + String(format: "z%08d/x", $0) }
      }
    return keys.map { ObjectInfo(key: $0, size: .max, tag: ObjectTag("x")) }
  }

  func get(_ key: String, limit: Int) throws -> StoredObject? { try objects.get(key, limit: limit) }
  func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
    try objects.download(key, to: path, limit: limit)
  }
  func head(_ key: String) throws -> ObjectInfo? { try objects.head(key) }
  func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws -> ObjectTag? {
    try objects.put(key, body, kind, when: condition)
  }
  func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
    try objects.copy(key, tag, to: target)
  }
  func delete(_ key: String, _ tag: ObjectTag?) throws { try objects.delete(key, tag) }
}
