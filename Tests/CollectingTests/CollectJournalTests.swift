import Foundation
import TestSupport
import Testing

@testable import Collecting
@testable import FileSystem
@testable import FrameBatches
@testable import WorkQueues

@Suite struct CollectJournalTests {
  private let scratch: ScratchDirectory
  private let path: String

  init() throws {
    scratch = try ScratchDirectory()
    path = scratch.path("journal")
  }

  private static let group = CollectedGroup(SessionFolder(of: "floor 1/kiosk-07"), .key("m1"))

  private static func record(_ batch: String, isFinal: Bool = false, files: Int = 2) -> CollectRecord {
    let stamp = FileStamp(inode: .max, size: 3, modified: -1)
    return CollectRecord(
      batch: batch, group: Self.group,
      session: CollectedSession(name: "s.m1", lastMs: 1, endMs: 2, intervalMs: 1_000), isFinal: isFinal,
      files: (0..<files).map { FolderFile(name: "ä \"\($0)\".jpg", stamp: stamp) })
  }

  @Test func journalListsUnfinishedBatchesCollectedFilesAndOpenSessions() throws {
    var journal = try CollectJournal(path)
    // An empty mount point: the files come back.
    let folder = try scratch.directory("folder")
    let (first, second) = (Self.record("a"), Self.record("b"))
    try journal.append([.batch(first)])
    try journal.append([.done("a", kept: first.files)])
    try journal.append([.batch(second)])
    for _ in 0..<2 {
      journal = try CollectJournal(path)
      #expect(journal.unfinished == [second])
      #expect(journal.taken == Dictionary(uniqueKeysWithValues: first.files.map { ($0.name, $0.stamp) }))
      #expect(journal.sessions == [Self.group: first.session])
      try journal.compact(in: Directory(opening: folder))
    }
    try journal.append([.batch(Self.record("b", isFinal: true))])
    #expect(try CollectJournal(path).sessions.isEmpty)
  }

  @Test func copiesAreListedUntilTheirBatchIs() throws {
    var journal = try CollectJournal(path)
    let files = Self.record("a").files
    try journal.append([.held("held-1", files[0]), .held("held-2", files[1])], isDurable: false)
    for _ in 0..<2 {
      journal = try CollectJournal(path)
      #expect(journal.held == [files[0]: "held-1", files[1]: "held-2"])
      try journal.compact(in: Directory(opening: scratch.path))
    }
    try journal.append([.batch(Self.record("a", files: 1))])
    #expect(try CollectJournal(path).held == [files[1]: "held-2"])
  }

  @Test(arguments: ["", ".m1", "=camera", "kiosk-07/", "floor 1/kiosk-07/.m1"]) func groupsKeepTheirText(text: String) {
    #expect(CollectedGroup(text: text).text == text)
  }

  @Test func compactionForgetsFilesThatAreGoneUnlessAWholeFolderIs() throws {
    _ = try scratch.directory("away")
    try scratch.file("here.jpg", [1])
    let stamp = FileStamp(inode: 1, size: 2, modified: 3)
    let names = ["gone.jpg", "away/1.jpg", "away/2026-11-25/2.jpg", "no/3.jpg"]
    let journal = try CollectJournal(path)
    try journal.append([.taken(names.map { FolderFile(name: $0, stamp: stamp) })])
    try journal.compact(in: Directory(opening: scratch.path))
    #expect(try CollectJournal(path).taken.keys.sorted() == ["away/1.jpg", "away/2026-11-25/2.jpg", "no/3.jpg"])
    try scratch.file("away/other.jpg", [1])
    try journal.compact(in: Directory(opening: scratch.path))
    #expect(try CollectJournal(path).taken.keys.sorted() == ["no/3.jpg"])
  }

  @Test func tornLineIsIgnored() throws {
    let journal = try CollectJournal(path)
    try journal.append([.batch(Self.record("a"))])
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    try journal.append([.done("a", kept: [])])
    let both = try Data(contentsOf: URL(fileURLWithPath: path))
    for count in 0..<both.count {
      try both.prefix(count).write(to: URL(fileURLWithPath: path))
      let journal = try CollectJournal(path)
      // The newline may be missing, because the text is then still a complete line.
      #expect(journal.unfinished.count == (count >= whole.count - 1 && count < both.count - 1 ? 1 : 0))
      // The next line stays readable after the torn one.
      try journal.append([.batch(Self.record("next"))])
      #expect(try CollectJournal(path).unfinished.last?.batch == "next")
    }
  }

  @Test func garbageIsIgnored() throws {
    let lines = [
      "", "{", "[]", "{}", #"{"done":7}"#,
      #"{"batch":"../x","group":"","session":{"name":"s","lastMs":1,"endMs":2,"intervalMs":3}}"#,
      #"{"batch":"x","group":""}"#, #"{"taken":[["a",-1,2,3],["b",1e99,2,3],[1,2,3,4],["c",1,2]]}"#,
    ]
    try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: path))
    let journal = try CollectJournal(path)
    #expect(journal.unfinished.isEmpty && journal.taken.isEmpty)
  }
}
