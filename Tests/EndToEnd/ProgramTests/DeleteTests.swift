import Foundation
import TestSupport
import Testing

@testable import FileSystem

/// `delete`, as the operator runs it.
@Suite struct DeleteTests {
  private static let startMs: Int64 = 1_767_859_512_340
  private static let dead = "\(WorkerID.host)~99999999~dead1"

  private let spool: TestSpool
  private let pictures: PictureBytes

  /// A spool with batches of the sessions `walk` and `other` in all states.
  init() throws {
    let spool = try TestSpool()
    self.spool = spool
    try spool.addSmall("walk@1", startMs: Self.startMs)
    try spool.addSmall("other@1", startMs: Self.startMs, frames: [6, 7])
    #expect(try spool.drain("--keep-batches", "--hls", "--thumbnails", "--sentry").status == 0)
    pictures = try PictureBytes(in: [spool.path + "/done/walk@1", spool.output + "/walk"])
    // Another batch for the same time is a conflict.
    try add("walk@2", [2, 3])
    try spool.add(file: "walk@3.tar", try archive(of: "incoming/walk@2", prefix: 9_000))
    try spool.add(file: "unknown", [1, 2, 3])
    #expect(try spool.drain().status == 65)
    // A batch that waits, one that a dead worker holds, drafts, trash, and unpublished segments of a dead worker.
    try add("walk@4", [0, 1], atMs: Self.startMs + 60_000)
    try copy("walk@4", to: "claimed/\(Self.dead)/1.1.0/walk@4")
    try copy("walk@4", to: "tmp/walk@4")
    try copy("walk@4", to: "collect/0123456789abcdef/drafts/walk@4")
    try copy("walk@4", to: "trash/\(Self.dead)~7")
    try copy("walk@4", to: "output/.staging/\(Self.dead)/1")
    try spool.scratch.file("spool/claimed/\(Self.dead)/alive", [])
    try spool.scratch.file("spool/output/.staging/\(Self.dead)/alive", [])
    try spool.scratch.file("spool/collect/0123456789abcdef/journal", Array("{}\n".utf8))
  }

  private func add(_ name: String, _ frames: [Int], atMs startMs: Int64 = startMs) throws {
    try spool.addSmall(name, startMs: startMs, frames: frames)
  }

  private func archive(of batch: String, prefix: Int) throws -> [UInt8] {
    let all = try Tool.output("tar", ["-cf", "-", "-C", spool.path + "/" + batch, "."])
    return Array(all.prefix(prefix))
  }

