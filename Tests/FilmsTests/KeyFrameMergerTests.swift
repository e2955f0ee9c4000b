import CFFmpeg
import TestSupport
import Testing

@testable import Encoding
@testable import Films
@testable import FrameBatches
@testable import ISOMedia
@testable import Sessions

/// The key frames that a film leaves out. `KeyFrameFilmTests` has its pictures.
@Suite struct KeyFrameMergerTests {
  /// A picture of one brightness.
  private static func picture(_ brightness: UInt8, _ size: PixelSize) throws -> Picture {
    let buffer = try FrameBuffer(width: size.width, height: size.height, format: AV_PIX_FMT_YUV420P)
    for plane in 0..<3 {
      let (start, stride) = buffer.plane(plane)
      let shift = plane == 0 ? 0 : 1
      for row in 0..<(size.height + shift) >> shift {
        for column in 0..<(size.width + shift) >> shift {
          start[row * stride + column] = plane == 0 ? brightness : 128
        }
      }
    }
    return try Picture(adopting: buffer)
  }

  /// The coded pictures of a segment: a key frame of one brightness, and a picture that follows it.
  private struct Coded {
    let sets: ParameterSets
    let key: [UInt8]
    let change: [UInt8]
    let size: PixelSize

    init(_ brightness: UInt8 = 60, size: PixelSize = PixelSize(width: 64, height: 32)) throws {
      let encoder = try VideoEncoder(width: size.width, height: size.height, settings: EncoderSettings(.balanced))
      let coded =
        try encoder.encode(picture(brightness, size), pts: 0) + encoder.encode(picture(200, size), pts: 90_000)
        + encoder.finish()
      try #require(coded.count == 2)
      (sets, key, change, self.size) = (encoder.parameterSets, coded[0].data, coded[1].data, size)
    }
  }

  /// A picture of a part: a key frame, its repeat, another picture, or one of another encoder that no later picture refers to.
  private enum Shown { case key, again, change, other }

  private static func samples(_ shown: [Shown], _ coded: Coded, everyMs: Int64 = 1_000) throws -> SegmentSamples {
    let writer = try SkipSliceWriter(after: coded.sets)
    let video = try shown.enumerated().map { index, shown in
      var data = shown == .key ? coded.key : shown == .again ? writer.picture(1) : coded.change
      if shown == .other { data[4] &= 0x9F } else if index > 0 { try writer.renumber(&data, index) }
      return Sample(duration: 90 * everyMs, data: data)
    }
    return SegmentSamples(parameterSets: coded.sets, colour: nil, video: video, timing: [])
  }

  private static func segment(_ coded: Coded) -> PublishedSegment {
    PublishedSegment(
      batch: "a", batchDigest: "a", part: 1, parts: 1, startMs: 0, endMs: 5_000, width: coded.size.width,
      height: coded.size.height, codedWidth: coded.size.width, codedHeight: coded.size.height, bytes: 1, sha256: "",
      samples: 1, frames: [], intervalMs: 1_000, gapAfterMs: 0, isFinal: false,
      encoder: .null)
  }

