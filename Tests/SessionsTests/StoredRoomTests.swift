import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// The oldest segments of stored sessions are removed until all sessions have room, as in a directory.
@Suite struct StoredRoomTests {
  private static let (hourS, dayS) = (3_600, 86_400)

  private let package: GrowingPackage

  init() throws { package = try GrowingPackage() }

  private var objects: MemoryObjects { package.objects }

  private func store(_ views: ViewKinds = [], _ client: (any ObjectClient)? = nil) throws -> ObjectStore {
    try package.store(client, views, isWindow: true)
  }

  private func id(_ name: String) throws -> SessionID { try #require(SessionID(name)) }

  private func start(_ second: Int) -> Int64 { GrowingPackage.startMs + Int64(second) * 1_000 }

  private func publish(_ seconds: Range<Int>, of session: String = "walk", _ store: ObjectStore) throws {
    let batch = try package.batch(seconds)
    let path = package.scratch.path("\(session)@\(UUID().uuidString)")
    try FileManager.default.moveItem(atPath: batch, toPath: path)
    _ = try package.encoder(store).publish(path)
    #expect(store.flushPending(all: true).isEmpty)
  }

  /// - Parameters:
  ///   - room: nil for no limit.
  ///   - days: from now.
  private func retain(
    _ store: ObjectStore, room: Int? = nil, ageMs: Int64? = nil, sessionsMs: Int64? = nil, tombstone: String? = nil,
    days: Int = 0, isDryRun: Bool = false
  ) -> RetentionReport {
    StoredRetention(
      RetentionLimits(ageMs: ageMs, maximumBytes: room), of: store, sessionsMs: sessionsMs, tombstoneReason: tombstone
    ).run(nowMs: WallClock.nowMs + Int64(days * Self.dayS) * 1_000, isDryRun: isDryRun)
  }

  /// The sizes of all objects of sessions.
  private var bytes: Int {
    objects.keys.filter { $0.hasPrefix("output/") }.reduce(0) { $0 + (objects[$1]?.count ?? 0) }
  }

  private func starts(_ session: String, _ store: ObjectStore) throws -> [Int64] {
    let stored = store.session(try id(session))
    return try stored.published().map { try stored.whole($0).entries.map(\.startMs) } ?? []
  }

  private func requireVerified(_ session: String = "walk") throws {
    let report = try StoredSessions(objects, name: "s3://test/").verify(
      id(session), in: package.scratch.directory("verified-\(UUID().uuidString)"), copying: { _, _ in },
      progress: { _, _ in })
    #expect(report.problems.isEmpty, "\(report.problems)")
  }

  /// Ends a session, and announces that.
  private func end(_ session: String, _ store: ObjectStore) throws {
    let id = try id(session)
    guard case .ended = try store.end(id, .quiet, ifQuietForMs: nil, cancellation: .never) else {
      Issue.record("it goes on")
      return
    }
    if let request = try store.takeEndRequest(of: id) { try store.removeEndRequest(request) }
  }

  private func ageManifests(of session: String = "walk", seconds: Int) {
    for key in objects.keys where key.hasPrefix("output/\(session)/segment-") && key.hasSuffix(".json") {
      objects.age(key, seconds: seconds)
    }
  }

  private func snapshot() -> [String: [UInt8]] {
    Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, objects[$0] ?? []) })
  }

  private func restore(_ before: [String: [UInt8]]) {
    for key in objects.keys { objects[key] = nil }
    for (key, bytes) in before { objects[key] = bytes }
  }

  // MARK: - What goes

  @Test func oldestSegmentsOfAllSessionsGoUntilThereIsRoom() throws {
    let store = try store()
    try publish(0..<60, store)
    // Another session begins in the middle of the first.
    try publish(33..<73, of: "other", store)
    let all = try (starts("walk", store) + starts("other", store)).sorted()
    #expect(all.count == 20)
    let before = bytes
    let room = before * 6 / 10
    var removed = 0
    for _ in 0..<4 {
      let report = retain(store, room: room)
      #expect(report.failures.isEmpty, "\(report.failures)")
      removed += report.segments
    }
    #expect((6...12).contains(removed) && bytes <= room && bytes > room - before / 8, "\(bytes) of \(room)")
    #expect(try (starts("walk", store) + starts("other", store)).sorted() == Array(all.dropFirst(removed)))
    #expect(retain(store, room: room).segments == 0)
    // The last segments of sessions that go on stay.
    #expect(retain(store, room: 1).failures.isEmpty)
    #expect(try starts("walk", store) == [start(55)] && starts("other", store) == [start(68)])
    for session in ["walk", "other"] { try requireVerified(session) }
    // They go with their sessions, once the ends are announced.
    for session in ["walk", "other"] { ageManifests(of: session, seconds: 2 * Self.dayS) }
    #expect(retain(store, room: 1).ending.isEmpty)
    #expect(try retain(store, room: 1, days: 2).ending == [id("walk"), id("other")])
    for session in ["walk", "other"] { try end(session, store) }
    #expect(retain(store, room: 1).removed.map(\.isWhole) == [true, true])
    #expect(objects.keys == ["index/other/head.json", "index/walk/head.json"])
  }

  @Test func completeSessionGoesAsAWholeBeforeNewerSegments() throws {
    let store = try store()
    try publish(0..<20, of: "first", store)
    try publish(30..<60, store)
    try end("first", store)
    let report = retain(store, room: bytes * 7 / 10)
    #expect(report.failures.isEmpty && report.ending.isEmpty)
    #expect(try report.removed.map(\.session) == [id("first")] && report.removed[0].isWhole && report.segments == 4)
    #expect(try starts("walk", store).count == 6)
  }

  /// Both limits at once: what is gone for its age does not count for the bytes.
  @Test func segmentsAreNotRemovedTwice() throws {
    let store = try store()
    try publish(0..<30, store)
    try publish(30..<60, store)
    let room = bytes * 7 / 10
    for second in stride(from: 0, to: 30, by: 5) {
      objects.age("output/walk/" + SegmentName.manifest(start(second)), seconds: Self.hourS)
    }
    #expect(retain(store, room: room, ageMs: 60_000).segments == 6)
    #expect(try starts("walk", store).count == 6)
  }

  /// A late segment of old time keeps its session.
  @Test func sessionWithALateSegmentDoesNotGoAsAWhole() throws {
    let store = try store()
    try publish(0..<10, store)
    try publish(20..<30, store)
    ageManifests(seconds: 2 * Self.dayS)
    try publish(10..<15, store)
    let report = retain(store, ageMs: Int64(Self.dayS) * 1_000, sessionsMs: Int64(Self.dayS) * 1_000)
    #expect(report.failures.isEmpty && report.ending.isEmpty && report.segments == 2)
    #expect(try starts("walk", store).first == start(10))
  }

  @Test func oldSessionIsEndedThenRemovedWithATombstone() throws {
    let store = try store()
    try publish(0..<10, store)
    let dayMs = Int64(Self.dayS) * 1_000
    #expect(retain(store, sessionsMs: dayMs, tombstone: "old").ending.isEmpty)
    ageManifests(seconds: Self.dayS + 1)
    #expect(try retain(store, sessionsMs: dayMs, isDryRun: true).ending == [id("walk")])
    #expect(objects["ending/walk"] == nil)
    #expect(try retain(store, sessionsMs: dayMs, tombstone: "old").ending == [id("walk")])
    try end("walk", store)
    let said = retain(store, sessionsMs: dayMs, tombstone: "old", isDryRun: true)
    #expect(try starts("walk", store).count == 2)
    #expect(retain(store, sessionsMs: dayMs, tombstone: "old").removed == said.removed && said.segments == 2)
    #expect(try store.tombstone(of: id("walk"))?.reason == "old" && objects.keys == ["index/walk/head.json"])
  }

  @Test func dryRunRemovesNothingAndSaysTheSame() throws {
    let store = try store(.hls)
    try publish(0..<60, store)
    try publish(60..<80, of: "other", store)
    let before = snapshot()
    for room in [bytes / 2, 1] {
      let said = retain(store, room: room, isDryRun: true)
      #expect(snapshot() == before && said.segments > 0)
      #expect(retain(store, room: room).removed == said.removed)
      restore(before)
    }
    ageManifests(seconds: Self.hourS)
    objects.age("output/walk/" + SegmentName.manifest(start(30)), seconds: 1)
    let said = retain(store, ageMs: 60_000, isDryRun: true)
    #expect(snapshot() == before && said.segments == 6)
    #expect(retain(store, ageMs: 60_000).removed == said.removed)
  }

  // MARK: - The bytes

  /// Fragments, thumbnails and events count, too.
  @Test func bytesOfAllObjectsAreEstimated() throws {
    let store = try store([.hls, .thumbnails, .sentry])
    for second in stride(from: 0, to: 800, by: 40) { try publish(second..<(second + 40), store) }
    try publish(0..<30, of: "other", store)
    let sessions = StoredSessions(objects, name: "s3://test/")
    let heads = StoredHeads(of: sessions, countsGaps: false)
    try heads.readAll {}
    let totals = heads.published
    #expect(try totals[id("walk")]?.segments == 160 && store.session(id("walk")).published()?.isLong == true)
    let found = try StoredBytes(of: sessions).bytes(of: totals, .never)
    let sum = found.values.reduce(0) { $0 + $1.lasting }
    // The initialization segment counts for nothing.
    #expect(sum > bytes * 19 / 20 && sum < bytes * 21 / 20, "\(sum) of \(bytes)")
    #expect(try #require(found[id("walk")]).live > 0)
  }

  @Test func sessionsThatAreNotMeasuredAreLikeTheOthers() throws {
    var one = SessionBytes()
    (one.videos, one.segments, one.live, one.described, one.shared) = (1_000, 10, 1_200, 50, 30)
    let twice = one.scaled(toVideos: 2_000, segments: 20)
    #expect((twice.videos, twice.live, twice.described, twice.shared) == (2_000, 2_400, 100, 60))
    #expect(SessionBytes().scaled(toVideos: 5, segments: 1).lasting == 5)
    // More sessions than are measured at once.
    let store = try store(.hls)
    try publish(0..<10, store)
    let wanted = bytes
    let copies = StoredBytes.maximumMeasured + 20
    let walk = snapshot()
    for number in 0..<copies {
      for (key, bytes) in walk {
        let text = String(decoding: bytes, as: UTF8.self)
        let isHead = key.hasSuffix("head.json")
        let copy = isHead ? Array(text.replacing("\"walk\"", with: "\"copy\(number)\"").utf8) : bytes
        objects[key.replacing("/walk/", with: "/copy\(number)/")] = copy
      }
    }
    let client = StoppingObjects(objects)
    let sessions = StoredSessions(client, name: "s3://test/")
    let heads = StoredHeads(of: sessions, countsGaps: false)
    try heads.readAll {}
    let totals = heads.published
    #expect(totals.count == copies + 1)
    let sizes = try StoredBytes(of: sessions).bytes(of: totals, .never)
    let sum = sizes.values.reduce(0) { $0 + $1.lasting }
    #expect(sum > wanted * (copies + 1) * 9 / 10 && sum < wanted * (copies + 1) * 11 / 10)
  }

  // MARK: - Requests

  /// A pass needs no request for a session that has not changed, but for the lists of the index.
  @Test func unchangedSessionsNeedListsOnly() throws {
    let writer = try store()
    for session in ["walk", "other", "third", "fourth"] { try publish(0..<10, of: session, writer) }
    let client = StoppingObjects(objects)
    let retention = StoredRetention(
      RetentionLimits(ageMs: 60_000, maximumBytes: 1 << 40), of: try store([], client))
    #expect(retention.run().failures.isEmpty)
    let first = client.requests
    #expect(retention.run().failures.isEmpty)
    // Two lists with heads, and an empty one.
    #expect(client.requests - first == 3, "\(client.requests - first)")
    #expect(retention.intervalMs == 600_000)
    try publish(10..<15, writer)
    let second = client.requests
    #expect(retention.run().failures.isEmpty)
    #expect((4...12).contains(client.requests - second), "\(client.requests - second)")
  }

  /// Another worker makes a pass before any request of a pass: together they remove as much as one.
  @Test func twoPassesAtOnceRemoveAsMuchAsOne() throws {
    let store = try store(.hls)
    try publish(0..<60, store)
    try publish(33..<73, of: "other", store)
    let room = bytes * 6 / 10
    let before = snapshot()
    let client = StoppingObjects(objects)
    let wanted = retain(try self.store(.hls, client), room: room)
    #expect(wanted.failures.isEmpty && wanted.segments > 4)
    for request in stride(from: 0, to: client.requests, by: Extent.of(3, full: 1)) {
      restore(before)
      let other = Mutex<RetentionReport?>(nil)
      let late = StoppingObjects(objects) { [self] number in
        if number == request { other.withLock { $0 = retain(store, room: room) } }
      }
      let report = retain(try self.store(.hls, late), room: room)
      let second = try #require(other.withLock { $0 })
      #expect(report.failures.isEmpty && second.failures.isEmpty, "request \(request)")
      let both = report.segments + second.segments
      #expect((wanted.segments...wanted.segments + 1).contains(both), "\(request): \(both) of \(wanted.segments)")
      for session in ["walk", "other"] { try requireVerified(session) }
    }
  }

  // MARK: - Crashes and others

  /// The process is killed before each of its requests. The next pass finishes.
  @Test func killedPassIsFinishedByTheNextOne() throws {
    let store = try store([.hls, .thumbnails])
    try publish(0..<40, store)
    let room = bytes * 6 / 10
    let before = snapshot()
    let client = StoppingObjects(objects)
    #expect(retain(try self.store([], client), room: room).failures.isEmpty)
    let wanted = try starts("walk", store)
    #expect(wanted.count < 8 && client.requests > 30)
    for request in stride(from: 0, to: client.requests, by: Extent.of(3, full: 1)) {
      restore(before)
      let killed = StoppingObjects(objects, after: request)
      #expect(retain(try self.store([], killed), room: room).failures.count == 1, "request \(request)")
      // A reader sees a whole session after the crash.
      let left = try starts("walk", store)
      #expect(left.count >= wanted.count && left.last == wanted.last, "request \(request)")
      let next = try self.store([.hls, .thumbnails])
      #expect(retain(next, room: room).failures.isEmpty, "request \(request)")
      #expect(try starts("walk", store) == wanted, "request \(request)")
      #expect(try store.session(id("walk")).published()?.retention?.isRemoving == false)
      #expect(next.flushPending(all: true).isEmpty)
      let old = objects.keys.filter { key in
        ["output/walk/segment-", "output/walk/thumbnails/segment-"].contains { prefix in
          key.hasPrefix(prefix) && Int64(key.dropFirst(prefix.count).prefix(13)).map { $0 < wanted[0] } == true
        }
      }
      #expect(old == [], "request \(request)")
      try requireVerified()
    }
  }

  /// The same while a session goes as a whole, with a tombstone and without.
  @Test(arguments: [nil, "old"])
  func killedRemovalOfASessionIsFinishedByTheNextPass(tombstone: String?) throws {
    let store = try store(.hls)
    try publish(0..<20, store)
    try end("walk", store)
    ageManifests(seconds: Self.dayS)
    let hourMs = Int64(Self.hourS) * 1_000
    let before = snapshot()
    let client = StoppingObjects(objects)
    #expect(retain(try self.store([], client), sessionsMs: hourMs, tombstone: tombstone).segments == 4)
    for request in 0..<client.requests {
      restore(before)
      ageManifests(seconds: Self.dayS)
      let killed = StoppingObjects(objects, after: request)
      _ = retain(try self.store([], killed), sessionsMs: hourMs, tombstone: tombstone)
      let next = StoredRetention(RetentionLimits(), of: store, sessionsMs: hourMs, tombstoneReason: tombstone).run()
      #expect(next.failures.isEmpty, "request \(request): \(next.failures)")
      #expect(objects.keys == ["index/walk/head.json"], "request \(request)")
      #expect(try store.session(id("walk")).tombstone()?.reason == tombstone, "request \(request)")
      if tombstone == nil { #expect(try !store.session(id("walk")).head().isRemoving) }
    }
    // A session that came anew is left alone.
    if tombstone == nil {
      try publish(40..<50, self.store())
      #expect(retain(store, ageMs: hourMs).removed.isEmpty)
      #expect(try starts("walk", store).count == 2)
    }
  }

  /// Before a request of a publication another worker removes segments that the publisher has just found in the index.
  @Test(arguments: [StoreLayout.plain, .packed])
  func segmentsThatGoBetweenTwoRequestsAreNotDamage(layout: StoreLayout) throws {
    let views: ViewKinds = layout == .plain ? [.hls, .thumbnails, .sentry] : [.thumbnails, .sentry]
    func store(_ client: (any ObjectClient)?) throws -> ObjectStore {
      try package.store(client, views, isWindow: true, layout: layout)
    }
    for second in [0, 10, 20, 30] { try publish(second..<(second + 10), store(nil)) }
    let before = snapshot()
    var number = 0
    var removed = 0
    while true {
      restore(before)
      let passes = Mutex(0)
      let other = try store(nil)
      let client = StoppingObjects(objects) { [self, number] request in
        guard request == number else { return }
        let report = retain(other, room: 1)
        passes.withLock { $0 = report.segments }
      }
      let publisher = try store(client)
      #expect(throws: Never.self, "request \(number)") {
        _ = try package.encoder(publisher).publish(package.batch(40..<50))
      }
      let failures = publisher.flushPending(all: true)
      #expect(failures.isEmpty, "request \(number): \(failures)")
      #expect(try starts("walk", publisher).last == start(45), "request \(number)")
      guard client.requests > number else { break }
      removed += passes.withLock { $0 }
      number += 1
    }
    #expect(number > 10 && removed > 6 * number / 2, "\(removed) segments before \(number) requests")
  }

  /// Two workers make passes, and two publish.
  @Test func passesAndPublicationsAtOnceLeaveWholeSessions() throws {
    let stores = try (0..<4).map { _ in try store(.hls) }
    let batches = Extent.of(8, full: 40)
    try publish(0..<10, stores[0])
    let room = bytes * 3
    let publishing = ThreadGroup()
    for writer in 0..<2 {
      try publishing.start { [self] in
        for number in 0..<batches {
          let second = 10 * (2 * number + writer + 1)
          #expect(throws: Never.self) {
            _ = try package.encoder(stores[writer]).publish(package.batch(second..<(second + 10)))
          }
        }
      }
    }
    let isDone = Flag()
    let removing = ThreadGroup()
    for number in 2..<4 {
      try removing.start { [self] in
        while !isDone.isSet {
          let failures = retain(stores[number], room: room).failures
          #expect(failures.isEmpty, "\(failures)")
        }
      }
    }
    publishing.join()
    isDone.set()
    removing.join()
    for store in stores { #expect(store.flushPending(all: true).isEmpty) }
    for _ in 0..<3 { #expect(retain(stores[2], room: room).failures.isEmpty) }
    package.pass(ms: 301_000)
    #expect(stores[0].flushPending(all: true).isEmpty)
    #expect(bytes <= room * 11 / 10 && bytes > room / 2, "\(bytes) of \(room)")
    #expect(try starts("walk", stores[0]).last == start(20 * batches + 5))
    try requireVerified()
  }
}
