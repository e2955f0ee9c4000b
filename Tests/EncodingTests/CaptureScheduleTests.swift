import FrameBatches
import JSON
import TestSupport
import Testing

@testable import Encoding

/// The captures that are missing or late in a batch.
@Suite struct CaptureScheduleTests {
  private func sum(_ schedule: CaptureSchedule?) throws -> HealthFigures {
    var sum = HealthFigures()
    for figures in try #require(schedule).figures { sum.add(figures) }
    return sum
  }

  /// The recordings, and their faults, are made by a program that does not know the schedule.
  @Test(arguments: 1...4)
  func healthFiguresEqualThoseOfGeneratedRecordings(seed: Int) throws {
    let made = try Tool.run(Tool.python, ["Tests/reference/make_recordings.py", "\(seed)", "500"])
    let lines = made.text.split(separator: "\n")
    #expect(made.status == 0 && lines.count == 500, "\(made.errors)")
    for (number, line) in lines.enumerated() {
      let truth = try JSONParser.parse(Array(line.utf8))
      func list(_ key: String) -> [Double] { truth.object?[key]?.array?.compactMap(\.double) ?? [] }
      let instants = truth.object?["instants"]?.array?.compactMap(\.integer) ?? []
      let sum = try sum(CaptureSchedule(instants))
      #expect(sum.missing == Int(truth.object?["missing"]?.integer ?? -1), "\(seed) \(number)")
      #expect(sum.extra == 0 && sum.late.count == list("lateMs").count, "\(seed) \(number)")
      #expect(sum.pauses.count == list("pausesMs").count, "\(seed) \(number)")
      let slack = truth.object?["slackMs"]?.double ?? 0
      for (figures, key) in [(sum.late, "lateMs"), (sum.pauses, "pausesMs")] {
        let wanted = list(key)
        for percent in [50, 95, 100] where !wanted.isEmpty {
          let exact = wanted[max(1, (wanted.count * percent + 99) / 100) - 1]
          let told = Double(figures.percentileMs(percent) ?? 0)
          // Rounded up to two digits: by a tenth at most.
          #expect(
            told >= exact - slack && told <= (exact + slack) * 1.1 + 1, "\(seed) \(number): \(told), not \(exact)")
        }
      }
    }
  }

  @Test(
    arguments: [
      // A capture is missing; one is late, and the grid stays; one is late, and the recorder sleeps on.
      ([0, 1_000, 3_000, 4_000, 5_000], 1, [], 0), ([0, 1_000, 2_700, 3_000, 4_000], 0, [700], 0),
      ([0, 1_000, 2_700, 3_700, 4_700], 0, [700], 0),
      // One passes another, and one is nearly an interval late.
      ([0, 1_000, 2_000, 4_000, 4_300, 5_000, 6_000, 7_000], 0, [1_300], 0),
      ([0, 1_000, 2_900, 3_000, 4_000], 0, [900], 0),
      // A capture between others.
      ([0, 1_000, 2_000, 2_400, 3_000, 4_000], 0, [], 1),
      // Four more would fit, and a pause.
      ([0, 1_000, 2_000, 7_000, 8_000, 9_000], 4, [], 0), ([0, 1_000, 2_000, 7_001, 8_001, 9_001], 0, [], 0),
    ] as [([Int64], Int, [Int64], Int)])
  func faultsAreCounted(instants: [Int64], missing: Int, late: [Int64], extra: Int) throws {
    let sum = try sum(CaptureSchedule(instants))
    #expect(sum.missing == missing && sum.extra == extra && sum.late.count == late.count)
    #expect(sum.late.longestMs == late.max())
    #expect(sum.pauses.longestMs == (instants.contains(7_001) ? 5_100 : nil))
  }

  @Test(
    arguments: [[], [5], [0, 1_000, 2_000], [0, 100, 3_000, 5_000, 9_000], [0, 300, 4_000, 9_000, 9_100, 20_000]]
      as [[Int64]])
  func irregularCapturesHaveNoInterval(instants: [Int64]) { #expect(CaptureSchedule(instants) == nil) }

  @Test func gapBetweenBatchesIsMissingCapturesOrAPause() {
    #expect(CaptureSchedule.figures(ofGap: 874, intervalMs: 1_000).isEmpty)
    #expect(CaptureSchedule.figures(ofGap: 2_900, intervalMs: 1_000).missing == 3)
    let pause = CaptureSchedule.figures(ofGap: 4_001, intervalMs: 1_000)
    #expect(pause.missing == 0 && pause.pauses.longestMs == 5_100)
  }

  /// Each segment has the figures of its own captures, and a recorder that captures on change has none.
  @Test func segmentsShareTheFiguresOfTheirBatch() throws {
    func batch(_ capture: Batch.Capture) throws -> Batch {
      Batch(
        name: "b", session: try #require(SessionID("s")), intervalMs: 1_000, endMs: 8_000, capture: capture,
        isFinal: false, frames: [], refused: [], warnings: [], metadata: .null)
    }
    func hold(_ timeMs: Int64, _ status: FrameHold.Status = .captured) -> FrameHold {
      FrameHold(
        capture: Capture(source: "a", timeMs: timeMs, width: 2, height: 2), status: status, startMs: timeMs, holdMs: 1,
        opensSegment: false, closingGapMs: nil)
    }
    let segments = [
      [hold(0), hold(1_000), hold(2_000), hold(3_700)],
      [hold(3_700, .continued), hold(4_000), hold(5_000), hold(7_000)],
    ]
    let shares = try SegmentHealth.shares(of: segments, in: batch(.interval))
    #expect(
      shares.map { $0?.json.line } == [
        #"{"intervalMs":1000,"lateMs":[[700,1]]}"#, #"{"intervalMs":1000,"missing":1}"#,
      ])
    #expect(try shares.compactMap { try SegmentHealth(#require($0).json) } == shares)
    #expect(
      SegmentHealth.joined(shares.compactMap { $0 })?.json.line
        == #"{"intervalMs":1000,"lateMs":[[700,1]],"missing":1}"#)
    #expect(try SegmentHealth.shares(of: segments, in: batch(.onChange)) == [nil, nil])
  }

  @Test(arguments: [
    "{}", "[]", #"{"intervalMs":0}"#, #"{"intervalMs":1,"missing":-1}"#, #"{"intervalMs":1,"lateMs":[[0,1]]}"#,
    #"{"intervalMs":1,"lateMs":[[1,1],[1,1]]}"#, #"{"intervalMs":1,"pausesMs":[[9223372036854775807,1]]}"#,
    #"{"intervalMs":1,"lateMs":[1]}"#, #"{"intervalMs":1,"lateMs":[[1,9223372036854775807]]}"#,
  ])
  func otherMembersAreFaults(json: String) throws {
    let json = try JSONParser.parse(Array(json.utf8))
    #expect(throws: JSONError.self) { try SegmentHealth(json) }
  }

  @Test func summaryTellsFiguresAndASentence() throws {
    var figures = HealthFigures()
    (figures.missing, figures.extra) = (3, 1)
    for ms: Int64 in [310, 400, 395, 401, 390, 380] { figures.late.add(ms, .up) }
    var totals = RecordingTotals()
    totals.add(SegmentHealth(intervalMs: 1_003, figures), captured: 59, LabelCounts())
    totals.add(SegmentHealth(intervalMs: 512, HealthFigures()), captured: 1, LabelCounts())
    totals.add(nil, captured: 9, LabelCounts())
    let summary = try #require(HealthSummary(totals, frames: 69, recordedMs: 69_000, durationMs: 92_000))
    #expect(summary.sentence == "60 captures, 3 missing, 6 late by 390 ms")
    #expect(
      summary.json.line
        == #"{"captures":60,"capturesPerHour":3600,"clockSteps":0,"expected":62,"intervalMs":1000,"late":6,"lateMaxMs":410,"lateP50Ms":390,"lateP95Ms":410,"missing":3,"recordedPermille":750}"#
    )
    let read = try RecordingTotals(counts: totals.counts, labels: totals.labels.json)
    #expect(read == totals)
    #expect(HealthSummary(RecordingTotals(), frames: 9, recordedMs: 9, durationMs: 9) == nil)
    totals.remove(SegmentHealth(intervalMs: 1_003, figures), captured: 59, LabelCounts())
    #expect(HealthSummary(totals, frames: 1, recordedMs: 1, durationMs: 1)?.sentence == nil)
    #expect(HealthSummary(totals, frames: .max, recordedMs: 1, durationMs: 1) != nil)
  }
}

/// The numbers of labels.
@Suite struct LabelCountsTests {
  @Test func kindsBeyondTheKnownAreCountedTogether() throws {
    let labels = try [("step", nil), ("error", "error"), ("error", nil), ("mine", "warning"), ("yours", nil)].map {
      try #require(Label(timeMs: 1, kind: $0, text: "a", level: $1.flatMap { Label.Level(rawValue: $0) }))
    }
    let counts = LabelCounts(labels)
    #expect(counts.json.line == #"{"kinds":{"error":2,"other":2,"step":1},"levels":{"error":1,"warning":1}}"#)
    #expect(try LabelCounts(counts.json) == counts && counts.errors == 2)
    let manifest = JSONValue.object([SegmentLabels.key: .array(labels.map(\.json))])
    #expect(LabelCounts(ofManifest: manifest) == counts)
    var left = counts
    left.remove(LabelCounts(Array(labels[1...])))
    #expect(left == LabelCounts([labels[0]]))
    #expect(throws: JSONError.self) { try LabelCounts(.object(["kinds": .object(["mine": .number(1)])])) }
  }
}
