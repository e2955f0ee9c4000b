import Foundation
import TestSupport
import Testing

/// Tests the examples for batch engines, on the engines that this machine has.
@Suite struct EngineTests {
  @Test(.enabled(if: Self.has("slurmctld", "slurmd", "munged", "sbatch"), "slurm-wlm and munge are not installed"))
  func slurmArrayWithKilledTasksWritesTheOutputOfOneRun() async throws { try await run("slurm.py") }

  @Test(.enabled(if: Self.has("parallel"), "parallel is not installed"))
  func shardsUnderParallelWriteTheOutputOfOneRun() async throws { try await run("parallel.py") }

  @Test func everyCallInTheExamplesIsAcceptedByTheProgram() async throws { try await run("calls.py") }

  private func run(_ script: String) async throws {
    let result = try await runWaiting("engines/" + script)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }

  private static func has(_ programs: String...) -> Bool {
    programs.allSatisfy { name in
      ["/usr/bin/", "/usr/sbin/", "/usr/local/bin/"].contains { access($0 + name, X_OK) == 0 }
    }
  }
}
