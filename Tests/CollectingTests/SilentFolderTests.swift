import TestSupport
import Testing

@testable import Collecting
@testable import FileSystem
@testable import FrameBatches

/// A folder with nothing that can be taken says so after a minute.
@Suite struct SilentFolderTests {
  private static let startMs: Int64 = 1_767_859_512_000
  private let folder: CollectedFolder

  init() throws { folder = try CollectedFolder() }

  private func report() throws -> SilentFolder {
    try folder.pass(seconds: 58)
    #expect(folder.silent.isEmpty)
    try folder.pass(seconds: 10)
    #expect(folder.collector?.totals.silent == folder.silent.count && folder.silent.count <= 1)
    return try #require(folder.silent.first)
  }

  /// Applies the options of an advice.
  private func apply(_ advice: String) throws {
    let words = advice.replacing("'", with: "").split(separator: " ")
    for (option, value) in zip(words, words.dropFirst()) {
      switch option {
      case "--name-time":
        let pattern = advice.split(separator: "--name-time ")[1].split(separator: "'", omittingEmptySubsequences: false)
        folder.options.times = .names(try #require(NamePattern(String(pattern.count > 1 ? pattern[1] : value[...]))))
      case "--time-zone": folder.options.timeZone = try ZoneRules(named: String(value))
      case "--times": folder.options.times = .modified
      default: break
      }
    }
  }

  @Test(arguments: [
    ("Kamera 08.01.2026 08 05 12.jpg", "--times mtime"), ("snapshot.jpg", "--times mtime"),
    ("cam_2026-01-08_at_08h05m12.jpg", "--name-time"), ("7-20260108080512-00.jpg", "--time-zone"),
    ("shot 2026-01-08T080512 x.jpg", "--name-time"), ("2026-01-08/08_05_12.jpg", "--name-time"),
  ])
  func adviceReadsTheNames(name: String, option: String) throws {
    folder.rules.isRecursive = true
    try folder.add(name)
    let silent = try report()
    #expect(silent.files == 1 && silent.reason.hasPrefix(lastComponent(of: name)), "\(silent)")
    let advice = try #require(silent.advice)
    #expect(advice.contains(option), "\(advice)")
    try apply(advice)
    try folder.start()
    try folder.pass(seconds: 70)
    #expect(try folder.batches().map(\.times.count) == [1], "\(advice)")
  }

  @Test func picturesInFoldersNeedTheOption() throws {
    try folder.add("a/\(Self.startMs).jpg")
    try folder.add("b/\(Self.startMs).jpg")
    let silent = try report()
    #expect(silent.reason == "the pictures in 2 folders are not collected, the first in a")
    #expect(silent.advice?.contains("--recursive") == true)
  }

  @Test func otherFilesAreNamed() throws {
    try folder.add("a.txt", [1, 2, 3])
    try folder.add("b.txt", [1, 2, 3])
    let silent = try report()
    #expect(silent.files == 2 && silent.reason == "a.txt: not an image of a known format" && silent.advice == nil)
  }

  @Test func unfinishedOlderAndMissingFilesAreNamed() throws {
    try folder.add("\(Self.startMs).jpg.part")
    let silent = try report()
    #expect(silent.files == 1 && silent.reason.hasPrefix("\(Self.startMs).jpg.part: "))
    for (sinceMs, reason) in [(Self.startMs + 1, "all are older than --since"), (nil, "no file came")] {
      let test = try SilentFolderTests()
      test.folder.rules.sinceMs = sinceMs
      if sinceMs != nil { try test.folder.add(captures: Self.startMs) }
      let silent = try test.report()
      #expect(silent.reason == reason)
    }
  }

  @Test func folderOfWhichSomethingWasTakenIsNotReported() throws {
    folder.rules.isRecursive = true
    folder.rules.keepsSources = true
    try folder.add("a/\(Self.startMs).jpg")
    try folder.add("a/notes.txt", [1])
    try folder.add("b/notes.txt", [1])
    try folder.pass(seconds: 140)
    #expect(folder.silent.map { lastComponent(of: $0.path) } == ["b"])
    // The next run finds all pictures taken.
    try folder.start()
    try folder.pass(seconds: 140)
    #expect(folder.silent.map { lastComponent(of: $0.path) }.filter { $0 != "b" }.isEmpty)
  }
}
