import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions
@testable import Showing

/// First segments of a session that goes on are removed.
@Suite struct SegmentRetentionTests {
  private let package: GrowingPackage
  private let session: SessionDirectory

  init() throws {
    package = try GrowingPackage()
    session = SessionDirectory(output: package.output, session: try package.session)
  }

  private var path: String { session.path }

  /// - Parameter age: in seconds, at the end of a number of seconds since the session's start.
  @discardableResult
  private func retain(
    seconds age: Int, at second: Int, maximumBytes: Int? = nil, _ views: SessionViews? = nil, isDryRun: Bool = false
  ) throws -> RetentionReport {
    try package.dateNewSegments()
    let report = RollingRetention(
      RetentionLimits(ageMs: Int64(age) * 1_000, maximumBytes: maximumBytes), output: package.output,
      views: views ?? package.views(), temporary: { package.output + "/.temporary" }
    ).run(nowMs: GrowingPackage.startMs + Int64(second) * 1_000, isDryRun: isDryRun)
    #expect(report.failures.isEmpty, "\(report.failures)")
    return report
  }

  private func start(_ second: Int) -> Int64 { GrowingPackage.startMs + Int64(second) * 1_000 }

  /// Compares all that readers see with what the segments' manifests say.
  private func requireRight(isWindow: Bool = true, hasPlaylist: Bool = true) throws {
    let segments = try session.publishedStarts().map(session.segment)
    for (name, bytes) in IndexText(try #require(SessionIndex(session: session.session, segments: segments))).files {
      let there = try DurableFile.contents(of: path + "/" + name, limit: .max) ?? []
      #expect(String(decoding: there, as: UTF8.self) == String(decoding: bytes, as: UTF8.self), "\(name)")
    }
    #expect(try Verification.report(on: path).problems == [])
    guard hasPlaylist else { return }
    #expect(try HLSPlaylist.starts(in: playlist()) == segments.map(\.startMs))
    #expect(try Conformance.faults(ofPlaylistsIn: path + "/hls", isWindow: isWindow) == [])
  }

  private func playlist() throws -> [UInt8] {
    try #require(try DurableFile.contents(of: path + "/hls/session.m3u8", limit: .max))
  }

  @Test func oldSegmentsGoAndTheOthersStayAsTheyAre() throws {
    let views = package.views()
    for second in stride(from: 0, to: 80, by: 10) { try package.publish(second..<(second + 10), views) }
    try package.dateNewSegments()
    let before = try snapshot(of: path)
    #expect(try retain(seconds: 80, at: 80).removed.isEmpty)
    #expect(try retain(seconds: 47, at: 80, isDryRun: true).segments == 6)
    #expect(try snapshot(of: path) == before)
    let report = try retain(seconds: 47, at: 80)
    #expect(report.segments == 6 && report.untilMs == start(30) && report.removed.map(\.session) == [session.session])
    let videos = before.filter { $0.key.hasSuffix(".mp4") && !$0.key.contains("/") }.sorted { $0.key < $1.key }
    #expect(report.bytes == videos.prefix(6).reduce(0) { $0 + $1.value.bytes.count })
    #expect(try session.publishedStarts() == (6..<16).map { start(5 * $0) })
    try requireRight()
    // All that stays has its bytes: a player with the playlist from before gets them, and those that go, for five minutes.
    let after = try snapshot(of: path)
    for (name, file) in before where name.hasSuffix(".m4s") || name.contains("init-") {
      #expect(after[name]?.bytes == file.bytes, "\(name)")
    }
    #expect(String(decoding: try playlist(), as: UTF8.self).contains("#EXT-X-MEDIA-SEQUENCE:6\n"))
    package.pass(ms: 301_000)
    let staging = try package.staging()
    #expect(package.views().flushPending(staging, all: true).isEmpty)
    staging.remove()
    #expect(try package.files() == package.wanted())
    // The session goes on.
    try package.publish(80..<90, package.views())
    try requireRight()
    #expect(try session.retention()?.segments == 6)
  }

  @Test func lastSegmentOfASessionThatGoesOnStays() throws {
    try package.publish(0..<20, package.views())
    try package.dateNewSegments()
    let time = timespec(tv_sec: Int(start(100_000) / 1_000), tv_nsec: 0)
    #expect(utimensat(AT_FDCWD, path + "/" + SegmentName.manifest(start(15)), [time, time], 0) == 0)
    #expect(try retain(seconds: 10, at: 100_000).segments == 3)
    #expect(try retain(seconds: 10, at: 100_005).segments == 0)
    #expect(try session.publishedStarts() == [start(15)])
    try requireRight()
  }

