import Foundation
import TestSupport
import Testing

/// Runs the reading commands on malicious sessions and videos (`Tests/torture/forged.py`). FORGED_MEGABYTES sets their limit of
/// memory, which sanitizers exceed.
@Suite struct ForgedSessionTests {
  @Test(arguments: Extent.of([4], full: Array(1...8)))
  func readersOfForgedSessionsNeitherCrashNorHangNorExceedMemory(seed: Int) throws {
    let scratch = try ScratchDirectory()
    let script = Fixture.root.appendingPathComponent("Tests/torture/forged.py").path
    let (sessions, videos) = Extent.of((40, 60), full: (250, 625))
    let result = try Tool.run(
      Tool.python,
      [
        script, EncoderWorker.path, "--sessions", "\(sessions)", "--videos", "\(videos)", "--seed", "\(seed)",
        "--scratch",
        scratch.path,
      ] + (ProcessInfo.processInfo.environment["FORGED_MEGABYTES"].map { ["--megabytes", $0] } ?? []))
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }
}
