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

/// A stored session that becomes few objects: readers find what they found before, byte for byte, whatever happens meanwhile.
@Suite struct StoredCompactionTests {
  private static let weekMs: Int64 = 604_800_000
  private static let hourMs: Int64 = 3_600_000

  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()

  init() throws { scratch = try ScratchDirectory() }

  // MARK: - Sessions

  private func store(
    _ layout: StoreLayout = .plain, _ client: (any ObjectClient)? = nil, _ views: ViewKinds = []
  ) throws -> ObjectStore {
    ObjectStore(
      client ?? objects, name: "s3://test/", staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()),
      views, layout: layout)
  }

  private func publish(_ batches: [String], _ store: ObjectStore) throws {
    let encoder = BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
    for batch in batches { _ = try encoder.publish(batch) }
    if let failure = store.flushPending(all: true).first { throw failure.error }
  }

  /// Writes a batch of the session `walk` with one segment of five seconds for each picture.
  private func batch(_ pictures: Range<Int>) throws -> String {
    let path = try scratch.directory(String(format: "walk@%06d", pictures.lowerBound))
    for number in pictures {
      try FileManager.default.copyItem(
        atPath: Fixture("gap").path + "/0000.jpg",
        toPath: "\(path)/\(GrowingPackage.startMs + Int64(number) * 5_000).jpg")
    }
    return path
  }

  /// Writes batches of the session `walk` with some segments each.
  private func batches(_ pictures: Range<Int>, each count: Int = 4) throws -> [String] {
    try stride(from: pictures.lowerBound, to: pictures.upperBound, by: count).map {
      try batch($0..<min($0 + count, pictures.upperBound))
    }
  }

  private func id(_ name: String = "walk") throws -> SessionID { try #require(SessionID(name)) }

  private func end(_ store: ObjectStore, _ name: String = "walk") throws {
    _ = try store.end(id(name), .request, ifQuietForMs: nil, cancellation: .never)
  }

  private var sessions: StoredSessions { StoredSessions(objects, name: "s3://test/") }

  private func files(_ path: String) throws -> [String: Data] {
    try FileManager.default.contentsOfDirectory(atPath: path).reduce(into: [:]) { files, name in
      if !name.hasPrefix(".") { files[name] = FileManager.default.contents(atPath: path + "/" + name) }
    }
  }

  /// Returns the files of a copy of the stored session.
  private func copied(_ name: String = "walk") throws -> [String: Data] {
    let copy = try StoredSession(
      id(name), of: sessions, in: scratch.directory("copy-\(UUID().uuidString)"), part: .whole
    ) { _, _ in }
    try copy.writeIndex()
    try copy.fetchVideos(of: nil) { _, _ in }
    return try files(copy.path)
  }

  private func expectVerified(_ name: String = "walk", _ comment: Comment? = nil) throws {
    let report = try sessions.verify(
      id(name), in: scratch.directory("verified-\(UUID().uuidString)"), copying: { _, _ in }, progress: { _, _ in })
    #expect(report.problems.isEmpty, comment ?? "\(report.problems)")
  }

  private func entries(_ name: String = "walk") throws -> [SessionEntry] {
    let session = sessions.session(try id(name))
    return try session.whole(#require(try session.published())).entries
  }

  private func snapshot() -> [String: [UInt8]] {
    Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, objects[$0] ?? []) })
  }

  private func restore(_ before: [String: [UInt8]]) {
    for key in objects.keys { objects[key] = nil }
    for (key, bytes) in before { objects[key] = bytes }
  }

  // MARK: - Passes

  @discardableResult private func compact(
    _ store: ObjectStore? = nil, ageMs: Int64 = hourMs, nowMs: Int64 = WallClock.nowMs, isDryRun: Bool = false
  ) throws -> CompactionReport {
    try StoredCompaction(of: store ?? self.store(), ageMs: ageMs, takesEnded: true).run(
      nowMs: nowMs, isDryRun: isDryRun)
  }

  private func age(seconds: Int) { for key in objects.keys { objects.age(key, seconds: seconds) } }

  /// Lets a week pass, and makes a pass.
  private func removeReplaced() throws {
    age(seconds: Int(Self.weekMs / 1_000) + 60)
    let report = try compact(nowMs: WallClock.nowMs + Self.weekMs + 60_000)
    #expect(report.failures.isEmpty && report.sessions.isEmpty, "\(report)")
  }

  /// Expects that each object of a session is one that the index lists, or a view.
  private func expectNothingLeft(_ name: String = "walk", _ comment: Comment? = nil) throws {
    let listed = Set(try entries(name).flatMap(\.objectNames)).union(["session.json", "session.ffconcat"])
    let prefix = "output/\(name)/"
    let left = objects.keys.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
    #expect(left.filter { !listed.contains($0) } == [], comment)
    let pages = try #require(try sessions.session(id(name)).published()).pages.map(\.file)
    let index = objects.keys.filter { $0.hasPrefix("index/\(name)/") && !$0.hasSuffix("/head.json") }
    #expect(index.map { String($0.dropFirst(7 + name.count)) } == pages, comment)
    #expect(!objects.keys.contains { $0.hasPrefix(ReplacedObjects.prefix) || $0.hasPrefix("behind/") }, comment)
  }

  // MARK: - What is read

  /// Sessions with gaps, pictures of two sizes and batches that come late.
  @Test(arguments: [3, 7, 8, 11, 12]) func sessionReadsTheSame(seed: Int) throws {
    let session = try GeneratedSession(seed: seed, in: scratch)
    for layout in StoreLayout.allCases + [nil] {
      for key in objects.keys { objects[key] = nil }
      for (index, batch) in session.batches.enumerated() {
        try publish([batch], store(layout ?? (index % 2 == 0 ? .plain : .packed)))
      }
      try end(store(), session.name)
      let (before, count) = (try copied(session.name), try entries(session.name).count)
      let report = try compact()
      #expect(report.failures.isEmpty && report.sessions.map(\.segments).allSatisfy { $0 <= count }, "\(report)")
      #expect(try copied(session.name) == before)
      #expect(try entries(session.name).allSatisfy { $0.pack != nil })
      try expectVerified(session.name)
      try removeReplaced()
      #expect(try copied(session.name) == before)
      try expectVerified(session.name)
      try expectNothingLeft(session.name)
      // Packs end at gaps and long holds, and where the size of the pictures changes.
      let all = try entries(session.name)
      for (entry, next) in zip(all, all.dropFirst()) where entry.pack?.isInFile(of: next.pack) == false {
        let isPause = entry.gap(before: next) != nil || next.startMs - entry.endMs > 500
        #expect(isPause || entry.pack?.kind.suffix(8) != next.pack?.kind.suffix(8), "\(entry) \(next)")
      }
    }
  }

  @Test(arguments: StoreLayout.allCases) func fiveMinutesBecomeFourObjects(layout: StoreLayout) throws {
    let counted = StoppingObjects(objects)
    try publish(batches(0..<60, each: 2), store(layout))
    try end(store(layout))
    let before = try copied()
    let report = try compact(store(layout, counted))
    #expect(report.sessions.map(\.segments) == [60] && report.sessions.map(\.packs) == [1], "\(report)")
    #expect(report.sessions.map(\.objects) == [layout == .plain ? 120 : 30])
    try removeReplaced()
    let names = objects.keys.map { $0.split(separator: "/").last.map(String.init) ?? "" }
    #expect(
      names.count == 4 && Set(names).isSuperset(of: ["head.json", "session.json", "session.ffconcat"]), "\(names)")
    #expect(try copied() == before)
    try expectVerified()
  }

  /// Each pack has ten minutes, and pages of the index are replaced, too.
  @Test(arguments: StoreLayout.allCases) func longSessionBecomesPacksOfTenMinutes(layout: StoreLayout) throws {
    try publish(batches(0..<400, each: 40), store(layout))
    try end(store(layout))
    let before = try copied()
    let report = try compact()
    // The last pack of a packed session was one before.
    #expect(report.failures.isEmpty && report.sessions.map(\.packs) == [layout == .plain ? 4 : 3], "\(report)")
    #expect(Set(try entries().compactMap { $0.pack?.file }).count == 4)
    #expect(try copied() == before)
    try expectVerified()
    try removeReplaced()
    try expectVerified()
    try expectNothingLeft()
  }

  /// One request tells that a session is compact.
  @Test func compactSessionIsLeftAloneForOneRequest() throws {
    try publish(batches(0..<200, each: 10), store(.packed))
    try end(store(.packed))
    try compact()
    let (before, counted) = (snapshot(), StoppingObjects(objects))
    let compaction = StoredCompaction(of: try store(.packed, counted), ageMs: 0, takesEnded: true)
    #expect(try compaction.run([id()]).sessions.isEmpty)
    #expect(counted.requests == 1 && snapshot() == before)
    #expect(try compact().sessions.isEmpty && snapshot() == before)
  }

  /// A viewer's copy of a session knows the new packs, and fetches nothing again.
  @Test func copyForViewersFollowsACompaction() throws {
    try publish(batches(0..<40, each: 2), store())
    let client = StoppingObjects(objects)
    let now = Mutex(0)
    let output = try StoredOutput(
      StoredSessions(client, name: "s3://test/"), in: Staging(scratch: scratch.path("viewer"), worker: WorkerID()),
      clock: { now.withLock { $0 } })
    let copy = try #require(try output.copy(of: id()))
    let first = client.requests
    #expect(first > 40)
    try end(store())
    try compact()
    try removeReplaced()
    now.withLock { $0 += 10_000 }
    let next = try #require(try output.copy(of: id()))
    #expect(next === copy && client.requests - first < 40, "\(client.requests - first)")
    let last = try #require(try entries().last)
    #expect(try copy.video(at: last.startMs) != nil)
    output.remove()
  }

  @Test(arguments: [0, 1, 20_788]) func nameOfAPackTellsItsRevision(revision: Int) throws {
    let name = SegmentName.pack(GrowingPackage.startMs, revision: revision)
    let parts = try #require(SegmentName.pack(named: name))
    #expect(parts == (GrowingPackage.startMs, revision))
    #expect(SegmentName.start(ofPack: name) == (revision == 0 ? GrowingPackage.startMs : nil))
    for wrong in [
      "pack-1767859512340-0.mp4", "pack-1767859512340-01.mp4", "pack-1767859512340-1-2.mp4", "pack-1-1.mp4",
    ] {
      #expect(SegmentName.pack(named: wrong) == nil)
    }
    var place = PackPlace(startMs: 1, fragment: 2..<5, manifest: 7..<9, kind: "b12345678")
    (place.revision, place.publishedMs) = (revision, GrowingPackage.startMs)
    #expect(try PackPlace(place.items[...]) == place)
  }

  /// A worker does not look again at a session of one pack, which has no record of a compaction.
  @Test func shortSessionIsLookedAtOnce() throws {
    try publish(batches(0..<4), store(.packed))
    try end(store(.packed))
    let client = StoppingObjects(objects)
    let compaction = StoredCompaction(of: try store(.packed, client), ageMs: 0, takesEnded: true)
    #expect(compaction.run().sessions.isEmpty)
    let first = client.requests
    #expect(compaction.run().sessions.isEmpty)
    // The lists of the index and of replaced objects.
    #expect(client.requests - first <= 3 && first > client.requests - first, "\(first) \(client.requests)")
  }

  // MARK: - Sessions that go on

  @Test(arguments: StoreLayout.allCases) func oldPartOfASessionThatGoesOnIsCompacted(layout: StoreLayout) throws {
    let store = try store(layout)
    try publish(batches(0..<300, each: 20), store)
    #expect(try compact().sessions.isEmpty)
    age(seconds: 3_700)
    // The last batches are new.
    try publish(batches(300..<340, each: 20), store)
    let before = try copied()
    let report = try compact()
    #expect(report.sessions.map(\.segments) == [240] && report.failures.isEmpty, "\(report)")
    #expect(try copied() == before)
    try expectVerified()
    #expect(try compact().sessions.isEmpty)
    // The views of a plain session name the packs.
    try publish(batches(340..<360, each: 20), store)
    try expectVerified()
    try end(store)
    try expectVerified()
    let last = try compact()
    #expect(last.sessions.map(\.segments) == [120] && last.sessions.map(\.packs) == [1], "\(last)")
    #expect(Set(try entries().compactMap { $0.pack?.file }).count == 3)
    try expectVerified()
    try removeReplaced()
    try expectVerified()
    try expectNothingLeft()
  }

  /// A worker that extends the views that it read before a compaction writes them anew.
  @Test func viewsFromBeforeACompactionAreNotExtended() throws {
    let store = try store()
    try publish(batches(0..<300, each: 100), store)
    age(seconds: 3_700)
    try publish(batches(300..<301), store)
    let old = ["session.json", "session.ffconcat"].map { ("output/walk/" + $0, objects["output/walk/" + $0]) }
    try compact()
    for (key, bytes) in old { objects[key] = bytes }
    try publish(batches(301..<302), store)
    try expectVerified()
  }

  @Test func lateBatchIsTakenInByTheNextPass() throws {
    let store = try store(.packed)
    // A batch is missing in the middle.
    try publish(batches(0..<40) + batches(44..<100), store)
    try end(store)
    try compact()
    try publish(batches(40..<44), store)
    try expectVerified()
    let before = try copied()
    let report = try compact()
    #expect(report.failures.isEmpty && report.sessions.count == 1, "\(report)")
    #expect(Set(try entries().compactMap { $0.pack?.file }).count == 1)
    #expect(try copied() == before)
    try removeReplaced()
    try expectVerified()
    try expectNothingLeft()
  }

  /// An age counts from the publication, so retention removes segments when it would have removed them.
  @Test(arguments: StoreLayout.allCases) func retentionCountsFromThePublication(layout: StoreLayout) throws {
    let store = try store(layout)
    try publish(batches(0..<130, each: 10), store)
    age(seconds: 7_200)
    try publish(batches(200..<202), store)
    #expect(try compact(ageMs: 5_000_000).sessions.map(\.segments) == [layout == .plain ? 130 : 120])
    try expectVerified()
    // The objects are new, the segments are not.
    for pack in Set(try entries().compactMap(\.pack).filter { $0.revision > 0 }.map(\.file)) {
      objects.age("output/walk/" + pack, seconds: 0)
    }
    #expect(StoredRetention(RetentionLimits(ageMs: 7_300_000), of: store).run().removed.isEmpty)
    let report = StoredRetention(RetentionLimits(ageMs: 7_100_000), of: store).run()
    #expect(report.segments == 130 && report.failures.isEmpty, "\(report)")
    #expect(try entries().count == 2)
    #expect(store.flushPending(all: true).isEmpty)
    try expectVerified()
    try end(store)
    age(seconds: 7_200)
    try compact()
    let whole = StoredRetention(RetentionLimits(ageMs: 7_100_000), of: store).run()
    #expect(whole.removed.map(\.isWhole) == [true] && whole.failures.isEmpty, "\(whole)")
    #expect(objects.keys == ["index/walk/head.json"])
  }

  // MARK: - Crashes and others

  /// The process is killed before each of its requests. The next pass finishes.
  @Test(arguments: StoreLayout.allCases) func killedPassIsFinishedByTheNextOne(layout: StoreLayout) throws {
    try publish(batches(0..<10, each: 2) + batches(12..<16, each: 2), store(layout))
    try end(store(layout))
    let (before, wanted) = (snapshot(), try copied())
    let client = StoppingObjects(objects)
    #expect(try compact(store(layout, client)).failures.isEmpty)
    let packs = try entries().map { $0.pack?.file }
    #expect(client.requests > 20)
    for request in 0..<client.requests {
      restore(before)
      _ = try compact(store(layout, StoppingObjects(objects, after: request)))
      #expect(try copied() == wanted, "request \(request)")
      let report = try compact()
      #expect(report.failures.isEmpty, "request \(request): \(report.failures)")
      #expect(try entries().map { $0.pack?.file } == packs, "request \(request)")
      #expect(try copied() == wanted, "request \(request)")
      try expectVerified("walk", "request \(request)")
      try removeReplaced()
      try expectVerified("walk", "request \(request)")
      try expectNothingLeft("walk", "request \(request)")
    }
  }

  /// The first pass stops before each of its requests, until another one is done, or until a batch is published.
  @Test(arguments: [false, true]) func anotherWorkerMeanwhile(publishes: Bool) throws {
    try publish(batches(0..<8, each: 2), store(.packed))
    try end(store(.packed))
    let late = try batch(8..<10)
    let before = snapshot()
    let client = StoppingObjects(objects)
    try compact(store(.packed, client))
    for request in 0..<client.requests {
      restore(before)
      let failed = Mutex<(any Error)?>(nil)
      let hurrying = StoppingObjects(objects) { number in
        guard number == request else { return }
        do {
          if publishes { try publish([late], store(.packed)) } else { try compact() }
        } catch {
          failed.withLock { $0 = error }
        }
      }
      let report = try compact(store(.packed, hurrying))
      #expect(failed.withLock { $0 } == nil && report.failures.isEmpty, "request \(request): \(report)")
      try compact()
      #expect(try entries().count == (publishes ? 10 : 8), "request \(request)")
      #expect(Set(try entries().compactMap { $0.pack?.file }).count == 1, "request \(request)")
      try expectVerified("walk", "request \(request)")
      try removeReplaced()
      try expectVerified("walk", "request \(request)")
      try expectNothingLeft("walk", "request \(request)")
    }
  }

  @Test func deletionMeanwhileLeavesNothing() throws {
    try publish(batches(0..<8, each: 2), store(.packed))
    try end(store(.packed))
    let (before, client) = (snapshot(), StoppingObjects(objects))
    try compact(store(.packed, client))
    for request in 0..<client.requests {
      restore(before)
      let hurrying = StoppingObjects(objects) { [objects] number in
        guard number == request, let id = SessionID("walk") else { return }
        let deletion = ObjectDeletion(objects, name: "s3://test/")
        _ = try? deletion.add(Tombstone(id, deletedAtMs: 1, reason: "test"))
        _ = try? deletion.remove(id)
      }
      #expect(try compact(store(.packed, hurrying)).failures.isEmpty, "request \(request)")
      #expect(objects.keys == ["index/walk/head.json"], "request \(request)")
    }
  }

  @Test func stopRequestEndsAPassBetweenTwoRequests() throws {
    try publish(batches(0..<8, each: 2), store())
    try end(store())
    let (before, counted) = (snapshot(), StoppingObjects(objects))
    let compaction = StoredCompaction(of: try store(.plain, counted), ageMs: 0, takesEnded: true) {
      counted.requests < 12
    }
    let report = compaction.run()
    #expect(report.sessions.isEmpty && report.failures.isEmpty && counted.requests >= 12)
    #expect(!objects.keys.contains { $0.contains("/pack-") })
    #expect(objects["index/walk/head.json"] == before["index/walk/head.json"])
    #expect(try compact().sessions.count == 1)
    try expectVerified()
  }

  // MARK: - Replaced objects

  @Test func replacedObjectsStayForAWeek() throws {
    try publish(batches(0..<8, each: 2), store())
    try end(store())
    let before = snapshot()
    try compact()
    age(seconds: Int(Self.weekMs / 1_000))
    try compact(nowMs: WallClock.nowMs + Self.weekMs - 60_000)
    for (key, bytes) in before where key.contains("/segment-") { #expect(objects[key] == bytes, "\(key)") }
    try removeReplaced()
    #expect(!objects.keys.contains { $0.contains("/segment-") })
  }

  /// A list of a process that died before it wrote the head names objects that are in use. So may the list of a session that was deleted
  /// and published again.
  @Test func listedObjectsAreNeverRemoved() throws {
    try publish(batches(0..<8, each: 2), store())
    let names = try entries().flatMap(\.objectNames)
    let session = try store().session(id())
    try ReplacedObjects(of: session).add(names + ["session.json", "../other/head.json"], nowMs: 0)
    let before = snapshot().filter { !$0.key.hasPrefix(ReplacedObjects.prefix) }
    age(seconds: 700_000)
    let removed = try ReplacedObjects.removeDue(of: store(), nowMs: WallClock.nowMs, .never)
    #expect(removed.count == 0 && snapshot() == before)
    // Objects that are about to be listed are young.
    objects["index/walk/head.json"] = nil
    objects["output/walk/session.json"] = nil
    try ReplacedObjects(of: session).add(names, nowMs: 0)
    age(seconds: 1_000)
    #expect(try ReplacedObjects.removeDue(of: store(), nowMs: WallClock.nowMs, .never).count == 0)
    #expect(names.allSatisfy { objects["output/walk/" + $0] != nil })
  }

  @Test func dryRunChangesNothing() throws {
    try publish(batches(0..<8, each: 2), store())
    try end(store())
    let before = snapshot()
    let report = try compact(isDryRun: true)
    #expect(report.sessions.map(\.segments) == [8] && report.sessions.map(\.objects) == [16])
    #expect(snapshot() == before)
  }

  // MARK: - Live playlists of packs

  /// Players have read where the segments of a session that goes on lie. At its end the playlist names the new packs.
  @Test func playlistOfPacksFollowsThemAtTheEnd() throws {
    let live = try store(.packed, nil, [.hls])
    try publish(batches(0..<8), live)
    let key = "output/walk/hls/session.m3u8"
    func text() -> String { String(decoding: objects[key] ?? [], as: UTF8.self) }
    let before = text()
    let words = "output/walk/" + SegmentName.text(GrowingPackage.startMs)
    objects[words] = Array(#"{"format":"segment-text/1"}"#.utf8)
    let later = WallClock.nowMs + 2 * Self.hourMs
    let compaction = StoredCompaction(of: live, ageMs: Self.hourMs, takesEnded: true)
    for object in objects.keys { objects.age(object, seconds: 7_200) }
    #expect(compaction.run(nowMs: later).sessions.isEmpty)
    #expect(text() == before && before.components(separatedBy: "../pack-").count > 8)
    try end(live)
    let client = StoppingObjects(objects)
    let snapshot = objects.keys.map { ($0, objects[$0]) }
    func compact(_ client: any ObjectClient) throws {
      _ = StoredCompaction(of: try store(.packed, client), ageMs: Self.hourMs, takesEnded: true).run(nowMs: later)
    }
    try compact(client)
    let wanted = text()
    for request in 0..<client.requests {
      for key in objects.keys { objects[key] = nil }
      for (key, bytes) in snapshot { objects[key] = bytes }
      try compact(StoppingObjects(objects, after: request))
      try compact(objects)
      let named = Set(
        text().split(whereSeparator: \.isNewline).filter { $0.hasPrefix("../pack-") }.map { $0.dropFirst(3) })
      #expect(text() == wanted && named.count == 1, "request \(request): \(named)")
      #expect(named.allSatisfy { objects["output/walk/" + $0] != nil })
      #expect(text().hasSuffix("#EXT-X-ENDLIST\n") && objects[words] != nil)
    }
  }
}
