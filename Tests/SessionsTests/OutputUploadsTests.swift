import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// The sessions of an output go into a store, and nothing is removed here that is not there.
@Suite struct OutputUploadsTests {
  private let package: GrowingPackage
  private let views: SessionViews
  private let staging: Staging

  init() throws {
    package = try GrowingPackage()
    views = package.views()
    staging = try package.staging()
  }

  private var objects: MemoryObjects { package.objects }
  private var local: DirectoryStore { DirectoryStore(staging: staging, index: views) }
  private var id: SessionID { get throws { try package.session } }
  private var directory: SessionDirectory { get throws { SessionDirectory(output: package.output, session: try id) } }

  private static let hourMs: Int64 = 3_600_000

  private func publish(_ seconds: Range<Int>) throws {
    _ = try BatchEncoder(BatchEncoder.Options(), staging: staging, index: views).publish(package.batch(seconds))
    #expect(views.flushPending(staging, all: true).isEmpty)
  }

  private func end() throws {
    guard case .ended = try local.end(id, .request, ifQuietForMs: nil, cancellation: .never) else {
      Issue.record("it goes on")
      return
    }
  }

  private func store(_ client: (any ObjectClient)? = nil) throws -> ObjectStore {
    try package.store(client, [], layout: .packed)
  }

  /// - Parameter laterMs: from now.
  private func pass(
    _ rules: UploadRules = UploadRules(), _ client: (any ObjectClient)? = nil, laterMs: Int64 = 0,
    listener: OutputUploads.Listener = OutputUploads.Listener()
  ) throws -> UploadReport {
    OutputUploads(of: local, to: try store(client), rules, listener).run(nowMs: WallClock.nowMs + laterMs)
  }

  /// The files of a session here, but for views that are made anew for each place.
  private func files() throws -> [String: Data] { try Self.files(directory.path) }

  private static func files(_ path: String) throws -> [String: Data] {
    try FileManager.default.contentsOfDirectory(atPath: path).reduce(into: [:]) { files, name in
      let isView = name.hasPrefix(".") || [UploadRecord.file, SessionEnd.file, "hls"].contains(name)
      if !isView { files[name] = FileManager.default.contents(atPath: path + "/" + name) }
    }
  }

  private func stored() throws -> [String: Data] {
    let copy = try StoredSession(
      id, of: StoredSessions(objects, name: "s3://test/"), in: package.scratch.directory("copy-\(UUID())"), part: .whole
    ) { _, _ in }
    try copy.writeIndex()
    try copy.fetchVideos(of: nil) { _, _ in }
    return try Self.files(copy.path)
  }

  private func storedStarts() throws -> [Int64] {
    let session = try store().session(id)
    return try session.published().map { try session.whole($0).entries.map(\.startMs) } ?? []
  }

  private func seconds(_ starts: [Int64]) -> [Int64] { starts.map { ($0 - GrowingPackage.startMs) / 1_000 } }

  private var isHere: Bool { get throws { DurableFile.exists(try directory.path) } }

  // MARK: - A session that has ended

  @Test func endedSessionBecomesFourObjectsAndGoesHere() throws {
    for start in stride(from: 0, to: 40, by: 10) { try publish(start..<(start + 10)) }
    var report = try pass()
    // Nobody has ended it.
    #expect(report.uploaded.isEmpty && report.state?.sessions == 0 && objects.keys.isEmpty)
    try end()
    let before = try files()
    report = try pass()
    #expect(report.failures.isEmpty, "\(report.failures)")
    #expect(report.uploaded.map(\.segments) == [8] && report.uploaded.allSatisfy(\.isComplete))
    #expect(report.removed.map(\.segments) == [8])
    #expect(try !isHere)
    #expect(try stored() == before)
    #expect(objects.keys.count == 4 && objects.puts == 4, "\(objects.keys)")
    #expect(try UploadFiles(output: package.output).readState()?.sessions == 0)
    #expect(try pass().uploaded.isEmpty)
    #expect(objects.puts == 4)
  }

