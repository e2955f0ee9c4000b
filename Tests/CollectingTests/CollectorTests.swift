import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Collecting
@testable import FileSystem
@testable import FrameBatches
@testable import WorkQueues

@Suite struct CollectorTests {
  private static let startMs: Int64 = 1_767_859_512_000
  private let folder: CollectedFolder

  init() throws { folder = try CollectedFolder() }

  private func captures(_ seconds: Int64...) throws {
    for second in seconds { try folder.add(captures: Self.startMs + second * 1_000) }
  }

  private func instants(_ seconds: Int64...) -> [Int64] { seconds.map { Self.startMs + $0 * 1_000 } }

  @Test func newestFrameIsHeldBackAndEndsTheSessionAfterThePause() throws {
    try captures(0, 1, 2, 3)
    try folder.pass(seconds: 8)
    let session = "shots-\(Self.startMs)"
    let first = CollectedFolder.Made(session: session, times: instants(0, 1, 2), endMs: Self.startMs + 3_000)
    #expect(try folder.batches() == [first])
    #expect(try names(in: folder.folder) == ["\(Self.startMs + 3_000).jpg"])
    try folder.pass(seconds: 60)
    let last = CollectedFolder.Made(
      session: session, times: instants(3), endMs: Self.startMs + 4_000, isFinal: true, isOpen: true)
    #expect(try folder.batches() == [first, last])
    #expect(try names(in: folder.folder).isEmpty)
  }

  @Test func picturesWaitInTheirFolderForFreeSpace() throws {
    let free = Mutex(99)
    folder.rules.freeSpace = FreeSpace(minimum: 100)
    folder.rules.freeSpace.freeBytes = { _ in free.withLock { $0 } }
    try captures(0, 1, 2, 3)
    #expect(throws: LowDiskSpace.self) { try folder.pass(seconds: 8) }
    #expect(throws: LowDiskSpace.self) { try folder.collector?.stop() }
    #expect(try folder.batches().isEmpty && names(in: folder.folder).count == 4)
    free.withLock { $0 = 100 }
    try folder.pass(seconds: 8)
    #expect(try folder.batches().map(\.times) == [instants(0, 1, 2)])
  }

  @Test func pauseBeginsAnotherSessionUnlessItIsNamed() throws {
    for session in [nil, "mine"] {
      let folder = try CollectedFolder()
      folder.rules.session = session
      for second in [0, 100] as [Int64] {
        try folder.add(captures: Self.startMs + second * 1_000)
        try folder.pass(seconds: 70)
      }
      let made = try folder.batches()
      #expect(made.map(\.session) == (session.map { [$0, $0] } ?? instants(0, 100).map { "shots-\($0)" }))
      #expect(made.filter(\.isFinal).count == 2)
    }
  }