  private func copy(_ waiting: String, to place: String) throws {
    let target = spool.path + "/" + place
    try FileManager.default.createDirectory(
      atPath: (target as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: spool.path + "/incoming/" + waiting, toPath: target)
  }

  @discardableResult
  private func delete(_ words: String..., spool path: String? = nil) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, ["delete"] + words + ["--json", "--spool", path ?? spool.path])
  }

  private struct Line: Decodable {
    let session: String
    let reason: String
    let deletedAtMs: Int64
    let segments, files, bytes: Int
    let batches, held, unidentified: [String]
  }

  private func lines(_ result: Tool.Result) throws -> [Line] {
    try result.text.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
  }

  @Test func nothingOfTheSessionIsLeftAndItStaysOut() throws {
    let result = try delete("walk", "never-seen", "walk", "--reason", "request 17")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try pictures.copies(below: spool.path) == [])
    let lines = try lines(result)
    #expect(lines.map(\.session) == ["walk", "never-seen"] && lines[0].reason == "request 17")
    #expect(lines[0].segments == 1 && lines[0].files > 10 && lines[0].bytes > 10_000 && lines[0].held.isEmpty)
    #expect(
      lines[0].batches == [
        "claimed/\(Self.dead)/1.1.0/walk@4", "incoming/walk@4", "tmp/walk@4", "collect/0123456789abcdef/drafts/walk@4",
        "done/walk@1", "quarantine/walk@2", "quarantine/walk@3.tar",
      ])
    #expect(lines[0].unidentified == [spool.path + "/quarantine/unknown"])
    #expect(lines[1].files == 0 && lines[1].batches.isEmpty)
    #expect(try spool.names("quarantine") == ["unknown", "unknown.reason.json"])
    #expect(try spool.names("done") == ["other@1"])
    #expect(try names(in: spool.output) == [".deleted", ".staging", "other"])
    // Later batches are refused: good batches, and broken ones that name the session.
    try add("walk@5", [0, 1])
    try spool.add(file: "walk@6.tar", [1, 2, 3])
    try spool.add(file: "broken.tar", try description(of: "walk"))
    try add("never-seen@1", [4, 5])
    let later = try spool.drain("--keep-batches", "--log-level", "notice")
    #expect(later.status == 0 && later.errors.contains("0 batches published"), "\(later.errors)")
    #expect(later.errors.contains("4 batches refused"), "\(later.errors)")
    #expect(later.errors.contains("notice batch.refused batch=walk@5 session=walk reason="))
    #expect(try spool.isAtRest && pictures.copies(below: spool.path) == [])
    #expect(try spool.names("done") == ["other@1"] && spool.names("quarantine").count == 2)
    #expect(try names(in: spool.output) == [".deleted", ".staging", "other"])
    // The second run has nothing left to remove, and keeps the first reason.
    let second = try self.lines(delete("walk", "--reason", "again"))
    #expect(second[0].files == 0 && second[0].reason == "request 17" && second[0].deletedAtMs == lines[0].deletedAtMs)
  }

  @Test func dryRunShowsWhatADeletionRemovesAndChangesNothing() throws {
    _ = try spool.scratch.directory("spool/ingest/walk")
    try spool.scratch.file("spool/ingest/walk/1767859512340.jpg", try Fixture("exact-1fps").bytes("0000.jpg"))
    let before = try snapshot(of: spool.path)
    let shown = try delete("walk", "never-seen", "--dry-run", "--reason", "request 17")
    #expect(shown.status == 0, "\(shown.errors)")
    #expect(try snapshot(of: spool.path) == before)
    let told = try EncoderWorker.run("delete", "walk", "never-seen", "--dry-run", "--spool", spool.path)
    let lines = told.text.split(separator: "\n")
    #expect(lines.count == 2 && lines[0].hasPrefix("walk: 1 segment and 8 batches would be removed, "), "\(told.text)")
    #expect(lines.last == "never-seen: nothing of it is there" && !told.errors.contains("refused"), "\(told.errors)")
    #expect(try snapshot(of: spool.path) == before)
    let undeleted = try delete("walk", "--dry-run", "--undelete")
    #expect(undeleted.status == 64)
    struct Preview: Decodable {
      let session: String
      let dryRun: Bool
      let segments, files, bytes: Int
      let batches, held, unidentified: [String]
    }
    let previews = try shown.text.split(separator: "\n").map {
      try JSONDecoder().decode(Preview.self, from: Data($0.utf8))
    }
    #expect(!shown.text.contains("deletedAtMs") && !shown.text.contains("request 17"), "\(shown.text)")
    let removed = try self.lines(delete("walk", "never-seen"))
    for (preview, line) in zip(previews, removed) {
      #expect(preview.session == line.session && preview.dryRun)
      // The pictures that wait become a batch, which is removed.
      let made = line.batches.filter { $0 != "ingest/walk" && !$0.hasPrefix("incoming/walk@1767859512340") }
      #expect(preview.segments == line.segments)
      #expect(preview.batches.filter { $0 != "ingest/walk" } == made, "\(line.batches)")
      #expect(preview.held == line.held && preview.unidentified == line.unidentified)
    }
    #expect(previews.count == 2 && removed[0].files > 10 && previews[0].files > 10)
  }

  /// A torn archive may have a `batch.json` that names the session. A directory that can be read has none.
  @Test func unreadableBatchesOfOtherSessionsTakeOneLineAndReadableOnesNone() throws {
    try add("other@7", [0, 1])
    try spool.scratch.file("spool/quarantine/other@7.tar", try archive(of: "incoming/other@7", prefix: 9_000))
    _ = try spool.scratch.directory("spool/quarantine/third@1")
    try spool.scratch.file("spool/quarantine/third@1/notes.txt", Array("text".utf8))
    let result = try delete("walk")
    #expect(result.status == 0, "\(result.errors)")
    let unreadable = ["other@7.tar", "unknown"].map { spool.path + "/quarantine/" + $0 }
    #expect(try lines(result)[0].unidentified == unreadable)
    let line =
      "2 batches that cannot be read, of other sessions by name: \(unreadable[0]) (other), \(unreadable[1]) (unknown)"
    #expect(result.errors.contains(line), "\(result.errors)")
    #expect(!result.errors.contains("look at it") && !result.errors.contains("third@1"), "\(result.errors)")
  }

  /// An archive with a `batch.json` that names the session, and nothing that can be used.
  private func description(of session: String) throws -> [UInt8] {
    let draft = try spool.scratch.directory("draft")
    try spool.scratch.file("draft/batch.json", Array(#"{"version":1,"session":"\#(session)","endMs":-1}"#.utf8))
    return Array(try Tool.output("tar", ["-cf", "-", "-C", draft, "."]))
  }

  @Test func undeleteAllowsTheSessionAgain() throws {
    try delete("walk")
    let result = try delete("walk", "other", "--undelete")
    #expect(result.status == 0)
    #expect(
      result.text == """
        {"session":"walk","undeleted":true}
        {"session":"other","undeleted":false}

        """)
    try add("walk@1", [0, 1])
    #expect(try spool.drain().errors.contains("1 batch published"))
    #expect(try names(in: spool.output) == [".deleted", ".staging", "other", "walk"])
  }

  @Test func commandsSayThatTheSessionWasDeleted() throws {
    try add("other@4", [6, 7], atMs: Self.startMs + 60_000)
    try delete("walk")
    let output = spool.output
    let commands = [
      ["verify", output + "/walk"], ["stitch", output + "/walk", "--to", spool.scratch.path("film.mp4")],
      ["pictures", output + "/walk", "--to", spool.scratch.path("pictures")],
      ["encode", spool.path + "/incoming/other@4", "--session", "walk", "--output", output],
    ]
    for command in commands {
      let result = try Tool.run(EncoderWorker.path, command)
      #expect(result.status == 65, "\(command): \(result.status)")
      #expect((result.text + result.errors).contains("session walk was deleted at 20"), "\(command): \(result.errors)")
    }
    let json = try Tool.run(EncoderWorker.path, commands[3] + ["--json"])
    #expect(json.status == 65 && json.text.contains(#""refusal":"session walk was deleted"#), "\(json.text)")
    let small = spool.scratch.path("small")
    let reencode = ["reencode", output + "/other", "--output", small, "--quality", "small"]
    #expect(try Tool.run(EncoderWorker.path, reencode).status == 0)
    #expect(try EncoderWorker.run("delete", "other", "--output", small).status == 0)
    let refused = try Tool.run(EncoderWorker.path, reencode)
    #expect(refused.status == 65 && refused.errors.contains("was deleted at"), "\(refused.errors)")
    #expect(try names(in: small).filter { $0 != ".staging" } == [".deleted"])
  }

  @Test func wrongUsageChangesNothing() throws {
    let before = try snapshot(of: spool.path)
    // Its workers may have another output.
    _ = try spool.scratch.directory("elsewhere/incoming")
    let calls: [[String]] = [
      [], ["--output", spool.output], ["../walk", "--output", spool.output], ["walk"],
      [".walk", "--output", spool.output],
      ["walk", "--spool", spool.scratch.path("elsewhere")], ["walk", "--output", spool.scratch.path("none")],
      ["walk", "--output", spool.output + "/walk"],
      ["walk", "--output", spool.path + "/done", "--spool", spool.path], ["walk", "--spool", spool.output],
      ["walk", "--output", spool.output, "--store", "s3://bucket"],
      ["walk", "--output", spool.output, "--undelete", "--reason", "x"],
      ["walk", "--output", spool.output, "--reason", String(repeating: "x", count: 1_001)],
    ]
    for words in calls {
      let result = try Tool.run(EncoderWorker.path, ["delete"] + words)
      #expect(result.status == 64 && result.text.isEmpty, "\(words): \(result.status) \(result.errors)")
    }
    #expect(try snapshot(of: spool.path) == before)
  }

  @Test func pruneCanLeaveTombstones() throws {
    let session = spool.output + "/walk"
    try spool.endAnnounced("walk")
    for file in try names(in: session) {
      let time = timespec(tv_sec: time(nil) - 100 * 86_400, tv_nsec: 0)
      #expect(utimensat(AT_FDCWD, session + "/" + file, [time, time], AT_SYMLINK_NOFOLLOW) == 0)
    }
    func prune(_ words: String...) throws -> Tool.Result {
      try Tool.run(EncoderWorker.path, ["prune", "--spool", spool.path] + words)
    }
    #expect(try prune("--tombstones").status == 64)
    #expect(try prune("--sessions", "90d", "--tombstones", "--dry-run").status == 0)
    #expect(try !names(in: spool.output).contains(".deleted"))
    #expect(try prune("--sessions", "90d", "--tombstones").status == 0)
    #expect(try names(in: spool.output + "/.deleted") == ["walk.json"])
    #expect(try spool.drain().errors.contains(" refused"))
    #expect(try !names(in: spool.output).contains("walk"))
  }
}
