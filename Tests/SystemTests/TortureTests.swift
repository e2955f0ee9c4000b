import TestSupport
import Testing

/// A sample of what `make torture` does in full; what cannot be done on this machine is skipped, with a word.
@Suite struct TortureTests {
  @Test(arguments: ["kills", "failures", "disk", "workers", "power"])
  func nothingIsLostOrDoubledOrOtherwise(part: String) throws {
    let script = Fixture.root.appendingPathComponent("Tests/torture/torture.py").path
    let result = try Tool.run(
      "python3", [script, "--short", part], environment: ["ENCODER_WORKER": EncoderWorker.path])
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }
}