  /// Passes parts through a merger, one behind the other.
  ///
  /// - Returns: for each part whether its key frame is kept, since when its picture is on screen in seconds, and its samples.
  private func merged(
    _ parts: [(shown: [Shown], coded: Coded)], seconds: Int64 = 120
  ) throws -> [(isKept: Bool, since: Int64?, samples: SegmentSamples)] {
    var merger = KeyFrameMerger(try #require(KeyFrameRule(seconds: seconds)))
    var now: Int64 = 0
    return try parts.map { part in
      var samples = try Self.samples(part.shown, part.coded)
      let description = samples.description(of: Self.segment(part.coded))
      let end = now + 90_000 * Int64(part.shown.count)
      defer { now = end }
      let since = merger.merge(&samples, as: description, in: now..<end)
      return (!samples.isContinued, since.map { $0 / 90_000 }, samples)
    }
  }

  @Test func keyFrameOfThePictureOnScreenBecomesARepeat() throws {
    let coded = try Coded()
    let parts = try merged([([.key, .again], coded), ([.key, .again, .change], coded)])
    #expect(parts.map(\.isKept) == [true, false] && parts.map(\.since) == [0, nil])
    // The pictures follow those before, and are the same but for their numbers.
    let writer = try SkipSliceWriter(after: coded.sets)
    var continued = parts[1].samples
    try continued.number(after: 2, writer)
    var change = coded.change
    try writer.renumber(&change, 4)
    #expect(continued.video.map(\.data) == [writer.picture(2), writer.picture(3), change])
    #expect(continued.video.map(\.duration) == [90_000, 90_000, 90_000])
    // Numbers have four bits at least, and start again.
    try continued.number(after: 1_000, writer)
    #expect(continued.video[0].data == writer.picture(1_000))
  }

  @Test func keyFrameBehindAnotherPictureIsKept() throws {
    let (one, other) = (try Coded(60), try Coded(90))
    try #require(one.sets == other.sets && one.key != other.key)
    // Another key frame.
    #expect(try merged([([.key], one), ([.key], other), ([.key], one)]).map(\.isKept) == [true, true, true])
    // The same key frame behind a change.
    #expect(
      try merged([([.key, .change], one), ([.key], one), ([.key], one)]).map(\.isKept) == [true, true, false])
    // A change in a part that continues.
    #expect(
      try merged([([.key], one), ([.key, .change, .again], one), ([.key], one)]).map(\.isKept) == [true, false, true])
    // A picture that changes and comes back is coded otherwise.
    #expect(try merged([([.key, .change, .change], one), ([.key], one)]).map(\.isKept) == [true, true])
  }

  @Test func videoOfAnotherKindIsKept() throws {
    let one = try Coded()
    // The same bytes of a picture stand for another picture at another size.
    let wide = try Coded(size: PixelSize(width: 80, height: 32))
    var disguised = try Self.samples([.key], wide)
    disguised.set(video: [Sample(duration: 90_000, data: one.key)], timing: [])
    var merger = KeyFrameMerger(.standard)
    var first = try Self.samples([.key], one)
    let description = first.description(of: Self.segment(one))
    _ = merger.merge(&first, as: description, in: 0..<90_000)
    let other = disguised.description(of: Self.segment(wide))
    let since = merger.merge(&disguised, as: other, in: 90_000..<180_000)
    #expect(since == 90_000 && !disguised.isContinued)
    // A picture without reference does not count.
    #expect(try merged([([.key], one), ([.key, .other], one), ([.key], one)]).map(\.isKept) == [true, true, true])
    // Parameter sets of another kind.
    var foreign = first
    foreign.parameterSets = ParameterSets(sequence: [0x67, 66, 0, 30], picture: one.sets.picture)
    let foreignSince = merger.merge(&foreign, as: description, in: 180_000..<270_000)
    #expect(foreignSince == nil && !foreign.isContinued)
    _ = merger.merge(&first, as: description, in: 270_000..<360_000)
    #expect(!first.isContinued)
  }

  /// Parts of five seconds in which nothing changes.
  @Test(
    arguments: [(0, 1), (1, 1), (9, 1), (10, 2), (14, 2), (120, 24), (124, 24), (125, 25), (600, 120)]
      as [(Int64, Int)])
  func keyFrameIsKeptInTime(seconds: Int64, each: Int) throws {
    let coded = try Coded()
    let parts = try merged(
      Array(repeating: ([.key, .again, .again, .again, .again], coded), count: 130), seconds: seconds)
    #expect(parts.indices.filter { parts[$0].isKept } == (0..<130).filter { $0 % each == 0 })
    // The picture stays all the same.
    #expect(parts.allSatisfy { $0.since == 0 })
  }

  @Test func ruleHasLimits() {
    #expect([-1, 601, .max, .min].allSatisfy { KeyFrameRule(seconds: $0) == nil })
    #expect(KeyFrameRule(seconds: 600)?.seconds == 600 && KeyFrameRule.standard == KeyFrameRule(seconds: 120))
  }

  // MARK: - Repeats

  /// Passes parts of five seconds through, and returns which of them have repeats, in their order, and the most that waited.
  private func repeated(_ since: [Int64?], everyMs: Int64 = 5_000) throws -> (needs: [Bool], most: Int) {
    let samples = try Self.samples([.key], Coded())
    let description = samples.description(of: Self.segment(try Coded()))
    var held = HeldParts()
    var (written, most): ([FilmPart], Int) = ([], 0)
    for (index, since) in since.enumerated() {
      let range = 90 * everyMs * Int64(index)..<90 * everyMs * Int64(index + 1)
      written += held.add(
        FilmPart(samples: samples, description: description, range: range), since: since.map { 90 * $0 })
      most = max(most, index + 1 - written.count)
    }
    written += held.flush()
    #expect(held.flush().isEmpty)
    #expect(written.map(\.range.lowerBound) == since.indices.map { 90 * everyMs * Int64($0) })
    return (written.map(\.needsRepeats), most)
  }

  @Test func onlyBothEndsOfAStillAreRepeated() throws {
    // Six seconds before the end are in two parts.
    let still = try repeated(Array(repeating: 0, count: 10))
    #expect(still.needs == [true] + Array(repeating: false, count: 7) + [true, true] && still.most == 2)
    #expect(try repeated([0, 0, 0]).needs == [true, true, true])
    #expect(try repeated([0, 0, 0, 0]).needs == [true, false, true, true])
    // A part that changes ends the still.
    #expect(try repeated([0, 0, 0, 0, nil, nil]).needs == [true, false, true, true, true, true])
    // So does another picture.
    #expect(
      try repeated([0, 0, 0, 0, 20_000, 20_000, 20_000, 20_000]).needs == [
        true, false, true, true, true, false, true, true,
      ])
    // Short parts: four seconds at the beginning, six at the end.
    let short = try repeated(Array(repeating: 0, count: 200), everyMs: 100)
    #expect(short.needs == (0..<200).map { $0 < 40 || $0 >= 140 } && short.most == 60)
    // Parts of a fast film.
    let fast = try repeated(Array(repeating: 0, count: 1_000), everyMs: 20)
    #expect(fast.needs.allSatisfy { $0 } && fast.most == HeldParts.most)
    // A part that is longer than all.
    #expect(try repeated([0, 0, 0], everyMs: 60_000).needs == [true, false, true])
  }
}
