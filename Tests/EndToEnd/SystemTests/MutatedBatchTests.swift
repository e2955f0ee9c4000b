import Foundation
import TestSupport
import Testing

/// Drains batches with damaged bytes, files and archives. `make mutate` drains more of them.
@Suite struct MutatedBatchTests {
  @Test func mutatedBatchesAreOnlyPublishedOrQuarantined() throws {
    let script = Fixture.root.appendingPathComponent("Tests/torture/mutate.py").path
    let count = Extent.of(60, full: 200)
    let result = try Tool.run(Tool.python, [script, EncoderWorker.path, "--count", "\(count)", "--seed", "1"])
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }
}
