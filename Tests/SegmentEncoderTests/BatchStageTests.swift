import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import SegmentEncoder
@testable import Sessions

/// The progress of a batch, which commands show as progress bars.
@Suite struct BatchStageTests {
  @Test func fractionGrowsWithEachFrameAndIsZeroBetweenBatches() throws {
    let scratch = try ScratchDirectory()
    let encoder = BatchEncoder(output: try OutputDirectory(scratch.path("output")))
    let seen = Mutex<[Double]>([])
    #expect(encoder.stage.fraction == 0)
    _ = try encoder.publish(
      Fixture("exact-1fps").path, session: "bar",
      isCancelled: { [stage = encoder.stage] in
        seen.withLock { $0.append(stage.fraction) }
        return false
      })
    let fractions = seen.withLock { $0 }
    #expect(zip(fractions, fractions.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(Set(fractions).count > 10 && fractions.allSatisfy { (0...1).contains($0) })
    #expect(encoder.stage.fraction == 0)
  }
}
