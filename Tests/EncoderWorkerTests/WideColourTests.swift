import TestSupport
import Testing

/// One chart in every form that has colours of its own, against Little CMS's conversion of it. The frames are a second
/// apart, so that each is one sample.
@Suite struct WideColourTests {
  static let fixture = Fixture("wide-colour")
  static let truth = Fixture("wide-colour-truth")
  static let (width, height, patch) = (96, 64, 16)

  /// The truth has a file for each frame.
  static let count = (try? names(in: truth.path).count) ?? 0

  static func expectSame(_ seen: Pixels, _ source: String) throws {
    let truth = try Pixels.decode(truth.path + "/\(source).png", width: width, height: height)[0]
    // Of each patch the middle, where its neighbours' colours do not reach.
    let differences = (0..<height).flatMap { y in (0..<width).map { (x: $0, y: y) } }
      .filter { (4..<12).contains($0.x % patch) && (4..<12).contains($0.y % patch) }
      .map { ciede2000(Lab(seen[$0.x, $0.y]), Lab(truth[$0.x, $0.y])) }
    let mean = differences.reduce(0, +) / Double(differences.count)
    let most = differences.max() ?? .infinity
    #expect(mean <= 2 && most <= 4, "\(source): mean \(mean), at most \(most)")
  }

  @Test func everyFormOfAChartIsDecodedAsLittleCMSConvertsIt() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(Self.fixture, into: scratch)
    #expect(Self.count == 12 && session.manifests.map(\.frames.count).reduce(0, +) == Self.count)
    for manifest in session.manifests {
      let pictures = try Pixels.decode(session.video(manifest), width: Self.width, height: Self.height)
      for (frame, picture) in zip(manifest.frames, pictures) { try Self.expectSame(picture, frame.source) }
    }
  }

  /// It is shown all the same, and nobody has to wonder why it looks pale.
  @Test func aProfileThatCannotBeUsedIsReported() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(Self.fixture, into: scratch)
    let notes = session.manifests.flatMap(\.frames).compactMap { frame in frame.note.map { [frame.source, $0] } }
    #expect(
      notes == [["broken-profile.png", "shown as sRGB: its colour profile cannot be used (not an ICC profile)"]])
  }
}

@Suite(.serialized) struct WideColourBrowserTests {
  @Test func everyFormOfAChartIsSeenInABrowserAsLittleCMSConvertsIt() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(WideColourTests.fixture, into: scratch)
    for manifest in session.manifests {
      for (frame, offset) in zip(manifest.frames, manifest.offsetsMs) {
        let seen = try Browser.screenshot(
          of: session.video(manifest), at: Double(offset + 500) / 1_000, shownFrom: Double(offset) / 1_000 - 0.0005,
          width: WideColourTests.width, height: WideColourTests.height)
        try WideColourTests.expectSame(seen, frame.source)
      }
    }
  }
}