  /// Sets when the segments that are there, and those that were removed, were published.
  private func setPublication(unixMs: Int64) throws {
    for start in try session.publishedStarts() {
      let time = timespec(tv_sec: Int(unixMs / 1_000), tv_nsec: 0)
      #expect(utimensat(AT_FDCWD, path + "/" + SegmentName.manifest(start), [time, time], 0) == 0)
    }
    if let before = try session.retention() {
      try session.write(
        SessionRetention(
          startMs: before.startMs, originMs: before.originMs, segments: before.segments, isRemoving: false,
          publishedMs: unixMs), temporary: package.output + "/.temporary")
    }
  }

  /// Nothing was published in it for long. Its end is announced before it goes as a whole.
  @Test(arguments: [false, true]) func sessionEndsBeforeARuleRemovesIt(isRequested: Bool) throws {
    try package.publish(0..<20, package.views())
    try setPublication(unixMs: start(0))
    let requests = EndRequestFiles(output: package.output)
    if isRequested {
      try requests.add(EndRequest(session.session, .request), temporary: package.output + "/.temporary")
    } else {
      #expect(try retain(seconds: 10, at: 100_000, isDryRun: true).ending == [session.session])
      let report = try retain(seconds: 10, at: 100_000)
      #expect(report.ending == [session.session] && report.segments == 0)
      #expect(try session.recordedEnd()?.cause == .quiet && HLSPlaylist.hasEnded(playlist()))
    }
    // While the announcement waits, only the first segments go.
    let report = try retain(seconds: 10, at: 100_000)
    #expect(report.ending == [session.session] && report.segments == 3)
    #expect(try retain(seconds: 10, at: 100_000).segments == 0 && session.publishedStarts() == [start(15)])
    #expect(try Verification.report(on: path).problems == [])
    let held = try #require(try requests.take(session.session) { _ in false })
    let staging = try package.staging()
    let store = DirectoryStore(staging: staging, index: package.views())
    guard
      case .ended(let ended) = try store.end(
        session.session, held.request.cause, ifQuietForMs: nil, cancellation: .never)
    else { return #expect(Bool(false), "it has not ended") }
    #expect(ended.end.cause == (isRequested ? .request : .quiet))
    try store.removeEndRequest(held)
    staging.remove()
    let last = try retain(seconds: 10, at: 100_000)
    #expect(last.removed.map(\.isWhole) == [true] && last.segments == 1 && last.ending.isEmpty)
    #expect(try names(in: package.output).filter { $0 != ".staging" } == [])
  }

  /// The removal of segments, and a repair of the views, are no publications.
  @Test func onlyPublicationsKeepASessionOpen() throws {
    let hourMs: Int64 = 3_600_000
    let staging = try package.staging()
    defer { staging.remove() }
    let store = DirectoryStore(staging: staging, index: package.views())
    func quiet() throws -> [SessionID] { try store.quietSessions(forMs: hourMs) }
    try package.publish(0..<20, package.views())
    #expect(try quiet().isEmpty)
    try setPublication(unixMs: WallClock.nowMs - 2 * hourMs)
    // A worker that has looked does not look again before the session can be quiet.
    #expect(try quiet().isEmpty)
    let other = DirectoryStore(staging: staging, index: package.views())
    func setLast(_ second: Int, hours: Int64) throws {
      let time = timespec(tv_sec: Int((WallClock.nowMs - hours * hourMs) / 1_000), tv_nsec: 0)
      #expect(utimensat(AT_FDCWD, path + "/" + SegmentName.manifest(start(second)), [time, time], 0) == 0)
    }
    try setPublication(unixMs: WallClock.nowMs - 4 * hourMs)
    try setLast(15, hours: 2)
    let seconds = Int((WallClock.nowMs - GrowingPackage.startMs) / 1_000)
    try retain(seconds: 3 * 3_600, at: seconds)
    #expect(try session.retention()?.segments == 3)
    try Data().write(to: URL(fileURLWithPath: path + "/session.json"))
    _ = try Verification.report(on: path, repair: true)
    #expect(try Verification.report(on: path).problems == [])
    #expect(try other.quietSessions(forMs: hourMs) == [session.session])
    guard case .goesOn = try other.end(session.session, .quiet, ifQuietForMs: 3 * hourMs, cancellation: .never)
    else { return #expect(Bool(false), "it has ended") }
    // The segment that was published last is removed. It keeps the session open.
    try package.publish(40..<45, package.views())
    try setLast(40, hours: 4)
    try setLast(15, hours: 2)
    let last = try #require(try session.publication(since: WallClock.nowMs - 3 * hourMs))
    let rule = RemovalRule.starting(beforeMs: start(40), idleSinceMs: 0)
    var removed = RemovedSegments(session.session)
    let removal = SegmentRemoval(
      directory: session, views: package.views(), temporary: { package.output + "/.temporary" }, cancellation: .never)
    _ = try removal.step(rule, &removed)
    #expect(try session.publishedStarts() == [start(40)] && session.retention()?.publishedMs == last)
    #expect(try session.publication(since: last) == last && session.publication(since: last + 1) == nil)
  }

  /// A device whose clock is a year behind, and one whose clock is a year ahead.
  @Test func picturesOfAWrongClockStayAsLongAsNewOnes() throws {
    let year = 365 * 86_400
    for second in [-year, 0, year] { try package.publish(second..<(second + 5), package.views()) }
    let all = [-year, 0, year].map(start)
    let publishedMs = WallClock.nowMs - 60_000
    try setPublication(unixMs: publishedMs)
    func retain(atMs nowMs: Int64) -> RetentionReport {
      RollingRetention(
        RetentionLimits(ageMs: 86_400_000), output: package.output, views: package.views(),
        temporary: { package.output + "/.temporary" }
      ).run(nowMs: nowMs)
    }
    #expect(retain(atMs: publishedMs + 86_400_000 - 1_000).segments == 0)
    #expect(try session.publishedStarts() == all)
    let report = retain(atMs: publishedMs + 86_400_000)
    #expect(report.ending == [session.session] && report.failures.isEmpty)
    #expect(retain(atMs: publishedMs + 86_400_000).segments == 2)
    #expect(try session.publishedStarts() == [start(year)])
  }

  @Test func batchFromBeforeTheFirstSegmentIsRefused() throws {
    let views = package.views()
    let early = try package.batch(0..<12)
    let staging = try package.staging()
    defer { staging.remove() }
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: views)
    let first = try encoder.publish(early)[0]
    #expect(first.segments == 3)
    _ = try encoder.publish(package.batch(12..<30))
    #expect(views.flushPending(staging, all: true).isEmpty)
    try retain(seconds: 20, at: 27, views)
    #expect(try session.publishedStarts().first == start(5))
    // The batch whose first part was removed is still known.
    let again = try encoder.publish(early)[0]
    #expect(again.duplicate && again.startMs == start(5) && again.refusal == nil)
    try retain(seconds: 20, at: 40, views)
    #expect(try session.publishedStarts().first == start(17))
    let refused = try encoder.publish(early)[0]
    #expect(refused.segments == 0 && refused.refusal?.contains("earlier segments were removed") == true)
    // Of a late batch that goes on behind the start, the rest is published.
    try retain(seconds: 172, at: 200, views)
    _ = try encoder.publish(package.batch(60..<65))
    #expect(views.flushPending(staging, all: true).isEmpty)
    try requireRight()
    #expect(try encoder.publish(package.batch(2..<9))[0].refusal != nil)
  }

  @Test func batchThatBeginsBeforeTheFirstSegmentIsPublishedFromThereOn() throws {
    let views = package.views()
    try package.publish(20..<40, views)
    try package.publish(60..<65, views)
    try retain(seconds: 10, at: 47, views)
    #expect(try session.publishedStarts() == [start(35), start(60)])
    let staging = try package.staging()
    defer { staging.remove() }
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: views)
    // Its pictures end before the first segment, and go on behind it.
    let late = try package.batch(25..<29)
    let rest = try package.batch(42..<51)
    for name in try names(in: rest) {
      try FileManager.default.moveItem(atPath: rest + "/" + name, toPath: late + "/" + name)
    }
    let receipt = try encoder.publish(late)[0]
    #expect(receipt.segments == 2)
    #expect(receipt.warnings.contains { $0.hasPrefix("2 of its first segments are not published") })
    #expect(try session.publishedStarts() == [35, 42, 47, 60].map(start))
    #expect(views.flushPending(staging, all: true).isEmpty)
    try requireRight()
    #expect(try encoder.publish(late)[0].duplicate)
    #expect(try session.publishedStarts() == [35, 42, 47, 60].map(start))
  }

