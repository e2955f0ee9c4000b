import Foundation
import TestSupport
import Testing

/// The pages of `serve` in a browser. The tests are Python, in Tests/player.
@Suite struct PlayerTests {
  /// One process runs all of them, since they share one Chromium.
  @Test func pagesDoWhatTheyPromise() throws {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let directory = tests.appendingPathComponent("player")
    let files = try names(in: directory.path).filter { $0.hasPrefix("test_") && $0.hasSuffix(".py") }
    let count = try files.reduce(0) { count, file in
      let text = try String(contentsOf: directory.appendingPathComponent(file), encoding: .utf8)
      return count + text.split(separator: "\n").count { $0.hasPrefix("    def test_") }
    }
    // Debian's own Python has Debian's selenium.
    let result = try Tool.run(
      "/usr/bin/python3", ["-m", "unittest"] + files.map { String($0.dropLast(3)) }, in: directory,
      environment: ["ENCODER_WORKER": EncoderWorker.path, "PYTHONDONTWRITEBYTECODE": "1"])
    #expect(result.status == 0, "\(result.errors)")
    #expect(count > 0 && result.errors.contains("Ran \(count) tests in"), "\(count) tests: \(result.errors)")
  }
}
