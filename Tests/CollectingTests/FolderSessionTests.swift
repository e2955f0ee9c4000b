import Foundation
import TestSupport
import Testing

@testable import Collecting
@testable import FileSystem
@testable import FrameBatches
@testable import WorkQueues

/// `--recursive`: a session a folder.
@Suite struct FolderSessionTests {
  private static let startMs: Int64 = 1_767_859_512_000
  private let folder: CollectedFolder

  init() throws {
    folder = try CollectedFolder()
    folder.rules.isRecursive = true
  }

  private func capture(_ below: String, _ seconds: Int64...) throws {
    for second in seconds { try folder.add("\(below)/\(Self.startMs + second * 1_000).jpg") }
  }

  private func sessions() throws -> [String: [Int64]] {
    Dictionary(
      try folder.batches().map { ($0.session, $0.times.map { ($0 - Self.startMs) / 1_000 }) }, uniquingKeysWith: +)
  }

  @Test func eachFolderIsASessionThatGoesOn() throws {
    try capture("kiosk-07/2026-01-08", 0, 1)
    try capture("kiosk-07/2026-01-09", 2)
    try capture("floor1/kiosk-08/2026/01/08", 0)
    try capture("2026-01-08/kiosk-09", 0)
    try folder.add(captures: Self.startMs)
    try folder.pass(seconds: 70)
    #expect(
      try sessions() == [
        "kiosk-07": [0, 1, 2], "floor1.kiosk-08": [0], "kiosk-09": [0], "shots-\(Self.startMs)": [0],
      ])
    // A pause ends the session of the watched folder alone.
    #expect(try folder.batches().filter(\.isFinal).map(\.session) == ["shots-\(Self.startMs)"])
    try capture("kiosk-07/2026-01-10", 100_000)
    try folder.pass(seconds: 70)
    #expect(try sessions()["kiosk-07"] == [0, 1, 2, 100_000])
    #expect(try names(in: folder.folder + "/kiosk-07/2026-01-08").isEmpty)
  }

  @Test func camerasInNamesBelongToTheSessionOfTheirFolder() throws {
    for kiosk in ["a", "b"] { try folder.add("\(kiosk)/preview_left-1767859512.5.webp", Self.webp) }
    try capture("c", 0)
    try folder.add("d/\(Self.startMs)_m1.jpg")
    try folder.pass(seconds: 70)
    #expect(try sessions().keys.sorted() == ["a.left", "b.left", "c", "d.m1"])
  }

  private static let webp: [UInt8] = Array("RIFF".utf8) + [12, 0, 0, 0] + Array("WEBPVP8 ".utf8) + [0, 0, 0, 0]

  @Test func givenSessionIsTheBeginningOfAll() throws {
    folder.rules.session = "hall"
    try capture("kiosk-07", 0)
    try capture("2026-01-08", 0)
    try folder.pass(seconds: 70)
    #expect(try sessions().keys.sorted() == ["hall", "hall.kiosk-07"])
  }

  @Test func foldersMayComeAndGo() throws {
    try capture("a", 0, 1)
    try folder.pass(seconds: 8)
    try FileManager.default.removeItem(atPath: folder.folder + "/a")
    try capture("b/2026-01-08", 0)
    try folder.pass(seconds: 70)
    try capture("a", 2)
    try folder.pass(seconds: 70)
    #expect(try sessions() == ["a": [0, 2], "b": [0]])
    // The newest picture was held back when its folder went.
    #expect(folder.collector?.totals.lost == 1 && folder.lost == ["a/\(Self.startMs + 1_000).jpg": 1])
  }

  @Test func folderThatIsNoSessionIsReportedOnceAndOthersGoOn() throws {
    try capture("Kiosk 7", 0)
    try capture("kiosk-08", 0)
    try folder.pass(seconds: 70)
    try capture("Kiosk 7", 1)
    try folder.pass(seconds: 70)
    #expect(try sessions() == ["kiosk-08": [0]])
    #expect(folder.leftFolders.map(\.name) == ["Kiosk 7"])
    let advice = try #require(folder.leftFolders.first?.advice)
    #expect(advice.contains("--session Kiosk-7") && SessionID("Kiosk-7") != nil)
    #expect(try names(in: folder.folder + "/Kiosk 7").count == 2)
    #expect(folder.collector?.totals.left == 2)
  }

  @Test func twoFoldersOfOneNameAreNotMixed() throws {
    try capture("floor1/kiosk", 0)
    try folder.pass(seconds: 4)
    try capture("floor1.kiosk", 1)
    try folder.pass(seconds: 70)
    #expect(try sessions() == ["floor1.kiosk": [0]])
    #expect(folder.leftFolders.map(\.name) == ["floor1.kiosk"])
  }

  @Test func unreadableFolderStopsNoOther() throws {
    guard geteuid() != 0 else {
      print("skipped: root reads every folder")
      return
    }
    try capture("a", 0)
    try capture("b", 0)
    chmod(folder.folder + "/a", 0)
    defer { chmod(folder.folder + "/a", 0o700) }
    try folder.pass(seconds: 70)
    #expect(try sessions() == ["b": [0]] && folder.leftFolders.map(\.name) == ["a"])
  }

  @Test func spoolInTheFolderIsNotCollected() throws {
    let folder = try CollectedFolder(spool: "shots/spool")
    folder.rules.isRecursive = true
    try folder.add("a/\(Self.startMs).jpg")
    try folder.add("spool/output/x/\(Self.startMs).jpg")
    try folder.pass(seconds: 140)
    #expect(try folder.batches().map(\.session) == ["a"])
  }

  @Test func foldersAreLeftWithoutTheOptionAndReportedOnce() throws {
    folder.rules.isRecursive = false
    try capture("kiosk-07/2026-01-08", 0)
    try folder.add("notes/readme.txt", [1])
    for _ in 0..<2 { try folder.pass(seconds: 10) }
    let found = folder.events.compactMap { if case .notRecursive(let folders) = $0 { folders } else { nil } }
    #expect(found.map(\.description) == ["the pictures in the folder kiosk-07/2026-01-08 are not collected"])
    #expect(try folder.batches().isEmpty)
  }

  @Test func killedCollectorLosesAndDoublesNothing() throws {
    for kiosk in 0..<10 { try capture("k\(kiosk)", 0, 1, 2) }
    try folder.pass(seconds: 8)
    for kiosk in 0..<10 { try capture("k\(kiosk)", 3) }
    try folder.start()
    try folder.collector?.step()
    try folder.start()
    try folder.pass(seconds: 70)
    #expect(try sessions() == Dictionary(uniqueKeysWithValues: (0..<10).map { ("k\($0)", [0, 1, 2, 3]) }))
  }

  @Test func keptFilesOfAFolderThatComesBackAreNotCollectedAgain() throws {
    folder.rules.keepsSources = true
    try capture("a", 0, 1)
    try capture("b", 0)
    try folder.pass(seconds: 70)
    rename(folder.folder + "/a", folder.scratch.path("away"))
    try folder.start()
    try folder.pass(seconds: 10)
    rename(folder.scratch.path("away"), folder.folder + "/a")
    try folder.start()
    try folder.pass(seconds: 70)
    #expect(try sessions() == ["a": [0, 1], "b": [0]])
  }

  @Test func picturesOfTwoDaysWithOneNameAreInOneBatch() throws {
    folder.options.times = .modified
    for day in 0..<3 as Range<Int64> {
      try folder.replace("a/2026-01-1\(day)/shot.jpg", with: "\(day)", capturedMs: Self.startMs + day * 1_000)
    }
    try folder.pass(seconds: 70)
    #expect(try sessions() == ["a": [0, 1, 2]])
    #expect(try folder.batches().map(\.times.count) == [2, 1])
    #expect(
      try folder.contents() == Dictionary(uniqueKeysWithValues: (0..<3).map { (CollectedFolder.image("\($0)"), 1) }))
  }

  @Test func datesInFoldersAreReadByAPattern() throws {
    folder.options.times = .names(try #require(NamePattern("%Y/%m/%d/%H-%M-%S")))
    folder.options.timeZone = try ZoneRules(named: "UTC")
    try folder.add("a/2026/01/08/08-05-12.jpg")
    try folder.add("a/2026/01/08/08-05-13.jpg")
    try folder.pass(seconds: 70)
    #expect(try sessions() == ["a": [0, 1]])
  }
}