  /// Whatever is left of a removal that a crash interrupted is invisible, and the next pass removes it.
  @Test func interruptedRemovalIsFinished() throws {
    try package.publish(0..<40, package.views())
    let whole = try snapshot(of: path)
    try retain(seconds: 10, at: 32)
    let record = try #require(try session.retention())
    #expect(record.startMs == start(20) && record.segments == 4 && !record.isRemoving)
    // Everything is as before the removal, but for the record.
    for (name, file) in whole {
      try Data(file.bytes).write(to: URL(fileURLWithPath: path + "/" + name))
    }
    var interrupted = record
    interrupted.isRemoving = true
    try session.write(interrupted, temporary: package.output + "/.temporary")
    _ = try MarkerFiles(beside: session).add(session.session, known: nil)
    #expect(try session.publishedStarts().first == start(20))
    #expect(try Verification.report(on: path).problems == [])
    let catalog = try SessionCatalog(of: package.output)
    #expect(try catalog.playback(of: session.session)?.segments.first?.startMs == start(20))
    #expect(try catalog.playback(of: session.session)?.problems == [])
    // A publication leaves the first segments out of all views.
    try package.publish(40..<45, package.views())
    try requireRight()
    #expect(FileManager.default.fileExists(atPath: path + "/" + SegmentName.manifest(start(0))))
    try retain(seconds: 1_000, at: 50)
    try requireRight()
    #expect(try session.retention() == record)
    #expect(try names(in: path).filter { $0.hasPrefix("segment-") }.count == 10)
    #expect(!FileManager.default.fileExists(atPath: package.output + "/.behind/walk"))
  }

