import Foundation
import TestSupport
import Testing

/// `encode --dry-run` shows the same frames and segments that `encode` produces.
@Suite struct DryRunTests {
  private struct Inspected: Decodable {
    struct Frame: Decodable { let source: String, timeMs: Int64, holdMs: Int64, width: Int, height: Int, note: String? }
    struct Refused: Decodable, Hashable { let source: String, reason: String }

    let batch: String
    let format: String
    let session: String
    let startMs: Int64
    let endMs: Int64
    let segments: Int
    let frames: [Frame]
    let refused: [Refused]
    let gaps: [PublishedSession.Index.Gap]
  }

  @Test(arguments: Fixture.all + Fixture.corpus)
  func dryRunReportsTheFramesAndSegmentsOfEncode(fixture: Fixture) throws {
    let scratch = try ScratchDirectory()
    let before = try snapshot(of: fixture.path)
    let result = try EncoderWorker.run("encode", "--dry-run", fixture.path, "--session", fixture.name, "--json")
    #expect(result.status == 0, "\(result.errors)")
    let found = try JSONDecoder().decode(Inspected.self, from: result.output)
    #expect(try snapshot(of: fixture.path) == before)
    let session = try EncoderWorker.encode(fixture, into: scratch)
    #expect(found.session == session.index.session)
    #expect(found.segments == session.manifests.count)
    #expect(found.startMs == session.index.startMs && found.endMs == session.manifests.last?.endMs)
    #expect(found.gaps == session.index.gaps)
    #expect(found.frames.map(\.timeMs) == session.captured.map(\.timeMs))
    #expect(found.frames.map(\.source) == session.captured.map(\.source))
    let shown = session.manifests.flatMap { $0.frames }
    for frame in found.frames {
      #expect(frame.holdMs == shown.filter { $0.timeMs == frame.timeMs }.reduce(0) { $0 + $1.holdMs })
      #expect(frame.note == shown.first { $0.timeMs == frame.timeMs }?.note)
    }
    let refused = session.manifests.flatMap {
      $0.refused.map { Inspected.Refused(source: $0.source, reason: $0.reason) }
    }
    // A broken last picture of a folder is in no manifest.
    #expect(Set(found.refused.filter { !$0.reason.hasSuffix("left for the next run") }) == Set(refused))
  }

  @Test func dryRunPrintsATable() throws {
    let path = Fixture("formats/openreplay-frames-bad").path + "/cut.frames"
    let result = try EncoderWorker.run("encode", "--dry-run", path, Fixture("gap").path)
    #expect(result.status == 0)
    let lines = result.text.split(separator: "\n").map(String.init)
    #expect(lines[0] == "cut.frames: OpenReplay frames, session cut, 4 frames, 4.0 s, 1 segment, 0 gaps, 1 refused")
    #expect(lines[2] == "  2026-01-08T08:05:12.340Z        1000     180x320  cut#0")
    #expect(lines[6].hasPrefix("  refused cut#4: the record breaks off: "))
    #expect(lines.contains("  gap                             7000"))
  }

  /// A batch of labels for a session that is published: `encode` adds them.
  @Test func labelsThatWouldBeAddedAreShown() throws {
    let scratch = try ScratchDirectory()
    let output = scratch.path("out")
    #expect(try EncoderWorker.run("encode", Fixture("single-frame").path, "--output", output).status == 0)
    let folder = try scratch.directory("more")
    let labels =
      #"[{"timeMs":1767859512840,"kind":"step","text":"Add\nto cart"},{"timeMs":1767859512600,"text":"a"},{}]"#
    let text = #"{"version":1,"session":"single-frame","labels":\#(labels)}"#
    try scratch.file("more/batch.json", Array(text.utf8))
    let before = try snapshot(of: output)
    let shown = try EncoderWorker.run("encode", folder, "--dry-run")
    #expect(shown.status == 0, "\(shown.errors)")
    #expect(
      shown.text.split(separator: "\n").map(String.init) == [
        "more: labels, session single-frame, 2 labels, would be added to what is published",
        "  2026-01-08T08:05:12.600Z   mark  a", #"  2026-01-08T08:05:12.840Z   step  Add\nto cart"#,
        "  warning: 1 label is left out: labels[2]: no \"timeMs\"",
      ])
    let json = try EncoderWorker.run("encode", folder, "--dry-run", "--json")
    #expect(
      json.text.contains(#""endMs":1767859512840,"format":"labels","labels":2,"session":"single-frame""#),
      "\(json.text)")
    #expect(try snapshot(of: output) == before)
    let added = try EncoderWorker.run("encode", folder, "--output", output)
    #expect(added.status == 0, "\(added.errors)")
    #expect(try names(in: output + "/single-frame").contains { $0.hasSuffix(".labels.json") })
  }

  @Test func batchThatWouldBeQuarantinedIsReported() throws {
    let scratch = try ScratchDirectory()
    let file = try scratch.file("rubbish.tar.gz", Array("rubbish".utf8))
    let result = try EncoderWorker.run("encode", "--dry-run", file, scratch.path("missing"), Fixture("gap").path)
    #expect(result.status != 0)
    #expect(result.text.contains("rubbish.tar.gz: would be quarantined: read rubbish.tar.gz: no known format"))
    let json = try EncoderWorker.run("encode", "--dry-run", "--json", file)
    #expect(json.status == 65)
    #expect(json.text.contains(#""error":{"#))
    #expect(try names(in: scratch.path) == ["rubbish.tar.gz"])
  }
}
