import Foundation
import TestSupport
import Testing

/// Each example in the table of docs/input-formats.md, as the arguments of `encode`, makes of a batch of its recorder the
/// sessions that the row names.
@Suite struct InputExampleTests {
  /// A row's batch, in a directory below the one in which its command runs.
  struct Input: Sendable {
    /// A fixture, which the test copies from `fixtures/` to `path`; nil if the test makes the files.
    var fixture: String?
    var path = ""
    /// Files that all contain the same image.
    var files: [String] = []
    /// Further files, with their contents.
    var texts: [String: String] = [:]
    let sessions: [String]

    init(_ fixture: String, as path: String, _ sessions: String...) {
      (self.fixture, self.path, self.sessions) = (fixture, path, sessions)
    }

    init(_ files: [String], _ sessions: String..., texts: [String: String] = [:]) {
      (self.files, self.sessions, self.texts) = (files, sessions, texts)
    }
  }

  private static let rejourney = "session_1767859512340_0123456789abcdef0123456789abcdef"
  private static let replay = "replay_0123456789abcdef0123456789abcdef"
  private static let uuid = "5E0A1F2C-0B7D-4C7E-9E55-7A1D2C3B4A59"
  private static let openReplay = "7281923112-1767859516340"

  /// The batches by the first words of the row, in the order of the table.
  static let inputs: KeyValuePairs<String, Input> = [
    "your own": Input("formats/native", as: "9f0c@1", "native"),
    "plain": Input("jittered", as: "shots", "shots"),
    "Sentry for iOS": Input("formats/bare-sentry-cocoa/\(uuid)", as: uuid, uuid),
    "Sentry for Android": Input("formats/sentry-android/\(replay)", as: replay, String(replay.dropFirst(7))),
    "OpenReplay": Input("formats/openreplay-tar/\(openReplay).tar.gz", as: "7281923112-0.tar.gz", "7281923112"),
    "OpenReplay, frames": Input("formats/openreplay-frames/replay.frames", as: "replay.frames", "7281923112"),
    "Rejourney, frames": Input(
      "formats/rejourney-frames/\(rejourney)-1767859516340.tar.gz", as: "\(rejourney)-1767859516340.tar.gz", rejourney),
    "Rejourney": Input(
      "formats/rejourney-tar/\(rejourney)-1767859516340.tar.gz", as: "\(rejourney)-1767859516340.tar.gz", rejourney),
    "Rejourney, spilled": Input(
      "formats/rejourney-spill/\(rejourney)", as: "session_1767859512340_5e0a", "session_1767859512340_5e0a"),
    "PostHog": Input(
      "formats/posthog-requests/ios.json.gz", as: "posthog.json.gz", "0195e5a2-7c11-7d1e-8b5a-2f6d3c9e4b10"),
    "Mixpanel": Input("formats/mixpanel/replay.json.gz", as: "019b9c7a.json.gz", "019b9c7a"),
    "LaunchDarkly": Input("formats/launchdarkly/replay.json.gz", as: "replay.json", "lobby"),
    "rrweb canvas": Input("formats/rrweb-canvas/replay.jsonl.gz", as: "events.jsonl", "lobby.canvas7"),
    "Playwright": Input("formats/playwright/trace-10.zip", as: "trace.zip", "login.\(replay.dropFirst(7))"),
    "Chrome screencast": Input("formats/screencast/events.jsonl", as: "screencast.jsonl", "screencast"),
    "screenpipe": Input(
      ["data/2026-01-08/1767859512340_m1.jpg", "data/2026-01-08/1767859513340_m2.jpg"], "desk.m1", "desk.m2"),
    "omi": Input(["omi/2026-01-08/1767859512340.jpg"], "omi"),
    "Frigate": Input(["preview_frames/preview_front-door-1767859512.34.webp"], "front-door"),
    "OpenRecall": Input(["screenshots/1767859512_1.webp"], "screenshots.m1"),
    "Pensieve": Input(["pensieve/20260108/screenshot-20260108-090512-of-DP-1.webp"], "pensieve.mDP-1"),
    "motion": Input(["motion/01-20260108090512-00.jpg"], "motion"),
    "OSWorld": Input(
      ["run7/step_1_20260108@080512123456.png"], "run7",
      texts: ["run7/traj.jsonl": #"{"action_timestamp":"20260108@080512123456","action":"WAIT"}"#]),
    "browser-use": Input(
      ["agent/screenshots/step_1.png"], "agent",
      texts: [
        "agent/history.json":
          #"{"history":[{"model_output":null,"result":[],"state":{"screenshot_path":"/tmp/screenshots/step_1.png"},"#
          + #""metadata":{"step_start_time":1767859512.34,"step_end_time":1767859515.5}}]}"#
      ]),
    "cua": Input(
      ["trajectories/2026-01-08_claude_080512_ab12/turn_000/0001_screenshot.png"], "2026-01-08_claude_080512_ab12",
      texts: [
        "trajectories/2026-01-08_claude_080512_ab12/metadata.json": #"{"created_at":"139871523123400000"}"#,
        "trajectories/2026-01-08_claude_080512_ab12/turn_000/0000_agent_response.json":
          #"{"created_at":"139871523123400000"}"#,
      ]),
    "ISO 8601": Input(["iso/2026-01-08T08:05:12.340Z.jpg", "iso/20260108T080513Z.png"], "iso"),
    "screenshots of macOS": Input(
      [
        "Desktop/Screenshot 2026-01-08 at 9.05.12\u{202F}AM.png",
        "Desktop/Screenshot 2026-01-08 at 12.05.12\u{202F}PM.png",
      ],
      "Desktop"),
    "Allsky, motionEye": Input(["Camera1/2026-01-08/09-05-12.jpg", "Camera1/2026-01-09/00-00-01.jpg"], "Camera1"),
    "any other name": Input(["shots/cam_7_1767859512.jpg"], "shots"),
    "numbered frames": Input(["frames/frame_0001.png", "frames/frame_0002.png"], "frames"),
    "any files": Input(["shots/b.png", "shots/a.png"], "shots"),
  ]

  /// Returns the first and the last cell of each row: the recorder, and the example as the command of the page.
  private func rows() throws -> [(recorder: String, command: String)] {
    let page = try String(contentsOf: Fixture.root.appendingPathComponent("docs/input-formats.md"), encoding: .utf8)
    let lines = page.split(separator: "\n").drop { !$0.hasPrefix("| recorder |") }.prefix { $0.hasPrefix("|") }
    return lines.dropFirst(2).map { line in
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      let example = cells[cells.count - 1].replacing("`", with: "")
      return (cells[0].replacing("[", with: ""), "encoder-worker encode \(example) --output out")
    }
  }

  @Test func everyExampleOfTheTableEncodesABatchOfItsRecorder() throws {
    let rows = try rows()
    try #require(rows.count == Self.inputs.count)
    for (row, (recorder, input)) in zip(rows, Self.inputs) {
      #expect(row.recorder.hasPrefix(recorder))
      let scratch = try ScratchDirectory()
      try make(input, in: scratch)
      let program = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent().path
      let result = try Tool.run("sh", ["-c", "PATH=\"\(program):$PATH\"; \(row.command)"], in: scratch.url)
      #expect(result.status == 0, "\(row.command): \(result.text)\(result.errors)")
      let sessions = try names(in: scratch.path).contains("out") ? names(in: scratch.path("out")) : []
      let published = sessions.filter { !$0.hasPrefix(".") }
      #expect(published == input.sessions, "\(row.command)")
    }
  }

  private func make(_ input: Input, in scratch: ScratchDirectory) throws {
    if let fixture = input.fixture {
      try FileManager.default.copyItem(atPath: Fixture(fixture).path, toPath: scratch.path(input.path))
    }
    let image = try Fixture("single-frame").bytes("1767859512340.jpg")
    for file in input.files {
      try FileManager.default.createDirectory(
        atPath: (scratch.path(file) as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try scratch.file(file, image)
    }
    for (file, text) in input.texts { try scratch.file(file, Array(text.utf8)) }
  }
}