  @Test func oldestSegmentsOfAllSessionsGoUntilThereIsRoom() throws {
    let views = SessionViews()
    try package.publish(0..<30, views)
    // Another session begins in the middle of the first.
    let other = SessionDirectory(output: package.output, session: try #require(SessionID("other")))
    let staging = try package.staging()
    let batch = try package.batch(13..<33)
    let path = package.scratch.path("other@1")
    try FileManager.default.moveItem(atPath: batch, toPath: path)
    _ = try BatchEncoder(BatchEncoder.Options(), staging: staging, index: views).publish(path)
    #expect(views.flushPending(staging, all: true).isEmpty)
    staging.remove()
    func sizes() throws -> [(startMs: Int64, bytes: Int)] {
      try [session, other].flatMap { directory in
        try directory.publishedStarts().map(directory.segment).map { ($0.startMs, $0.bytes) }
      }.sorted { $0.startMs < $1.startMs }
    }
    let all = try sizes()
    #expect(all.count == 10)
    // Room for about half of the segments, and the files of both sessions.
    func bytes() throws -> Int { try diskBytes(of: session.path) + diskBytes(of: other.path) }
    let before = try bytes()
    let room = before * 85 / 100
    let report = try retain(seconds: 1_000_000, at: 40, maximumBytes: room)
    #expect((4...7).contains(report.segments) && report.removed.count == 2, "\(report.segments)")
    #expect(try sizes().map(\.startMs) == all.dropFirst(report.segments).map(\.startMs))
    let after = try bytes()
    #expect(after <= RetentionLimits.most(of: room) && after > room - before / 5, "\(after) of \(before)")
    // Views that are written after a pass count in the next one.
    try retain(seconds: 1_000_000, at: 40, maximumBytes: room)
    #expect(try retain(seconds: 1_000_000, at: 40, maximumBytes: room).segments == 0)
    // The last segments of sessions that go on stay.
    try retain(seconds: 1_000_000, at: 40, maximumBytes: 1)
    #expect(try sizes().map(\.startMs) == [start(25), start(28)])
    for directory in [session, other] { #expect(try Verification.report(on: directory.path).problems == []) }
    // Days later they go, too, once their ends are announced.
    let days = Int(WallClock.nowMs - GrowingPackage.startMs) / 1_000 + 3 * 86_400
    let last = try retain(seconds: 10_000_000_000, at: days, maximumBytes: 1)
    #expect(last.ending == [session.session, other.session] && last.segments == 0)
    for directory in [session, other] { try EndRequestFiles(output: package.output).remove(directory.session) }
    try retain(seconds: 10_000_000_000, at: days, maximumBytes: 1)
    #expect(try names(in: package.output).filter { $0 != ".staging" } == [])
  }

  /// Each segment has a fragment as large as its video. It stays for players that are late, if there is room for it.
  @Test func fragmentsCountAndGoBeforeTheirTimeForTheLimitOnly() throws {
    let views = package.views()
    for second in stride(from: 0, to: 100, by: 10) { try package.publish(second..<(second + 10), views) }
    let room = try diskBytes(of: path) / 2
    let report = try retain(seconds: 1_000_000, at: 100, maximumBytes: room, views)
    #expect((8...12).contains(report.segments), "\(report.segments)")
    #expect(try diskBytes(of: path) <= room + room / 10)
    #expect(try package.files() == package.wanted())
    try requireRight()
    #expect(try retain(seconds: 1_000_000, at: 100, maximumBytes: room, views).segments == 0)
    // A single fragment is less than a tenth.
    let next = try retain(seconds: 1_000_000, at: 100, maximumBytes: diskBytes(of: path) - 1, views)
    #expect(next.segments == 1)
    #expect(try package.files().subtracting(package.wanted()).count == 1)
    try requireRight()
  }

  @Test func heldSessionIsLeftForTheNextPass() throws {
    try package.publish(0..<30, package.views())
    let lock = open(path, O_RDONLY | O_DIRECTORY)
    #expect(flock(lock, LOCK_EX) == 0)
    let report = try retain(seconds: 73, at: 100)
    #expect(report.held == [session.session] && report.removed.isEmpty)
    close(lock)
    #expect(try retain(seconds: 73, at: 100).segments == 5)
  }

  /// The updates of views that failed, but for those of a session that another thread holds: they are tried again.
  private static func failures(of views: SessionViews, _ staging: Staging) -> [String] {
    views.flushPending(staging).filter { !($0.error is SessionHeld) }.map { "\($0)" }
  }

  /// Two publishers, and two removals with other limits, at once.
  @Test(arguments: 1...Extent.of(2, full: 12))
  func publicationsAndRemovalsAtOnceEndAsARebuild(seed: Int) throws {
    let views = package.views()
    let batches = Extent.of(30, full: 120)
    let paths = try (0..<batches).map { try package.batch((10 * $0)..<(10 * $0 + 10)) }
    let published = Mutex<[Receipt]>([])
    let failures = Mutex<[String]>([])
    let next = Mutex((batch: 0, isDone: false))
    let threads = ThreadGroup()
    let output = package.output
    for _ in 0..<2 {
      try threads.start {
        do {
          let staging = try Staging(output: output, worker: WorkerID())
          let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: views)
          while let number = next.withLock({ state in
            state.batch += 1
            return state.batch <= batches ? state.batch - 1 : nil
          }) {
            let receipts = try encoder.publish(paths[number])
            package.date(receipts.flatMap(\.published))
            published.withLock { $0 += receipts }
            failures.withLock { list in list += Self.failures(of: views, staging) }
          }
          staging.remove()
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    let removing = ThreadGroup()
    for number in 0..<2 {
      try removing.start {
        var random = Random(seed: 10 * seed + number)
        while !next.withLock({ $0.isDone }) {
          let now = next.withLock { 10 * min($0.batch, batches) }
          let report = RollingRetention(
            RetentionLimits(ageMs: random.int(50_000...150_000)), output: output, views: views,
            temporary: { output + "/.temporary\(number)" }
          ).run(nowMs: GrowingPackage.startMs + Int64(now) * 1_000)
          failures.withLock { $0 += report.failures.map { "\($0)" } }
          usleep(UInt32(random.int(0...20_000)))
        }
      }
    }
    threads.join()
    next.withLock { $0.isDone = true }
    removing.join()
    // Some segments are removed, however seldom the others had a turn.
    try retain(seconds: 100, at: 10 * batches, views)
    #expect(failures.withLock { $0 } == [])
    let staging = try package.staging()
    #expect(views.flushPending(staging, all: true).isEmpty)
    staging.remove()
    let record = try #require(try session.retention())
    #expect(!record.isRemoving && record.segments > 0)
    try requireRight()
    let kept = published.withLock { $0 }.flatMap(\.published).map(\.startMs).filter { $0 >= record.startMs }.sorted()
    #expect(try session.publishedStarts() == kept)
    #expect(try names(in: path).filter { $0.hasPrefix("segment-") }.count == 2 * kept.count)
    #expect(published.withLock { $0 }.allSatisfy { $0.refusal == nil || $0.published.isEmpty })
  }
}
