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

  private static func record(_ batch: String, isFinal: Bool = false, files: Int = 2) -> CollectRecord {
    let stamp = FileStamp(inode: .max, size: 3, modified: -1)
    return CollectRecord(
      batch: batch, group: .key("m1"),
      session: CollectedSession(name: "s.m1", lastMs: 1, endMs: 2, intervalMs: 1_000), isFinal: isFinal,
      files: (0..<files).map { FolderFile(name: "ä \"\($0)\".jpg", stamp: stamp) })
  }

  @Test func journalListsUnfinishedBatchesCollectedFilesAndOpenSessions() throws {
    var journal = try CollectJournal(path)
    let (first, second) = (Self.record("a"), Self.record("b"))
    try journal.append(.batch(first))
    try journal.append(.done("a", kept: first.files))
    try journal.append(.batch(second))
    for _ in 0..<2 {
      journal = try CollectJournal(path)
      #expect(journal.unfinished == [second])
      #expect(journal.taken == Dictionary(uniqueKeysWithValues: first.files.map { ($0.name, $0.stamp) }))
      #expect(journal.sessions == [.key("m1"): first.session])
      try journal.compact(in: Directory(opening: scratch.path))
    }
    try journal.append(.batch(Self.record("b", isFinal: true)))
    #expect(try CollectJournal(path).sessions.isEmpty)
  }

  @Test func tornLineIsIgnored() throws {
    let journal = try CollectJournal(path)
    try journal.append(.batch(Self.record("a")))
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    try journal.append(.done("a", kept: []))
    let both = try Data(contentsOf: URL(fileURLWithPath: path))
    for count in 0..<both.count {
      try both.prefix(count).write(to: URL(fileURLWithPath: path))
      let journal = try CollectJournal(path)
      // The newline may be missing, because the text is then still a complete line.
      #expect(journal.unfinished.count == (count >= whole.count - 1 && count < both.count - 1 ? 1 : 0))
      // The next line stays readable after the torn one.
      try journal.append(.batch(Self.record("next")))
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