  @Test func captureAfterALongPauseStartsAnotherSession() throws {
    try captures(0, 1, 200, 201)
    try folder.pass(seconds: 70)
    #expect(
      try folder.batches() == [
        .init(
          session: "shots-\(Self.startMs)", times: instants(0, 1), endMs: Self.startMs + 2_000, isFinal: true,
          isOpen: true),
        .init(
          session: "shots-\(Self.startMs + 200_000)", times: instants(200), endMs: Self.startMs + 201_000),
        .init(
          session: "shots-\(Self.startMs + 200_000)", times: instants(201), endMs: Self.startMs + 202_000,
          isFinal: true, isOpen: true),
      ])
  }

  @Test func clockSetBackStartsAnotherSession() throws {
    try captures(100, 101, 102)
    try folder.pass(seconds: 8)
    try captures(50, 51, 52)
    try folder.pass(seconds: 70)
    let made = try folder.batches()
    #expect(Set(made.map(\.session)) == ["shots-\(Self.startMs + 100_000)", "shots-\(Self.startMs + 50_000)"])
    #expect(made.flatMap(\.times).sorted() == instants(50, 51, 52, 100, 101, 102))
    #expect(made.filter(\.isFinal).count == 2)
  }

  @Test func sixtyFramesMakeABatchAtOnce() throws {
    for index in 0..<125 as Range<Int64> { try folder.add(captures: Self.startMs + index * 100) }
    try folder.pass(seconds: 2)
    #expect(try folder.batches().map(\.times.count) == [60, 60])
  }

  @Test func stopKeepsTheNewestPictureForTheNextRun() throws {
    try captures(0, 1)
    try folder.pass(seconds: 2)
    try folder.stop()
    let session = "shots-\(Self.startMs)"
    let first = CollectedFolder.Made(session: session, times: instants(0), endMs: Self.startMs + 1_000)
    #expect(try folder.batches() == [first])
    try captures(2)
    try folder.start()
    try folder.pass(seconds: 70)
    #expect(
      try folder.batches() == [
        first, .init(session: session, times: instants(1), endMs: Self.startMs + 2_000),
        .init(session: session, times: instants(2), endMs: Self.startMs + 3_000, isFinal: true, isOpen: true),
      ])
  }

  /// Pictures of the time without a collector are complete only at the second scan, newer ones at once.
  @Test func nothingIsCutBeforeThePicturesThatAreThereAreFound() throws {
    folder.rules.everyMs = 1_000
    try captures(0, 1, 2, 3)
    try folder.start()
    try folder.collector?.step()
    try captures(4, 5, 6)
    folder.nowMs += 1_500
    let names = (4...6 as ClosedRange<Int64>).map { ("\(Self.startMs + $0 * 1_000).jpg", FileChanges(closed: 1)) }
    try folder.collector?.step(CollectedFolder.changes(names))
    #expect(try folder.batches().isEmpty)
    try folder.pass(seconds: 4)
    #expect(try folder.batches().map(\.times) == [instants(0, 1, 2, 3, 4, 5)])
  }

  /// A slow upload: a conflict is that of the late picture alone.
  @Test func latePictureHasABatchOfItsOwn() throws {
    folder.rules.session = "mine"
    try captures(0, 1, 3, 4)
    try folder.pass(seconds: 8)
    try captures(2, 5, 6)
    try folder.add("\(Self.startMs + 1_500).jpg")
    try folder.pass(seconds: 8)
    #expect(
      try folder.batches().map(\.times) == [
        instants(0, 1, 3), [Self.startMs + 1_500], instants(2), instants(4, 5),
      ])
  }

  @Test func pictureInAGuessedHoldIsNotLate() throws {
    folder.rules.session = "mine"
    try captures(0, 1, 2)
    try folder.pass(seconds: 70)
    try folder.add("\(Self.startMs + 2_100).jpg")
    try captures(4)
    try folder.pass(seconds: 70)
    let made = try folder.batches()
    #expect(made.map(\.times) == [instants(0, 1), instants(2), [Self.startMs + 2_100], instants(4)])
    #expect(made.map(\.isOpen) == [false, true, false, true])
  }

  @Test func sessionOfAnEarlierRunEndsWhenTheUserNamesAnother() throws {
    for (second, name) in [(0, nil), (1, "a"), (2, "a"), (3, "b"), (4, nil)] as [(Int64, String?)] {
      folder.rules.session = name
      try captures(second)
      try folder.start()
      try folder.pass(seconds: 70)
    }
    #expect(
      try folder.batches().map { "\($0.session) \($0.times.count)" }
        == ["a 1", "a 1", "b 1"] + instants(0, 4).map { "shots-\($0) 1" })
  }

  @Test func pictureMayBeCalledLikeTheDescription() throws {
    folder.options.times = .modified
    for number in 0..<3 {
      try folder.replace("batch.json", with: "v\(number)", capturedMs: Self.startMs + Int64(number) * 1_000)
      try folder.start()
      try folder.pass(seconds: 2)
    }
    try folder.add("other.jpg")
    try folder.pass(seconds: 70)
    #expect(try folder.batches().flatMap(\.times).prefix(3) == instants(0, 1, 2)[...])
  }

  @Test func keptFilesAreCollectedOnceAcrossRunsUntilTheyChange() throws {
    folder.rules.keepsSources = true
    try captures(0, 1)
    try folder.pass(seconds: 70)
    #expect(try folder.batches().flatMap(\.times).count == 2)
    try folder.start()
    try folder.pass(seconds: 70)
    #expect(try folder.batches().flatMap(\.times).count == 2)
    // Another image with the same name.
    try folder.add("\(Self.startMs).jpg", CollectedFolder.image("another"))
    try folder.start()
    try folder.pass(seconds: 70)
    #expect(try folder.batches().flatMap(\.times).count == 3)
    #expect(try names(in: folder.folder).count == 2)
  }

  @Test func namesOfMonitorsBecomeSessions() throws {
    for timeMs in instants(0, 1) { for monitor in 1...2 { try folder.add("\(timeMs)_m\(monitor).jpg") } }
    try folder.pass(seconds: 70)
    let made = try folder.batches()
    #expect(Set(made.map(\.session)) == ["shots-\(Self.startMs).m1", "shots-\(Self.startMs).m2"])
    #expect(made.count == 4)
  }

  @Test func framesOfOneSecondStayTogetherAndAreSpread() throws {
    folder.options.timeZone = try ZoneRules(named: "UTC")
    for number in 0..<4 { try folder.add("7-20260108080512-0\(number).jpg") }
    try folder.add("7-20260108080513-00.jpg")
    try folder.pass(seconds: 8)
    #expect(
      try folder.batches() == [
        .init(
          session: "shots-\(Self.startMs)", times: [0, 250, 500, 750].map { Self.startMs + $0 },
          endMs: Self.startMs + 1_000)
      ])
  }

  @Test func modificationTimesAreCaptureTimesOnRequest() throws {
    folder.options.times = .modified
    try folder.add("a.png", [0x89] + Array("PNG\r\n\u{1A}\n".utf8) + Array("IHDR".utf8) + Self.pngEnd)
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_767_859_512.5)], ofItemAtPath: folder.folder + "/a.png")
    try folder.pass(seconds: 70)
    #expect(try folder.batches().map(\.times) == [[Self.startMs + 500]])
  }

  private static let pngEnd: [UInt8] = [0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]

  @Test func unfinishedAndOtherFilesAreReportedOnceAndKept() throws {
    try folder.add("\(Self.startMs).jpg", [0xFF, 0xD8, 0xFF, 0xE0, 1, 2, 3])
    try folder.add("notes.txt", Array("hello".utf8))
    try folder.add("Screenshot.jpg")
    try folder.add("Bildschirmfoto.jpg")
    try folder.add(".hidden.jpg")
    try folder.add("1767859513000.jpg.part")
    try folder.pass(seconds: 58)
    #expect(folder.left.count == 2)
    try folder.pass(seconds: 120)
    #expect(folder.left.count == 4)
    #expect(folder.left.contains("\(Self.startMs).jpg: the JPEG has no end"))
    #expect(folder.left.contains("notes.txt: not an image of a known format"))
    let advice = folder.events.compactMap { if case .withoutTime(let file, true) = $0 { file.advice } else { nil } }
    #expect(advice.count == 1 && advice[0].contains("--times mtime"))
    #expect(try folder.batches().isEmpty)
    // The writer completes the file.
    try folder.add("\(Self.startMs).jpg")
    try folder.pass(seconds: 70)
    #expect(try folder.batches().map(\.times) == [[Self.startMs]])
  }

  @Test func closedFileNeedsNoSecondScan() throws {
    try folder.start()
    try folder.collector?.step()
    try captures(0, 1)
    folder.nowMs += 10
    let names = ["\(Self.startMs).jpg", "\(Self.startMs + 1_000).jpg", "gone.jpg"]
    try folder.collector?.step(CollectedFolder.changes(names.map { ($0, FileChanges(closed: 1)) }))
    #expect(folder.collector?.waiting == 2)
  }

  @Test func secondCollectorOfAFolderIsRefused() throws {
    try folder.start()
    #expect(throws: Failure.self) {
      _ = try Collector(folder.folder, into: folder.spool, CollectRules(), options: InputOptions()) { _ in }
    }
  }

  @Test func missingFolderPausesTheCollectorAndKeepsItsState() throws {
    folder.rules.keepsSources = true
    try captures(0, 1)
    try folder.pass(seconds: 70)
    try FileManager.default.moveItem(atPath: folder.folder, toPath: folder.folder + ".away")
    folder.nowMs += 2_000
    #expect(throws: DiskError.self) { try folder.collector?.step() }
    // An empty directory, as an unmounted mount point has.
    try FileManager.default.createDirectory(atPath: folder.folder, withIntermediateDirectories: false)
    try folder.start()
    try folder.pass(seconds: 10)
    try FileManager.default.removeItem(atPath: folder.folder)
    try FileManager.default.moveItem(atPath: folder.folder + ".away", toPath: folder.folder)
    try folder.start()
    try folder.pass(seconds: 70)
    #expect(try folder.batches().flatMap(\.times) == instants(0, 1))
  }

  @Test func pruneLeavesTheDraftAndTheJournal() throws {
    try captures(0, 1)
    try folder.pass(seconds: 8)
    let before = try names(in: folder.spool.path + "/collect")
    let pruning = Pruning(spool: folder.spool, output: nil, isDryRun: false)
    let run = pruning.run(with: HeartbeatMonitor(lease: 1))
    #expect(run.pruned.isEmpty && run.failures.isEmpty)
    #expect(try names(in: folder.spool.path + "/collect") == before && before.count == 1)
  }

  @Test(arguments: [
    ("/home/u/Screenshots", "Screenshots"), ("/home/u/My Shots", "My-Shots"), ("/tmp/.cache", "cache"),
    ("/", "screenshots"),
  ])
  func sessionNamesBeginWithTheFolder(path: String, base: String) {
    #expect(CollectRules.sessionBase(ofFolder: path) == base)
    #expect(SessionID(base + "-1767859512340") != nil)
  }
}
