import TestSupport
import Testing

/// Compares one chart, in every form that has colours of its own, with Little CMS's conversion. The frames are a second
/// apart, so each frame is one sample.
@Suite struct WideColourTests {
  @Test func everyFormOfAChartIsDecodedAsLittleCMSConvertsIt() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(WideColourChart.fixture, into: scratch)
    #expect(WideColourChart.count == 12 && session.manifests.map(\.frames.count).reduce(0, +) == WideColourChart.count)
    for manifest in session.manifests {
      let pictures = try Pixels.decode(
        session.video(manifest), width: WideColourChart.width, height: WideColourChart.height)
      for (frame, picture) in zip(manifest.frames, pictures) {
        #expect(try WideColourChart.differs(picture, frame.source) == nil)
      }
    }
  }

  /// The worker shows such a picture as sRGB and reports why its colours may be pale.
  @Test func unusableColourProfileIsReported() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(WideColourChart.fixture, into: scratch)
    let notes = session.manifests.flatMap(\.frames).compactMap { frame in frame.note.map { [frame.source, $0] } }
    #expect(
      notes == [["broken-profile.png", "shown as sRGB: its colour profile cannot be used (not an ICC profile)"]])
  }
}
