import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Trajectories of cua: pictures at the times of their records, and actions as labels.
@Suite struct CuaTests {
  private static let start: Int64 = 1_767_859_512_340

  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Returns a record that was written then.
  private static func record(_ offsetMs: Int64, _ rest: String = "") -> String {
    #"{"created_at":"\#(122_192_928_000_000_000 + (start + offsetMs) * 10_000 + 9)"\#(rest)}"#
  }

  private static let click = #","item":{"type":"computer_call","action":{"type":"click","x":10,"y":20}}"#
  private static let typing = #","item":{"type":"computer_call","action":{"type":"type","text":"s3cret"}}"#
  private static let function =
    #","item":{"type":"function_call","name":"computer","arguments":"{\"action\":\"scroll\",\"coordinate\":[3,4]}"}"#

  /// - Parameter files: with `nil` for a picture.
  private func read(_ files: [String: String?], in folder: String = "") throws -> BatchSessions {
    let image = try BatchTests.jpeg
    let entries = files.map { ZipArchive.Entry(folder + $0.key, $0.value.map { Array($0.utf8) } ?? image) }
    return try BatchSessions(reading: scratch.file("run.zip", ZipArchive(entries).bytes))
  }

  private static let run: [String: String?] = [
    "metadata.json": record(0), "turn_000/0000_api_start.json": record(100),
    "turn_000/0001_agent_response.json": record(1_000), "turn_000/0002_screenshot_after.png": nil,
    "turn_000/0003_computer_call_result.json": record(2_000, click), "turn_000/0004_screenshot_action.png": nil,
    "turn_001/0005_computer_call_result.json": record(3_000, typing), "turn_001/0006_screenshot_action.png": nil,
    "turn_001/0007_function_call_result.json": record(4_000, function),
  ]

  @Test func picturesHaveTheTimesOfTheRecordsBeforeThem() throws {
    let batch = try read(Self.run).readers[0].batch
    #expect(batch.frames.map { $0.timeMs - Self.start } == [1_000, 2_000, 3_000])
    #expect(batch.session.description == "run" && batch.capture == .onChange)
    #expect(batch.refused.isEmpty, "\(batch.refused)")
    #expect(batch.labels.map(\.text) == ["click at 10, 20", "type", "scroll at 3, 4"])
    #expect(batch.labels.map { $0.timeMs - Self.start } == [2_000, 3_000, 4_000])
    #expect(batch.labels.allSatisfy { $0.kind == "step" })
  }

  @Test func folderAroundTrajectoriesHasASessionForEach() throws {
    var files: [String: String?] = [:]
    for name in ["2026-01-08_claude_090512_ab12", "2026-01-08_gpt_090612_cd34"] {
      for (path, content) in Self.run { files["\(name)/\(path)"] = content }
    }
    let sessions = try read(files).readers.map(\.batch)
    #expect(
      sessions.map(\.session.description) == ["2026-01-08_claude_090512_ab12", "2026-01-08_gpt_090612_cd34"])
    #expect(sessions.allSatisfy { $0.frames.count == 3 && $0.labels.count == 3 })
  }

  @Test func picturesWithoutATimeAreRefused() throws {
    var files = Self.run
    files["turn_000/0001_agent_response.json"] = "{"
    files["turn_001/0006_screenshot_before.png"] = String?.none
    files["turn_001/0006_screenshot_action.png"] = nil as String??
    files["turn_001/0008_screenshot.png"] = String?.none
    files["turn_001/0009_screenshot.png"] = String?.none
    files["turn_001/thumbnail.png"] = String?.none
    let batch = try read(files).readers[0].batch
    #expect(batch.frames.map { $0.timeMs - Self.start } == [2_000, 3_000, 4_000])
    #expect(batch.refused.count == 3)
    for reason in ["tells no time", "has the same time", "no picture of a turn"] {
      #expect(batch.refused.contains { $0.reason.contains(reason) }, "\(batch.refused)")
    }
  }

  @Test func otherFoldersAreNone() throws {
    #expect(throws: BadBatch.self) { try read(["turn_000/0000_screenshot.png": nil]) }
    #expect(throws: BadBatch.self) { try read(["turn_x/0000_a.json": Self.record(0), "turn_x/0001_a.png": nil]) }
  }
}
