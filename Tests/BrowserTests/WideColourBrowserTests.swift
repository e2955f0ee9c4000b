import TestSupport
import Testing

@Suite(.serialized) struct WideColourBrowserTests {
  @Test func everyFormOfAChartIsSeenInABrowserAsLittleCMSConvertsIt() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(WideColourChart.fixture, into: scratch)
    for manifest in session.manifests {
      for (frame, offset) in zip(manifest.frames, manifest.offsetsMs) {
        let seen = try Browser.screenshot(
          of: session.video(manifest), at: Double(offset + 500) / 1_000, shownFrom: Double(offset) / 1_000 - 0.0005,
          width: WideColourChart.width, height: WideColourChart.height)
        #expect(try WideColourChart.differs(seen, frame.source) == nil)
      }
    }
  }
}
