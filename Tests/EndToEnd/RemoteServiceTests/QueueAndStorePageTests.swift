import Foundation
import TestSupport
import Testing

/// "Try it on one machine" of `docs/queue-and-store.md`, in an empty directory.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct QueueAndStorePageTests {
  @Test func firstRunMakesAFilm() throws {
    let scratch = try ScratchDirectory()
    let page = try String(
      contentsOf: Fixture.root.appendingPathComponent("docs/queue-and-store.md"), encoding: .utf8)
    let section = try #require(page.components(separatedBy: "\n## ").first { $0.hasPrefix("Try it on one machine") })
    var commands = String(try #require(section.firstMatch(of: /(?s)```sh\n(.*?)```/)).output.1)
    // Ports below those that the system gives out.
    let first = Int.random(in: 20_000..<30_000)
    for (number, port) in ["5000", "6380"].enumerated() {
      commands.replace(":" + port, with: ":\(first + number)")
      commands.replace("-p " + port, with: "-p \(first + number)")
      commands.replace("--port " + port, with: "--port \(first + number)")
    }
    try FileManager.default.createSymbolicLink(
      atPath: scratch.path("fixtures"), withDestinationPath: Fixture.root.appendingPathComponent("fixtures").path)
    let program = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent().path
    let script = """
      set -eu
      PATH="\(program):$PATH"
      export no_proxy=127.0.0.1
      moto_server() { PYTHONPATH="\(StoreServer.modules)" exec \(Tool.python) -m moto.server "$@"; }
      trap 'kill -KILL $(jobs -p) 2>kill.txt; wait' EXIT
      \(commands)
      """
    let limit = ["--foreground", "--signal=KILL", "300"]
    let result = try Tool.run("timeout", limit + ["bash", "-c", script], in: scratch.url)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    let probed = try Tool.output(
      "ffprobe", ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", scratch.path("walk.mp4")])
    let duration = String(decoding: probed, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(Double(duration).map { abs($0 - 12) < 0.1 } == true, "\(duration)")
  }
}
