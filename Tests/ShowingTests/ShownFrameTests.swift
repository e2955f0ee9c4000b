import FrameBatches
import Testing

@testable import Encoding
@testable import Films
@testable import Showing

/// The frame on screen at an instant.
@Suite struct ShownFrameTests {
  /// A gap, a seam that cuts a picture short, a seam that holds one, and a gap at the end.
  private static let segments = [
    PublishedSegment.made(1_000, 6_000, captured: [true, true, true, true, true]),
    PublishedSegment.made(6_000, 8_000, gapAfterMs: 3_000, captured: [false, true]),
    PublishedSegment.made(11_000, 12_000),
    PublishedSegment.made(11_700, 14_000, batch: "b", captured: [true, true]),
    PublishedSegment.made(14_400, 15_000, batch: "c", gapAfterMs: 250),
  ]

  private struct Damaged: Error, Equatable { let index: Int }

  /// Returns the start of the segment and the index of the frame, or the reason why there is none; and the manifests that
  /// were read.
  private func shown(
    _ atMs: Int64, in segments: [PublishedSegment] = Self.segments, damaged: Set<Int> = []
  ) throws -> (text: String, read: Set<Int>) {
    var read: Set<Int> = []
    do {
      let session = try #require(SessionID("s"))
      let shown = try ShownFrame(at: atMs, in: session, startsMs: segments.map(\.startMs)) { index in
        read.insert(index)
        if damaged.contains(index) { throw Damaged(index: index) }
        return segments[index]
      }
      let (from, until) = (shown.shownMs.lowerBound, shown.shownMs.upperBound)
      #expect(shown.shownMs.contains(atMs))
      return ("\(shown.segment.startMs)[\(shown.index)] \(from)-\(until)", read)
    } catch let nothing as NothingOnScreen {
      let kind = nothing.isGap ? "gap" : "outside"
      return ("\(kind) \(nothing.bounds.lowerBound)-\(nothing.bounds.upperBound)", read)
    }
  }

  @Test(
    arguments: [
      (0, "outside 1000-15250"), (999, "outside 1000-15250"), (1_000, "1000[0] 1000-2000"),
      (1_999, "1000[0] 1000-2000"),
      (2_000, "1000[1] 2000-3000"), (5_999, "1000[4] 5000-6000"), (6_000, "6000[0] 6000-7000"),
      (7_999, "6000[1] 7000-8000"), (8_000, "gap 8000-11000"), (10_999, "gap 8000-11000"),
      (11_000, "11000[0] 11000-11700"), (11_699, "11000[0] 11000-11700"), (11_700, "11700[0] 11700-12850"),
      (12_850, "11700[1] 12850-14400"), (14_399, "11700[1] 12850-14400"), (14_400, "14400[0] 14400-15000"),
      (14_999, "14400[0] 14400-15000"), (15_000, "gap 15000-15250"), (15_249, "gap 15000-15250"),
      (15_250, "outside 1000-15250"), (.max, "outside 1000-15250"), (.min, "outside 1000-15250"),
    ] as [(Int64, String)])
  func frameIsFoundToTheMillisecond(atMs: Int64, expected: String) throws {
    let found = try shown(atMs)
    #expect(found.text == expected)
    #expect(found.read.count <= 3)
  }

  /// Each millisecond of the stitched film shows the same.
  @Test func framesAgreeWithTheStitchedFilm() throws {
    let plan = StitchPlan(Self.segments, gaps: .hold)
    for part in plan.parts {
      let startMs = Self.segments[0].startMs + part.startMs
      for atMs in startMs..<startMs + part.lengthMs {
        let text = try shown(atMs).text
        let isGap = atMs >= startMs + part.lengthMs - part.gapMs
        #expect(text.hasPrefix(isGap ? "gap" : "\(part.segment.startMs)["), "\(atMs): \(text)")
      }
    }
  }

  @Test func frameWithoutAHoldIsNeverShown() throws {
    var segment = PublishedSegment.made(0, 2_000, captured: [true, true])
    segment = segment.with(holds: [0, 500, 0, 1_500])
    #expect(try shown(0, in: [segment]).text == "0[1] 0-500")
    #expect(try shown(500, in: [segment]).text == "0[3] 500-2000")
    // The holds end before the segment does.
    #expect(try shown(1_900, in: [segment.with(holds: [500, 500])]).text == "0[1] 500-2000")
  }

  @Test func damagedManifestHidesOnlyItsOwnTime() throws {
    #expect(throws: Damaged(index: 1)) { try shown(6_500, damaged: [1]) }
    #expect(try shown(5_999, damaged: [1]).text == "1000[4] 5000-6000")
    #expect(try shown(11_000, damaged: [1, 3]).text == "11000[0] 11000-11700")
    // The next segment decides whether this is a gap or a seam.
    #expect(throws: Damaged(index: 2)) { try shown(9_000, damaged: [2]) }
  }

  @Test func segmentsThatOverlapAreRefused() {
    let segments = [PublishedSegment.made(0, 5_000), PublishedSegment.made(2_000, 7_000, batch: "b")]
    for atMs: Int64 in [1_000, 3_000] {
      #expect(throws: BadSession.self) { try shown(atMs, in: segments) }
    }
  }
}

extension PublishedSegment {
  /// The same segment with frames of these holds.
  fileprivate func with(holds: [Int64]) -> PublishedSegment {
    PublishedSegment(
      batch: batch, batchDigest: batchDigest, part: part, parts: parts, startMs: startMs, endMs: endMs, width: width,
      height: height, codedWidth: codedWidth, codedHeight: codedHeight, bytes: bytes, sha256: sha256, samples: samples,
      frames: holds.map { Frame(timeMs: startMs, holdMs: $0, isCaptured: true) }, intervalMs: intervalMs,
      gapAfterMs: gapAfterMs, isFinal: isFinal, encoder: encoder)
  }
}
