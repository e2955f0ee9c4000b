import Foundation
import TestSupport
import Testing

/// The lines that people read on standard output: the last one is the same for each run, and JSON comes on request only.
@Suite struct LastLineTests {
  private let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
    _ = try run(["encode", Fixture("exact-1fps").path, "--output", "out"])
  }

  @discardableResult
  private func run(_ words: [String], status: Int32 = 0) throws -> Tool.Result {
    let result = try Tool.run(EncoderWorker.path, words, in: scratch.url)
    #expect(result.status == status, "\(words): \(result.errors)")
    return result
  }

  private static func last(_ text: String) -> String { text.split(separator: "\n").last.map(String.init) ?? "" }

  @Test(arguments: [
    (["encode", Fixture("gap").path, "--output", "out"], "the session is in out/gap"),
    (["encode", Fixture("gap").path, Fixture("rotation").path, "--output", "out"], "2 sessions are in out"),
    (["film", Fixture("gap").path, "--to", "film.mp4"], "film.mp4: "),
    (["stitch", "out/exact-1fps", "--to", "film.mp4"], "film.mp4: 12.0 s, 3 segments, "),
    (["stitch", "out/exact-1fps", "--to", "hls", "--format", "hls"], "hls/session.m3u8: 12.0 s"),
    (["pictures", "out/exact-1fps", "--to", "pictures.zip"], "pictures.zip: 12 of 12 pictures, "),
    (["pictures", "out/exact-1fps", "--to", "one.png", "--at", "+1s"], "one.png: "),
    (["reencode", "out/exact-1fps", "--output", "small", "--quality", "small"], "kB, in small/exact-1fps"),
    (["verify", "out"], "exact-1fps"),
  ])
  func lastLineOfASecondRunIsTheSame(words: [String], place: String) throws {
    let (first, second) = (Self.last(try run(words).text), Self.last(try run(words).text))
    #expect(first == second && (first.hasPrefix(place) || first.hasSuffix(place)), "\(first)\n\(second)")
  }

  /// The names of the batches are the result on standard output.
  @Test func lastLineOfEnqueueSaysWhereTheBatchIs() throws {
    let words = ["enqueue", Fixture("gap").path, "--spool", "spool"]
    for name in ["gap\n", "gap.2\n"] {
      let result = try run(words)
      #expect(result.text == name && Self.last(result.errors) == "the batch is in spool/incoming", "\(result.errors)")
    }
  }

  @Test func resultIsNeverWrittenToAFileNamedAsStandardOutput() throws {
    for words in [
      ["film", Fixture("gap").path, "--to", "-"], ["stitch", "out/exact-1fps", "--to", "-"],
      ["stitch", "out/exact-1fps", "--to", "-", "--format", "hls"], ["pictures", "out/exact-1fps", "--to", "-"],
      ["pictures", "out/exact-1fps", "--at", "+1s", "--to", "-"],
      ["pictures", "out/exact-1fps", "--sheet", "--to", "-"],
      ["film", Fixture("gap").path, "--to", "film.mp4", "--map", "-"],
      ["encode", Fixture("gap").path, "--output", "-"],
      ["reencode", "out/exact-1fps", "--output", "-", "--quality", "small"],
    ] {
      let result = try run(words, status: 64)
      #expect(result.text.isEmpty && result.errors.contains(" -") && result.errors.contains("name "), "\(words)")
    }
    #expect(try names(in: scratch.path) == ["out"])
  }

  private struct Deleted: Decodable {
    let session: String
    let segments: Int
  }

  @Test func deleteAndEndPrintForPeopleUnlessJSONIsAskedFor() throws {
    let place = scratch.path("out")
    let end = try run(["end", "exact-1fps", "--output", place])
    #expect(
      end.text == "exact-1fps: it had ended at 2026-01-08T08:05:24.340Z\nexact-1fps: ended, in \(place)/exact-1fps\n")
    #expect(end.errors.isEmpty)
    let ended = try run(["end", "exact-1fps", "--output", place, "--json"])
    #expect(ended.text.hasPrefix("{") && ended.text.split(separator: "\n").count == 1, "\(ended.text)")
    let line = "exact-1fps: later batches of it are refused in \(place)\n"
    let first = try run(["delete", "exact-1fps", "--output", place])
    #expect(first.text.contains(#/^exact-1fps: 3 segments and 0 batches removed, [0-9]+ kB\n/#), "\(first.text)")
    let second = try run(["delete", "exact-1fps", "--output", place])
    #expect(first.text.hasSuffix("\n" + line) && second.text.hasSuffix("\n" + line), "\(second.text)")
    #expect(!(first.text + second.text).contains("{"))
    let third = try run(["delete", "exact-1fps", "--output", place, "--json"])
    let facts = try third.json(as: Deleted.self)
    #expect(facts.session == "exact-1fps" && facts.segments == 0 && third.errors.contains(line))
    #expect(try run(["delete", "exact-1fps", "--output", place, "--undelete"]).text.contains("are published again"))
    let undeleted = try run(["delete", "exact-1fps", "--output", place, "--undelete", "--json"])
    #expect(undeleted.text == "{\"session\":\"exact-1fps\",\"undeleted\":false}\n")
  }
}
