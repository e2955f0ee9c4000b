import TestSupport
import Testing

/// Tests the scripts behind pages in `Benchmarks`.
@Suite struct CapacityTests {
  /// The arithmetic of `docs/capacity.md`, and the simulation of `CAPACITY.md`.
  @Test func simulationPublishesEachBatchOnceAndThePageMatchesItsInputs() throws { try run("test_capacity") }

  /// The load and the checks of `SOAK.md`.
  @Test func soakFindsLossesAndGrowthAndItsLoadWaitsForNoWorker() throws { try run("test_soak") }

  /// The counts of instructions and the pages of `make bench`.
  @Test func benchCountsInstructionsAndOnlyAWholeRunWritesPages() throws { try run("test_meters") }

  private func run(_ tests: String) throws {
    let result = try Tool.run(
      Tool.python, ["-m", "unittest", tests], in: Fixture.root.appendingPathComponent("Tests/capacity"))
    #expect(result.status == 0, "\(result.errors)")
  }
}
