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

  /// 200 producers and 20 000 batches with TEST_EXTENT=full.
  @Test func batchesOfAStormOfProducersArePublishedOnce() throws {
    let script = Fixture.root.appendingPathComponent("Tests/torture/ingest.py").path
    let short = [
      "--producers", "8", "--batches", "80", "--kills", "4", "--client-kills", "8", "--full", "1", "--size", "256",
    ]
    let result = try Tool.run(
      Tool.python, [script] + Extent.of(short, full: []), environment: ["ENCODER_WORKER": EncoderWorker.path])
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }
}
