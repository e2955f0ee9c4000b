import TestSupport
import Testing

/// Tests the arithmetic and the simulation behind `Benchmarks/CAPACITY.md`.
@Suite struct CapacityTests {
  @Test func simulationPublishesEachBatchOnceAndThePageMatchesItsInputs() throws {
    let tests = Fixture.root.appendingPathComponent("Tests/capacity")
    let result = try Tool.run("python3", ["-m", "unittest", "test_capacity"], in: tests)
    #expect(result.status == 0, "\(result.errors)")
  }
}
