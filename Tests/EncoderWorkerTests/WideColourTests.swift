import TestSupport
import Testing

/// One chart in every form that has colours of its own, against Little CMS's conversion of it. The frames are a second
/// apart, so that each is one sample.
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

  /// It is shown all the same, and nobody has to wonder why it looks pale.
  @Test func aProfileThatCannotBeUsedIsReported() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(WideColourChart.fixture, into: scratch)
    let notes = session.manifests.flatMap(\.frames).compactMap { frame in frame.note.map { [frame.source, $0] } }
    #expect(
      notes == [["broken-profile.png", "shown as sRGB: its colour profile cannot be used (not an ICC profile)"]])
  }
}
