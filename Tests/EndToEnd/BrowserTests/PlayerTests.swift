import Foundation
import TestSupport
import Testing

/// Runs the browser tests of the pages of `serve`. The tests are Python, in Tests/player.
@Suite struct PlayerTests {
  /// One process runs all tests, since they share one Chromium.
  @Test func browserTestsOfAllPagesPass() throws {
    let directory = Fixture.root.appendingPathComponent("Tests/player")
    let files = try names(in: directory.path).filter { $0.hasPrefix("test_") && $0.hasSuffix(".py") }
    let count = try files.reduce(0) { count, file in
      let text = try String(contentsOf: directory.appendingPathComponent(file), encoding: .utf8)
      return count + text.split(separator: "\n").count { $0.hasPrefix("    def test_") }
    }
    // Debian's selenium package is available only to Debian's own Python.
    let result = try Tool.run(
      Tool.python, ["-m", "unittest"] + files.map { String($0.dropLast(3)) }, in: directory,
      environment: ["ENCODER_WORKER": EncoderWorker.path, "PYTHONDONTWRITEBYTECODE": "1"])
    #expect(result.status == 0, "\(result.errors)")
    #expect(count > 0 && result.errors.contains("Ran \(count) tests in"), "\(count) tests: \(result.errors)")
  }
}
