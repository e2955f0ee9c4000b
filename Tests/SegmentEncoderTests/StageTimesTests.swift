import Encoding
import FileSystem
import FrameBatches
import JSON
import TestSupport
import Testing
import WorkQueues

@testable import SegmentEncoder
@testable import Sessions

/// The times of the stages of a batch, and the batches that are slow.
@Suite struct StageTimesTests {
  @Test func eachStageOfAProfileBelongsToOneStageOfTheWork() {
    for stage in Profile.Stage.allCases {
      let profile = Profile()
      profile.add(stage, Profile.Span(cpuNs: 0, wallNs: 7_000_000))
      var times = StageTimes()
      times.add(profile)
      #expect(times.all.filter { $0.ns == 7_000_000 }.count == 1 && times.longest?.ms == 7, "\(stage)")
    }
  }

  @Test func factsNameTheWholeAndTheStagesOfAMillisecond() {
    var times = StageTimes()
    #expect(times.json == nil && times.facts.isEmpty && times.longest == nil)
    times.add(.fetch, ns: 999_999)
    times.add(.encode, ns: 4_000_000)
    times.add(.encode, ns: 2_500_000)
    times.add(.views, ns: -5)
    times.tookMs = 12
    #expect(times.facts.mapValues { "\($0)" } == ["tookMs": "12", "encodeMs": "6"])
    #expect(times.json == .object(["took": .number(12), "encode": .number(6)]))
    #expect(times.longest?.stage == .encode && times.all.map(\.stage) == [.fetch, .encode, .views])
  }

  /// Twenty batches have to be known; a slow one took ten times their median, and five seconds.
  @Test(arguments: [
    (19, 100, 60_000, false), (20, 100, 60_000, true), (20, 100, 4_999, false),
    (20, 499, 5_000, true), (20, 501, 5_000, false), (250, 10_000, 100_000, true), (250, 10_000, 99_999, false),
    (20, 0, 5_000, true), (20, 0, Int.max, true),
  ])
  func slowBatchTookTenTimesTheMedian(before: Int, ofMs: Int, tookMs: Int, isSlow: Bool) {
    var recent = RecentDurations()
    for _ in 0..<before { #expect(recent.add(ofMs) == nil) }
    #expect(recent.add(tookMs) == (isSlow ? ofMs : nil))
  }

  /// Old batches are forgotten: the new pace is the usual one.
  @Test func medianFollowsTheLastHundred() {
    var recent = RecentDurations()
    for _ in 0..<100 { _ = recent.add(10) }
    for _ in 0..<51 { _ = recent.add(4_000) }
    #expect(recent.add(39_999) == nil && recent.add(40_000) == 4_000)
  }

  @Test func durationsFallIntoTheBucketThatBoundsThem() {
    var durations = DurationHistogram([1, 5])
    for seconds in [0, 1, 1.001, 5, 6] { durations.add(seconds: seconds) }
    #expect(durations.counts == [2, 2, 1] && durations.sumS == 13.001)
  }

  private func receipt(_ startMs: Int64, duplicate: Bool = false) throws -> Receipt {
    let session = try #require(SessionID("s"))
    let batch = Batch(
      name: "a", session: session, intervalMs: 1_000, endMs: startMs + 5_000, capture: .interval, isFinal: false,
      frames: [], refused: [], warnings: [], metadata: .object([:]), traceParent: nil)
    return Receipt([.made(startMs, startMs + 5_000)], of: batch, refused: [], duplicate: duplicate, warnings: [])
  }

  /// A duplicate is no news; a capture of an archive is no lateness; a clock may go back.
  @Test(
    arguments: [
      (1_000_000, false, 1_009_000, 1, 1, 10),
      (1_000_000, true, 1_009_000, 0, 0, 0), (1_000_000, false, nil, 0, 1, 10), (1_020_000, false, 1_020_000, 1, 1, 0),
      (1_010_000 - 86_400_000, false, 1_009_000, 1, 0, 0),
    ] as [(Int64, Bool, Int64?, Int, Int, Double)])
  func latenessCountsNewsOnly(
    captureMs: Int64, duplicate: Bool, arrivedMs: Int64?, arrivals: Int, captures: Int, sumS: Double
  ) throws {
    let meter = WorkerMeter(continuing: WorkerCounters(), nil)
    try meter.add(
      [receipt(captureMs, duplicate: duplicate)], tookMs: 5, StageTimes(), arrivedMs: arrivedMs, publishedMs: 1_010_000)
    let now = meter.now
    #expect(now.arrivals.counts.reduce(0, +) == arrivals && now.lateness.counts.reduce(0, +) == captures)
    #expect(now.lateness.sumS == sumS && now.durations.counts.reduce(0, +) == 1)
  }
}
