import Foundation
import TestSupport
import Testing

/// The examples for batch engines, on those engines that can be had here.
@Suite(.serialized) struct EngineTests {
  @Test(.enabled(if: Self.has("slurmctld", "slurmd", "munged", "sbatch"), "slurm-wlm and munge are not installed"))
  func anArrayOfSlurmWithTasksThatAreKilledDoesWhatOneRunDoes() throws { try run("slurm.py") }

  @Test(.enabled(if: Self.has("parallel"), "parallel is not installed"))
  func shardsUnderParallelDoWhatOneRunDoes() throws { try run("parallel.py") }

  @Test func everyCallInTheExamplesIsTakenByTheProgram() throws { try run("calls.py") }

  private func run(_ script: String) throws {
    let path = Fixture.root.appendingPathComponent("Tests/engines/" + script).path
    let result = try Tool.run("/usr/bin/python3", [path], environment: ["ENCODER_WORKER": EncoderWorker.path])
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }

  private static func has(_ programs: String...) -> Bool {
    programs.allSatisfy { name in
      ["/usr/bin/", "/usr/sbin/", "/usr/local/bin/"].contains { access($0 + name, X_OK) == 0 }
    }
  }
}
