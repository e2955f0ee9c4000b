import TestSupport
import Testing

/// Runs a sample of `make torture`, larger with TEST_EXTENT=full. Skips parts that this machine cannot run, with the
/// reason.
@Suite struct TortureTests {
  @Test(arguments: ["kills", "failures", "disk", "workers", "power", "deletions"])
  func eachBatchIsPublishedOnceWithTheExpectedBytes(part: String) throws {
    let script = Fixture.root.appendingPathComponent("Tests/torture/torture.py").path
    let result = try Tool.run(
      Tool.python, [script, "--short", part], environment: ["ENCODER_WORKER": EncoderWorker.path])
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    if result.text.contains("skipped") { print(result.text, terminator: "") }
  }
}
