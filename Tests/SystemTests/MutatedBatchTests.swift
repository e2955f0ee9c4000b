import Foundation
import TestSupport
import Testing

/// Whatever a batch has become on its way; `make mutate` goes on for longer.
@Suite struct MutatedBatchTests {
  @Test func mutatedBatchesArePublishedOrQuarantinedAndNothingElseHappens() throws {
    let script = Fixture.root.appendingPathComponent("Tests/torture/mutate.py").path
    let result = try Tool.run("python3", [script, EncoderWorker.path, "--count", "200", "--seed", "1"])
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }
}
