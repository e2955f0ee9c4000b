import Testing

@testable import Encoding
@testable import FrameBatches

/// Advice on options for pictures that come seldom.
@Suite struct TimelineAdviceTests {
  private let start: Int64 = 1_767_859_200_000

  /// Returns the advice on pictures at these instants, in seconds from the start.
  private func advice(
    _ seconds: [Int64], endS: Int64, _ capture: Batch.Capture = .interval, states: Bool = false,
    _ options: EncodingOptions = EncodingOptions(), bytes: TimelineAdvice.Bytes? = nil
  ) throws -> String? {
    let instants = seconds.map { start + 1_000 * $0 }
    let batch = Batch(
      name: "b", session: try #require(SessionID("s")), intervalMs: Batch.nominalInterval(of: instants),
      endMs: start + 1_000 * endS, capture: capture, isFinal: false, frames: [], refused: [], warnings: [],
      metadata: .null, statesCapture: states)
    var timeline = Timeline(of: batch, options)
    var holds: [FrameHold] = []
    for instant in instants {
      holds += timeline.append(Capture(source: "\(instant)", timeMs: instant, width: 4, height: 4))
    }
    holds += timeline.finish(endMs: batch.endMs)
    return TimelineAdvice.text(for: holds, of: batch, options, bytes: bytes)
  }

  private let day = (0..<1_440).map { Int64($0) * 60 }

  @Test func pictureAMinuteIsAdvisedToStayAndToMakeLongSegments() throws {
    let text = try #require(try advice(day, endS: 86_400, bytes: TimelineAdvice.Bytes(all: 2_000_000, new: 2_000_000)))
    #expect(
      text.hasPrefix(
        "79200 s of 86400 s are gaps, because a picture stays on screen for at most 5000 ms; "
          + "--capture onChange --segment 600 makes 144 segments of it, not 1440; "
          + "or --max-hold 60000 --segment 600 makes 144 segments"), "\(text)")
  }

  /// The option does not change what a batch states.
  @Test func captureIsNotAdvisedForABatchThatStatesIt() throws {
    let text = try #require(try advice(day, endS: 86_400, states: true))
    #expect(!text.contains("--capture") && text.contains("; --max-hold 60000 --segment 600 makes 144 "), "\(text)")
  }

  @Test func pictureThatStaysIsAdvisedToMakeLongSegments() throws {
    let text = try #require(try advice([0, 30, 60, 90], endS: 300, .onChange))
    #expect(text == "44 of 48 segments only continue a picture; --segment 300 makes 1 segment of it, not 48")
  }

  /// Only encoding tells the size of other segments: a picture may take more bytes after another one than as a key frame.
  @Test func sizesAreThoseOfWrittenSegmentsOnly() throws {
    let bytes = TimelineAdvice.Bytes(all: 6_400, new: 900)
    let text = try #require(try advice([0, 30, 60, 90], endS: 300, .onChange, bytes: bytes))
    #expect(
      text == "44 of 48 segments only continue a picture, in 5500 of 6400 bytes; "
        + "--segment 300 makes 1 segment of it, not 48")
  }

  /// The advice was followed.
  @Test func advisedOptionsNeedNoAdvice() throws {
    var options = EncodingOptions()
    options.segmentMs = 600_000
    #expect(try advice(day, endS: 86_400, .onChange, options) == nil)
    options.maxHoldMs = 60_000
    #expect(try advice(day, endS: 86_400, .interval, options) == nil)
  }

  /// Pictures that have a segment each in any case.
  @Test func numberOfSegmentsThatStaysIsNotSaid() throws {
    let seldom = (0..<5).map { Int64($0) * 600 }
    var options = EncodingOptions()
    options.segmentMs = 600_000
    let text = try #require(try advice(seldom, endS: 3_000, .interval, options))
    #expect(text.contains("; --capture onChange leaves no gaps; or --max-hold 600000 leaves no gaps"), "\(text)")
  }

  @Test func usualBatchesNeedNone() throws {
    #expect(try advice(Array(0..<60), endS: 60) == nil)
    // A recorder that was down for a minute.
    #expect(try advice([0, 1, 2, 3, 63, 64], endS: 65) == nil)
    #expect(try advice([0, 600], endS: 601) == nil)
    #expect(try advice([0, 1, 20, 21, 22], endS: 25, .onChange) == nil)
  }

  /// Ten thousand years of nothing must not fill memory.
  @Test func batchWithTooManySegmentsGetsNoSuchAdvice() throws {
    let seldom = (0..<400).map { Int64($0) * 86_400 }
    let text = try advice(seldom, endS: 400 * 86_400)
    #expect(text.map { !$0.contains("onChange makes") } ?? true, "\(text ?? "")")
  }
}
