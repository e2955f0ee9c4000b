import Foundation
import TestSupport
import Testing

@Suite struct WideColourBrowserTests {
  @Test func wideColourChartsLookInABrowserAsLittleCMSConvertsThem() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(WideColourChart.fixture, into: scratch)
    let frames = session.manifests.flatMap { manifest in
      zip(manifest.frames, manifest.offsetsMs).map { (frame: $0, video: session.video(manifest), offsetMs: $1) }
    }
    #expect(frames.count == WideColourChart.count)
    let stills = frames.map {
      Browser.SourceFrame(
        of: String($0.video.dropFirst(scratch.path.count + 1)), at: Double($0.offsetMs + 500) / 1_000,
        shownFrom: Double($0.offsetMs) / 1_000 - 0.0005)
    }
    let seen = try Browser(serving: scratch.path).screenshots(
      of: stills, width: WideColourChart.width, height: WideColourChart.height)
    for (seen, frame) in zip(seen, frames) { #expect(try WideColourChart.differs(seen, frame.frame.source) == nil) }
  }
}
