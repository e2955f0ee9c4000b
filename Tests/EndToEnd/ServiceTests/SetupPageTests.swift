import Foundation
import TestSupport
import Testing

/// All commands of "Session replay back end" and of "Kiosks", one after the other, in an empty directory.
@Suite(.serialized) struct SetupPageTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Runs the shell blocks of a page, with other ports, and ends what they have started.
  private func run(_ page: String) throws -> Tool.Result {
    let text = try String(contentsOf: Fixture.root.appendingPathComponent("docs/" + page), encoding: .utf8)
    var commands = text.matches(of: /(?s)```sh\n(.*?)```/).map { String($0.output.1) }.joined(separator: "\n")
    let first = Int.random(in: 21_000..<30_000)
    for (number, port) in ["8480", "9480", "9481"].enumerated() {
      commands = commands.replacing(":" + port, with: ":\(first + number)")
    }
    let program = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent().path
    try FileManager.default.createSymbolicLink(
      atPath: scratch.path("fixtures"), withDestinationPath: Fixture.root.appendingPathComponent("fixtures").path)
    let script = """
      set -eu
      PATH="\(program):$PATH"
      trap 'kill $(jobs -p) 2>kill.txt; wait' EXIT
      \(commands)
      for number in 1 2 3 4 5 6 7 8 9 10; do
        curl -sSf http://127.0.0.1:\(first + 2)/sessions.json >sessions.json && break
        sleep 1
      done
      """
    return try Tool.run("timeout", ["--foreground", "300", "bash", "-c", script], in: scratch.url)
  }

  private func duration(of film: String) throws -> Double {
    let text = try Tool.output(
      "ffprobe", ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", scratch.path(film)])
    return try #require(Double(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)))
  }

  @Test func sessionReplayIsBuiltFromNothing() throws {
    let result = try run("session-replay.md")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(try abs(duration(of: "app-42.mp4") - 12) < 0.01)
    #expect(FileManager.default.fileExists(atPath: scratch.path("app-42.jpg")))
    #expect(try String(contentsOfFile: scratch.path("metrics.txt"), encoding: .utf8).contains("encoder_worker_ready 1"))
    let list = try String(contentsOfFile: scratch.path("sessions.json"), encoding: .utf8)
    #expect(list.contains("app-42") && list.contains("gap"))
    #expect(try EncoderWorker.run("verify", scratch.path("replay/spool/output/app-42")).status == 0)
    #expect(try names(in: scratch.path("replay/spool/tmp")).isEmpty)
  }

  @Test func kiosksAreCollectedFromNothing() throws {
    let result = try run("kiosks.md")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains("batches a minute"))
    #expect(try duration(of: "hall-01.mp4") > 0)
    #expect(FileManager.default.fileExists(atPath: scratch.path("hall-01.jpg")))
    let list = try String(contentsOfFile: scratch.path("sessions.json"), encoding: .utf8)
    #expect(list.contains("hall-01-2") && list.contains("hall-02-2"))
  }
}
