import Foundation
import TestSupport
import Testing

@testable import Batching
@testable import FileSystem
@testable import FrameBatches
@testable import WorkQueues

@Suite struct BatchJournalTests {
  private let scratch: ScratchDirectory
  private let path: String

  init() throws {
    scratch = try ScratchDirectory()
    path = scratch.path("journal")
  }

  private static let stream = "floor 1/kiosk-07/.m1"

  private static func record(_ batch: String, isFinal: Bool = false, files: Int = 2) -> BatchRecord {
    let stamp = FileStamp(inode: .max, size: 3, modified: -1)
    return BatchRecord(
      batch: batch, stream: Self.stream, name: "s.m1",
      session: isFinal ? nil : OpenSession(name: "s.m1", lastMs: 1, endMs: 2, intervalMs: 1_000), isFinal: isFinal,
      files: (0..<files).map { FolderFile(name: "ä \"\($0)\".jpg", stamp: stamp) })
  }

  @Test func journalListsUnfinishedBatchesCollectedFilesAndOpenSessions() throws {
    var journal = try BatchJournal(path, remembers: 0)
    // An empty mount point: the files come back.
    let folder = try scratch.directory("folder")
    let (first, second) = (Self.record("a"), Self.record("b"))
    try journal.append([.batch(first)])
    try journal.append([.done("a", kept: first.files)])
    try journal.append([.batch(second)])
    for _ in 0..<2 {
      journal = try BatchJournal(path, remembers: 0)
      #expect(journal.unfinished == [second])
      #expect(journal.taken == Dictionary(uniqueKeysWithValues: first.files.map { ($0.name, $0.stamp) }))
      #expect(journal.sessions == [Self.stream: first.session])
      try journal.compact(in: Directory(opening: folder))
    }
    try journal.append([.batch(Self.record("b", isFinal: true))])
    #expect(try BatchJournal(path, remembers: 0).sessions.isEmpty)
  }

  @Test func copiesAreListedUntilTheirBatchIs() throws {
    var journal = try BatchJournal(path, remembers: 0)
    let versions = Self.record("a").files.map {
      HeldVersion(file: $0, stream: Self.stream, session: "s.m1", timeMs: 7, capture: .interval)
    }
    try journal.append([.held("held-1", versions[0]), .held("held-2", versions[1])], isDurable: false)
    for _ in 0..<2 {
      journal = try BatchJournal(path, remembers: 0)
      for (version, copy) in zip(versions, ["held-1", "held-2"]) {
        let held = try #require(journal.held[version.file])
        #expect(held.copy == copy && held.version == version)
      }
      #expect(journal.held.count == 2 && journal.concerns("s.m1"))
      try journal.compact(in: Directory(opening: scratch.path))
    }
    try journal.append([.batch(Self.record("a", files: 1))])
    #expect(try BatchJournal(path, remembers: 0).held.values.map(\.copy) == ["held-2"])
    #expect(try !BatchJournal(reading: path).concerns("s"))
  }

  @Test func lastPicturesInBatchesAreRemembered() throws {
    var journal = try BatchJournal(path, remembers: 2)
    for name in ["a", "b", "c", "d"] {
      try journal.append([.batch(Self.record(name, files: 1)), .done(name, kept: [])])
    }
    for _ in 0..<2 {
      journal = try BatchJournal(path, remembers: 2)
      #expect((2...4).contains(journal.recent.count) && journal.unfinished.isEmpty)
      try journal.compact(in: nil)
    }
    #expect(try BatchJournal(path, remembers: 0).recent.isEmpty)
  }

  @Test func compactionForgetsFilesThatAreGoneUnlessAWholeFolderIs() throws {
    _ = try scratch.directory("away")
    try scratch.file("here.jpg", [1])
    let stamp = FileStamp(inode: 1, size: 2, modified: 3)
    let names = ["gone.jpg", "away/1.jpg", "away/2026-11-25/2.jpg", "no/3.jpg"]
    let journal = try BatchJournal(path, remembers: 0)
    try journal.append([.taken(names.map { FolderFile(name: $0, stamp: stamp) })])
    try journal.compact(in: Directory(opening: scratch.path))
    #expect(
      try BatchJournal(path, remembers: 0).taken.keys.sorted() == ["away/1.jpg", "away/2026-11-25/2.jpg", "no/3.jpg"])
    try scratch.file("away/other.jpg", [1])
    try journal.compact(in: Directory(opening: scratch.path))
    #expect(try BatchJournal(path, remembers: 0).taken.keys.sorted() == ["no/3.jpg"])
  }

  @Test func tornLineIsIgnored() throws {
    let journal = try BatchJournal(path, remembers: 0)
    try journal.append([.batch(Self.record("a"))])
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    try journal.append([.done("a", kept: [])])
    let both = try Data(contentsOf: URL(fileURLWithPath: path))
    for count in 0..<both.count {
      try both.prefix(count).write(to: URL(fileURLWithPath: path))
      let journal = try BatchJournal(path, remembers: 0)
      // The newline may be missing, because the text is then still a complete line.
      #expect(journal.unfinished.count == (count >= whole.count - 1 && count < both.count - 1 ? 1 : 0))
      // The next line stays readable after the torn one.
      try journal.append([.batch(Self.record("next"))])
      #expect(try BatchJournal(path, remembers: 0).unfinished.last?.batch == "next")
    }
  }

  @Test func garbageIsIgnored() throws {
    let lines = [
      "", "{", "[]", "{}", #"{"done":7}"#,
      #"{"batch":"../x","group":"","session":{"name":"s","lastMs":1,"endMs":2,"intervalMs":3}}"#,
      #"{"batch":"x","group":""}"#, #"{"taken":[["a",-1,2,3],["b",1e99,2,3],[1,2,3,4],["c",1,2]]}"#,
    ]
    try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: path))
    let journal = try BatchJournal(path, remembers: 0)
    #expect(journal.unfinished.isEmpty && journal.taken.isEmpty)
  }
}