  /// Labels and files that came behind the upload are brought, too, before anything goes here.
  @Test func labelsAndExportsGoWithTheSession() throws {
    func add(_ second: Int64, _ text: String) throws {
      var list = LabelList()
      list.append(try #require(Label(timeMs: GrowingPackage.startMs + second * 1_000, kind: "step", text: text)))
      _ = try local.add(LabelAddition(list, to: id, name: text), cancellation: .never)
    }
    try publish(0..<20)
    try add(1, "first")
    try end()
    _ = try local.export(["film.mp4"], of: id, cancellation: .never) { _, _, target in
      try Data("film".utf8).write(to: URL(fileURLWithPath: target))
      return true
    }
    let kept = UploadRules(keptMs: Self.hourMs)
    #expect(try pass(kept).uploaded.count == 1 && pass(kept).uploaded.isEmpty && isHere)
    try add(16, "later")
    let before = try files()
    #expect(try pass(kept).uploaded.count == 1)
    var there = try stored()
    #expect(objects["output/walk/exports/film.mp4"].map { String(decoding: $0, as: UTF8.self) } == "film")
    there["exports"] = before["exports"]
    #expect(there == before && before.keys.count { $0.hasSuffix(".labels.json") } == 2)
    #expect(try pass(kept, laterMs: 2 * Self.hourMs).removed.count == 1 && !isHere)
    #expect(try stored().keys.count { $0.hasSuffix(".labels.json") } == 2)
  }

  /// The process dies before each request, and before it removes anything here. The next pass goes on.
  @Test func killedPassIsFinishedByTheNextOne() throws {
    for start in stride(from: 0, to: 20, by: 10) { try publish(start..<(start + 10)) }
    try end()
    let before = try files()
    let original = package.scratch.path("original")
    try FileManager.default.copyItem(atPath: directory.path, toPath: original)
    let client = StoppingObjects(objects)
    #expect(try pass(UploadRules(), client).failures.isEmpty)
    #expect(client.requests > 5)
    for request in 0..<client.requests {
      for key in objects.keys { objects[key] = nil }
      try FileManager.default.copyItem(atPath: original, toPath: directory.path)
      let killed = try pass(UploadRules(), StoppingObjects(objects, after: request))
      #expect(!killed.failures.isEmpty && killed.state?.sessions == 1 && killed.removed.isEmpty, "request \(request)")
      #expect(try files() == before)
      let next = try pass()
      #expect(next.failures.isEmpty, "request \(request): \(next.failures)")
      #expect(try !isHere && stored() == before, "request \(request)")
      #expect(objects.keys.count == 4, "request \(request)")
    }
  }

  @Test func storeThatIsAwayLosesNothing() throws {
    try publish(0..<10)
    try end()
    let before = try files()
    objects.fail(from: 0)
    for _ in 0..<3 {
      let report = try pass()
      #expect(report.failures.count == 1 && report.state?.sessions == 1 && report.state?.bytes ?? 0 > 0)
      #expect(try UploadFiles(output: package.output).readState()?.failure?.contains("refused a call") == true)
      #expect(try files() == before)
    }
    objects.fail(from: nil)
    #expect(try pass().failures.isEmpty)
    #expect(try !isHere && stored() == before)
  }

  /// Nothing can be written beside the sessions, as on a full disk.
  @Test func uploadsMakeRoomOnAFullDisk() throws {
    try publish(0..<10)
    try end()
    let before = try files()
    #expect(try UploadFiles(output: package.output).lock() != nil)
    // The names of the files that a pass writes are taken by directories.
    for name in [package.output + "/.uploads/state.json", try directory.path + "/" + UploadRecord.file] {
      try FileManager.default.createDirectory(atPath: name + "/full", withIntermediateDirectories: true)
    }
    let report = try pass()
    #expect(report.failures.isEmpty && report.removed.map(\.isWhole) == [true], "\(report.failures)")
    #expect(try !isHere && stored() == before)
  }

  /// A store that answers with other bytes than were written.
  @Test func damagedCopyKeepsTheSessionHere() throws {
    try publish(0..<10)
    try end()
    let key = "output/walk/pack-\(GrowingPackage.startMs).mp4"
    let isDamaged = Flag()
    let client = StoppingObjects(objects) { [objects] _ in
      guard !isDamaged.isSet, var bytes = objects[key] else { return }
      isDamaged.set()
      bytes[bytes.count / 3] ^= 1
      objects[key] = bytes
    }
    let report = try pass(UploadRules(), client)
    #expect(report.failures.count == 1 && report.removed.isEmpty)
    #expect(objects["index/walk/head.json"] == nil)
    #expect(try isHere)
  }

  @Test func sessionStaysUntilItsEventIsTaken() throws {
    try publish(0..<10)
    try end()
    let calls = Mutex(0)
    var listener = OutputUploads.Listener()
    listener.announce = { session in
      calls.withLock { calls in
        calls += 1
        return calls == 3 && session.segments == 2
      }
    }
    for _ in 0..<2 {
      #expect(try pass(listener: listener).removed.isEmpty)
      #expect(try isHere)
    }
    #expect(try pass(listener: listener).removed.count == 1)
    #expect(try !isHere)
    #expect(calls.withLock { $0 } == 3)
  }

  @Test func sessionStaysForItsTimeAndIsAnnouncedOnce() throws {
    try publish(0..<10)
    try end()
    let calls = Mutex(0)
    var listener = OutputUploads.Listener()
    listener.announce = { _ in
      calls.withLock { $0 += 1 }
      return true
    }
    let rules = UploadRules(keptMs: Self.hourMs)
    for _ in 0..<3 { #expect(try pass(rules, listener: listener).removed.isEmpty) }
    #expect(calls.withLock { $0 } == 1)
    #expect(try isHere)
    let puts = objects.puts
    #expect(try pass(rules, nil, laterMs: Self.hourMs + 1_000, listener: listener).removed.count == 1)
    #expect(try !isHere && objects.puts == puts)
  }

  // MARK: - More pictures

  @Test func lateBatchJoinsItsSession() throws {
    try publish(0..<10)
    try publish(20..<30)
    try end()
    #expect(try pass().failures.isEmpty)
    // In the gap, behind the end, and once more what is there.
    for range in [10..<15, 30..<35, 0..<10] {
      try publish(range)
      // It waits a minute for more, or for its end.
      #expect(try pass().uploaded.isEmpty)
      let report = try pass(laterMs: 61_000)
      #expect(report.failures.isEmpty, "\(report.failures)")
      #expect(try !isHere)
    }
    #expect(seconds(try storedStarts()) == [0, 5, 10, 20, 25, 30])
    let session = try store().session(id)
    #expect(try session.head().end != nil)
    let verified = try StoredSessions(objects, name: "s3://test/").verify(
      id, in: package.scratch.directory("verified"), copying: { _, _ in }, progress: { _, _ in })
    #expect(verified.problems.isEmpty, "\(verified.problems)")
  }

  /// The store is asked once about a session that goes on.
  @Test func sessionThatGoesOnCostsNoRequests() throws {
    try publish(0..<10)
    let (open, client) = (OpenUploads(), StoppingObjects(objects))
    for minutes in 1...5 {
      let uploads = OutputUploads(of: local, to: try store(client), UploadRules(), open: open)
      #expect(uploads.run(nowMs: WallClock.nowMs + Int64(minutes) * 61_000).state?.sessions == 0)
    }
    // The head of its index, and the list of an earlier version.
    #expect(client.requests == 2)
  }

  /// A late batch comes before the next pass sees that its session went.
  @Test func lateBatchJoinsASessionThatWentAMomentAgo() throws {
    let open = OpenUploads()
    func pass() throws -> UploadReport {
      OutputUploads(of: local, to: try store(), UploadRules(), open: open).run(nowMs: WallClock.nowMs + 61_000)
    }
    try publish(0..<10)
    #expect(try pass().uploaded.isEmpty)
    try end()
    #expect(try pass().removed.count == 1)
    try publish(10..<15)
    #expect(try pass().uploaded.map(\.segments) == [1])
    #expect(try !isHere)
  }

  /// Another process has left an object where a pack goes. That holds up no other session.
  @Test func conflictOfOneSessionDoesNotHoldUpOthers() throws {
    try publish(0..<10)
    try end()
    let other = package.output + "/xyz"
    let batch = try package.batch(0..<10)
    try FileManager.default.moveItem(atPath: batch, toPath: package.scratch.path("xyz@1"))
    _ = try BatchEncoder(BatchEncoder.Options(), staging: staging, index: views).publish(package.scratch.path("xyz@1"))
    let xyz = try #require(SessionID("xyz"))
    _ = try local.end(xyz, .request, ifQuietForMs: nil, cancellation: .never)
    objects["output/walk/pack-\(GrowingPackage.startMs).mp4"] = [1, 2, 3]
    let report = try pass()
    #expect(report.failures.count == 1 && report.uploaded.map(\.session) == [xyz], "\(report.failures)")
    #expect(try isHere && !DurableFile.exists(other))
  }

  @Test func otherPicturesOfTheSameTimeStayHere() throws {
    try publish(0..<10)
    try end()
    #expect(try pass().failures.isEmpty)
    let before = objects.keys.map { objects[$0] }
    // It begins at the same instant, and between two.
    for range in [0..<7, 3..<9] {
      try publish(range)
      try end()
      let report = try pass()
      #expect(report.failures.count == 1 && report.state?.sessions == 1)
      #expect("\(report.failures.map(\.error))".contains("another session of this name is there"))
      #expect(try isHere && objects.keys.map { objects[$0] } == before)
      try FileManager.default.removeItem(atPath: directory.path)
    }
  }

  /// A batch is published here while the session is uploaded.
  @Test func batchThatComesMeanwhileIsNotRemoved() throws {
    try publish(0..<10)
    try end()
    let isDone = Flag()
    objects.before { [self] key in
      guard key.hasSuffix("head.json"), !isDone.isSet else { return }
      isDone.set()
      #expect(throws: Never.self) { try publish(10..<20) }
    }
    let first = try pass()
    #expect(first.failures.isEmpty && first.removed.isEmpty)
    #expect(try isHere)
    #expect(seconds(try storedStarts()) == [0, 5])
    #expect(try pass().removed.count == 1)
    #expect(seconds(try storedStarts()) == [0, 5, 10, 15])
  }

  // MARK: - A session that goes on

  @Test func sessionThatGoesOnIsUploadedFromTimeToTime() throws {
    let rules = UploadRules(everyMs: 600_000)
    try publish(0..<20)
    #expect(try pass(rules).uploaded.isEmpty)
    #expect(try pass(rules).state?.sessions == 1)
    #expect(try pass(rules, laterMs: 601_000).uploaded.map(\.isComplete) == [false])
    #expect(try directory.publishedStarts().count == 4)
    try publish(20..<30)
    #expect(try pass(rules, laterMs: 700_000).uploaded.isEmpty)
    // Nothing goes here that is not there.
    #expect(try pass(rules, laterMs: 2 * Self.hourMs).uploaded.map(\.segments) == [2])
    #expect(seconds(try directory.publishedStarts()) == [25])
    #expect(seconds(try storedStarts()) == [0, 5, 10, 15, 20, 25])
    try publish(30..<40)
    try end()
    let report = try pass(rules)
    #expect(report.failures.isEmpty && report.uploaded.map(\.segments) == [2])
    #expect(try !isHere)
    #expect(seconds(try storedStarts()) == [0, 5, 10, 15, 20, 25, 30, 35])
    #expect(try store().session(id).head().end != nil)
  }

  // MARK: - Deletions

  @Test func deletionReachesTheStore() throws {
    try publish(0..<10)
    try end()
    #expect(try pass().failures.isEmpty)
    let tombstone = Tombstone(try id, deletedAtMs: WallClock.nowMs, reason: "asked")
    let files = UploadFiles(output: package.output)
    try files.addDeletion(of: id)
    // The tombstone is not written yet.
    #expect(try pass().state?.deletions == 1)
    _ = try SessionTombstones(output: package.output).add(tombstone)
    objects.fail(from: 0)
    #expect(try pass().state?.deletions == 1)
    objects.fail(from: nil)
    let report = try pass()
    #expect(try report.deleted == [id] && report.state?.deletions == 0)
    #expect(objects.keys == ["index/walk/head.json"])
    #expect(try store().session(id).tombstone() == tombstone)
  }

  @Test func deletionInTheStoreReachesWhatIsHere() throws {
    try publish(0..<10)
    let deletion = ObjectDeletion(objects, name: "s3://test/")
    _ = try deletion.add(Tombstone(id, deletedAtMs: WallClock.nowMs + 1_000, reason: "asked"))
    try end()
    #expect(try pass().deleted == [id])
    #expect(try !isHere)
    #expect(try SessionTombstones(output: package.output).tombstone(of: id)?.reason == "asked")
  }

  @Test func picturesThatCameBehindADeletionAreLeftForAPerson() throws {
    _ = try ObjectDeletion(objects, name: "s3://test/").add(
      Tombstone(id, deletedAtMs: WallClock.nowMs - 1_000_000, reason: "asked"))
    try publish(0..<10)
    try end()
    let report = try pass()
    #expect("\(report.failures.map(\.error))".contains("delete --undelete walk --store s3://test"))
    #expect(try isHere && report.state?.sessions == 1)
  }

  // MARK: - Other processes

  @Test func oneProcessUploadsAtATime() throws {
    try publish(0..<10)
    try end()
    let lock = try UploadFiles(output: package.output).lock()
    #expect(lock != nil)
    #expect(try pass().state == nil)
    #expect(objects.keys.isEmpty)
    withExtendedLifetime(lock) {}
  }

  @Test func sessionThatWaitsForWordsIsNotUploaded() throws {
    try publish(0..<10)
    try end()
    var listener = OutputUploads.Listener()
    listener.isBusy = { _ in true }
    #expect(try pass(listener: listener).state?.sessions == 1)
    #expect(objects.keys.isEmpty)
    let words = Array(#"{"format":"segment-text/1"}"#.utf8)
    let name = SegmentName.text(GrowingPackage.startMs)
    try DurableFile.create(directory.path + "/" + name, words)
    #expect(try pass().failures.isEmpty)
    #expect(objects["output/walk/" + name] == words)
  }
}
