import FrameBatches
import Testing

@testable import Encoding
@testable import Films

/// The pictures of an animated film. `FilmPlanTests` has the parts of its session.
@Suite struct AnimationPlanTests {
  private let session = [
    PublishedSegment.made(1_000, 6_000, captured: [true, true, true, true, true]),
    PublishedSegment.made(6_000, 8_000, gapAfterMs: 3_000, captured: [true, true]),
    PublishedSegment.made(11_000, 12_000), PublishedSegment.made(12_000, 14_000, captured: [false, true]),
  ]

  /// Returns the pictures as text: film start, segment and frame.
  private func pictures(_ plan: StitchPlan) -> [String] {
    AnimationPlan(plan).parts.flatMap { part in
      part.pictures.map { "\($0.startMs) \(part.segment.startMs).\($0.frame)" }
    }
  }

  @Test func eachFrameIsAPictureAtItsCapture() {
    let plan = AnimationPlan(StitchPlan(session, gaps: .hold))
    #expect(plan.lengthMs == 13_000 && plan.count == 10)
    #expect(
      pictures(StitchPlan(session, gaps: .hold)) == [
        "0 1000.0", "1000 1000.1", "2000 1000.2", "3000 1000.3", "4000 1000.4", "5000 6000.0", "6000 6000.1",
        "10000 11000.0", "11000 12000.0", "12000 12000.1",
      ])
  }

  @Test func continuedPictureIsThatOnScreen() {
    var segments = session
    let continued = PublishedSegment.Frame(timeMs: 11_000, holdMs: 1_000, isCaptured: false)
    let next = PublishedSegment.Frame(timeMs: 13_000, holdMs: 1_000, isCaptured: true)
    segments[3] = segments[3].showing([continued, next])
    #expect(pictures(StitchPlan(segments, gaps: .hold)).suffix(2) == ["10000 11000.0", "12000 12000.1"])
    segments[3] = segments[3].showing([continued])
    #expect(AnimationPlan(StitchPlan(segments, gaps: .hold)).parts.count == 3)
    // A clip begins with it.
    #expect(pictures(StitchPlan(segments, gaps: .hold, range: 12_500..<13_000)) == ["0 12000.0"])
  }

  @Test func clipBeginsWithThePictureOnScreen() {
    #expect(
      pictures(StitchPlan(session, gaps: .hold, range: 3_500..<6_100)) == [
        "0 1000.2", "500 1000.3", "1500 1000.4", "2500 6000.0",
      ])
    // In the gap.
    #expect(pictures(StitchPlan(session, gaps: .hold, range: 9_000..<10_000)) == ["0 6000.1"])
    #expect(pictures(StitchPlan(session, gaps: .cut, range: 7_500..<11_500)) == ["0 6000.1", "500 11000.0"])
  }

  @Test func canvasHoldsAllPictures() {
    let sizes = [(300, 600), (600, 300), (90, 40)]
    let segments = sizes.enumerated().map { number, size in
      PublishedSegment.made(Int64(number) * 1_000, Int64(number + 1) * 1_000).sized(size.0, size.1)
    }
    func size(_ segments: [PublishedSegment]) -> PixelSize {
      AnimationPlan(StitchPlan(segments, gaps: .hold)).size(maxSide: 480)
    }
    #expect(size(segments) == PixelSize(width: 480, height: 480))
    #expect(size([segments[0]]) == PixelSize(width: 240, height: 480))
    #expect(size([segments[2]]) == PixelSize(width: 90, height: 40))
  }

  @Test(arguments: [("1", "0.9"), ("2", "1.8"), ("0.2", "0.18")])
  func showableSpeedIsTheFirstLowerOne(speed: String, lower: String) throws {
    let plan = AnimationPlan(StitchPlan(session, gaps: .hold, speed: try #require(FilmSpeed(speed))))
    for format in AnimationFormat.allCases { #expect(plan.showableSpeed(as: format) == FilmSpeed(lower)) }
  }

  /// Pictures each 10 ms.
  @Test func showableSpeedShowsAllPictures() throws {
    let fast = [PublishedSegment.made(0, 5_000, captured: Array(repeating: true, count: 500))]
    let plan = AnimationPlan(StitchPlan(fast, gaps: .hold))
    for format in AnimationFormat.allCases {
      let speed = try #require(plan.showableSpeed(as: format))
      let limit = 10 / (format == .gif ? 20.0 : 11)
      let value = try #require(Double(speed.description))
      #expect(value > 0.8 * limit && value < 1.05 * limit, "\(format): \(value)")
    }
    let tooFast = [PublishedSegment.made(0, 500, captured: Array(repeating: true, count: 500))]
    #expect(AnimationPlan(StitchPlan(tooFast, gaps: .hold)).showableSpeed(as: .gif) == nil)
  }

  /// A request needs little room on the disk: most pixels of a screen stay.
  @Test func requestHasABoundOfPixels() throws {
    func bytes(_ pictures: Int, maxSide: Int = 480) throws -> Int {
      let captured = Array(repeating: true, count: pictures)
      let segment = PublishedSegment.made(0, Int64(pictures) * 1_000, captured: captured).sized(960, 540)
      return try AnimationPlan(StitchPlan([segment], gaps: .hold)).requestedBytes(as: .gif, maxSide: maxSide)
    }
    func refusal(_ fault: AnimationRefusal.Fault) -> AnimationRefusal { AnimationRefusal(format: .gif, fault: fault) }
    #expect(try bytes(1) == 64 << 10)
    #expect(try bytes(7_200) == 7_200 * 480 * 270 / 16)
    #expect(try bytes(15_432) == 15_432 * 480 * 270 / 16)
    #expect(throws: refusal(.pixels(15_433 * 480 * 270))) { try bytes(15_433) }
    #expect(try bytes(20_000, maxSide: 240) == 20_000 * 240 * 135 / 16)
    #expect(throws: refusal(.pictures(20_001))) { try bytes(20_001, maxSide: 16) }
    let words = "\(refusal(.pixels(1)))"
    #expect(words.contains("a part with from and to") && words.contains("a lower max-side"), "\(words)")
  }

  /// Five hours of captures each second, five in a segment.
  @Test(arguments: AnimationFormat.allCases, ["101", "240", "1000", "7200", "100000"])
  func fastFilmHasWhatBrowsersShow(format: AnimationFormat, speed: String) throws {
    let segments = (0..<3_600).map { number in
      PublishedSegment.made(
        Int64(number) * 5_000, Int64(number + 1) * 5_000, captured: Array(repeating: true, count: 5))
    }
    let speed = try #require(FilmSpeed(speed))
    let form = FilmForm.animation(format, maxSide: 480)
    let plan = AnimationPlan(StitchPlan(segments, gaps: .hold, speed: speed, as: form))
    #expect(plan.lengthMs == 18_000_000)
    let starts = plan.parts.flatMap(\.pictures).map(\.startMs)
    #expect(starts.first == 0 && starts == starts.sorted() && starts.count > 5)
    #expect(starts.allSatisfy { $0 % 1_000 == 0 })
    var clock = AnimationClock<Void>(format)
    for start in starts { #expect(clock.append((), at: format.units(plan.ticks(start))) != nil) }
    #expect(clock.finish(at: format.units(plan.ticks(plan.lengthMs))) != nil)
  }

  @Test func pictureOfALeftOutSegmentIsShownFromItsCapture() throws {
    // The capture at 60 000 is continued by the segment of 75 000, the first one on the screen's grid.
    let continued = PublishedSegment.Frame(timeMs: 60_000, holdMs: 15_000, isCaptured: false)
    let segments = [
      PublishedSegment.made(0, 60_000), PublishedSegment.made(60_000, 75_000),
      PublishedSegment.made(75_000, 90_000).showing([continued]), PublishedSegment.made(90_000, 400_000),
    ]
    let speed = try #require(FilmSpeed("4000"))
    let plan = StitchPlan(segments, gaps: .hold, speed: speed, as: .animation(.gif, maxSide: 480))
    #expect(plan.parts.map(\.segment.startMs) == [0, 75_000, 90_000])
    #expect(pictures(plan) == ["0 0.0", "60000 75000.0", "90000 90000.0"])
  }
}

extension PublishedSegment {
  fileprivate func sized(_ width: Int, _ height: Int) -> PublishedSegment {
    PublishedSegment(
      batch: batch, batchDigest: batchDigest, part: part, parts: parts, startMs: startMs, endMs: endMs, width: width,
      height: height, codedWidth: width, codedHeight: height, bytes: bytes, sha256: sha256, samples: samples,
      frames: frames, intervalMs: intervalMs, gapAfterMs: gapAfterMs, isFinal: isFinal, encoder: encoder)
  }
}
