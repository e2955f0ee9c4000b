import Foundation
import TestSupport
import Testing

/// A run of recorders while the program is stopped at random: each acknowledged picture is shown at its instant, and each session that
/// was asked to end has ended, once. `make torture` has a hundred runs of all scenarios.
@Suite struct RestartTests {
  @Test(arguments: ["ingest"]) func eachPictureOutlivesRestarts(scenario: String) throws {
    let script = Fixture.root.appendingPathComponent("Tests/torture/restarts.py").path
    let runs = Extent.of(1, full: 20)
    let result = try Tool.run(
      Tool.python, ["-B", script, EncoderWorker.path, "--scenario", scenario, "--seed", "63", "--runs", "\(runs)"])
    #expect(result.status == 0, "\(result.text) \(result.errors)")
    #expect(result.text.contains("restarts: \(runs) runs, 0 with faults"))
  }
}
