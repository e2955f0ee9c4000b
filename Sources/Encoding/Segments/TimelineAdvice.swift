// Says what other options would make of a batch that is mostly gaps, or whose segments mostly continue a picture. It tries each option on
// the captures of the batch before it advises it.

import FrameBatches

package struct TimelineAdvice {
  /// The bytes of segments that are encoded.
  package struct Bytes {
    package let all: Int
    /// Those of the segments with a new picture.
    package let new: Int

    package init(all: Int, new: Int) { (self.all, self.new) = (all, new) }
  }

  /// Fewest pictures and segments of which one can say what most of them do.
  private static let fewest = (frames: 3, segments: 10)
  /// The pictures that a segment of an advised length shows.
  private static let picturesASegment: Int64 = 10
  /// The share of the distances between pictures that an advised hold covers, in percent.
  private static let coveredPercent = 95

  private let batch: Batch
  private let options: EncodingOptions
  private let captures: [Capture]
  private let now: Plan

  /// Returns the advice as a sentence; nil if the options suit the batch.
  ///
  /// - Parameters:
  ///   - holds: all of the batch, in order.
  ///   - bytes: nil if nothing is encoded.
  package static func text(
    for holds: some Sequence<FrameHold>, of batch: Batch, _ options: EncodingOptions, bytes: Bytes? = nil
  ) -> String? {
    var now = Plan()
    var captures: [Capture] = []
    for hold in holds {
      now.add(hold)
      if hold.status == .captured { captures.append(hold.capture) }
    }
    guard captures.count >= fewest.frames && now.isMostlyGaps(of: captures.count) || now.continuesMostly else {
      return nil
    }
    return TimelineAdvice(batch: batch, options: options, captures: captures, now: now).text(bytes)
  }

  /// It says no size for the advised options: only encoding tells it. A picture may take more bytes after another one than as a key
  /// frame, and a picture that stays over several long segments is a key frame in each.
  private func text(_ bytes: Bytes?) -> String? {
    let isMostlyGaps = now.isMostlyGaps(of: captures.count)
    let choices = (isMostlyGaps ? holds : [Choice(options: options)]).compactMap { choice -> String? in
      guard let (choice, plan) = suited(choice), !plan.isMostlyGaps(of: captures.count), !choice.words.isEmpty else {
        return nil
      }
      let words = choice.words.joined(separator: " ")
      let gaps = plan.gapMs > 0 ? "\(plan.gapMs / 1_000) s of gaps" : nil
      guard plan.segments != now.segments else { return "\(words) leaves \(gaps ?? "no gaps")" }
      let segments = "\(plan.segments) segment\(plan.segments == 1 ? "" : "s")"
      return "\(words) makes \(segments) of it, not \(now.segments)" + (gaps.map { ", with \($0)" } ?? "")
    }
    guard !choices.isEmpty else { return nil }
    let fact =
      isMostlyGaps
      ? "\(now.gapMs / 1_000) s of \((now.gapMs + now.shownMs) / 1_000) s are gaps, because a picture stays on screen for "
        + "at most \(options.maxHoldMs) ms"
      : "\(now.continuing) of \(now.segments) segments only continue a picture"
        + (bytes.map { ", in \($0.all - $0.new) of \($0.all) bytes" } ?? "")
    return "\(fact); \(choices.joined(separator: "; or "))"
  }

  // MARK: options

  private struct Choice {
    var words: [String] = []
    var isOnChange = false
    var options: EncodingOptions
  }

  /// The ways to keep pictures on screen for longer.
  private var holds: [Choice] {
    var choices: [Choice] = []
    // The option does not change what a batch states itself.
    if !batch.statesCapture {
      choices.append(Choice(words: ["--capture onChange"], isOnChange: true, options: options))
    }
    let distances = zip(captures, captures.dropFirst().map(\.timeMs) + [batch.endMs]).map { $1 - $0.timeMs }.sorted()
    let covered = distances[(distances.count - 1) * Self.coveredPercent / 100]
    var longer = options
    longer.maxHoldMs = (covered + 999) / 1_000 * 1_000
    if EncodingOptions.longestHoldMs >= longer.maxHoldMs, longer.maxHoldMs > options.maxHoldMs {
      choices.append(Choice(words: ["--max-hold \(longer.maxHoldMs)"], options: longer))
    }
    return choices
  }

  /// Returns the choice with longer segments, if most would only continue a picture without them; nil if it does not help.
  private func suited(_ choice: Choice) -> (Choice, Plan)? {
    let isOnChange = choice.isOnChange || batch.capture == .onChange
    let plan = plan(choice.options, isOnChange)
    if let plan, !plan.continuesMostly { return (choice, plan) }
    var longer = choice
    let shown = zip(captures, captures.dropFirst().map(\.timeMs) + [batch.endMs]).map { capture, end in
      isOnChange ? end - capture.timeMs : min(end - capture.timeMs, choice.options.maxHoldMs)
    }.sorted()
    let seconds = (Self.picturesASegment * shown[shown.count / 2] + 999) / 1_000
    longer.options.segmentMs = 1_000 * min(seconds, Timeline.segmentLengths.upperBound / 1_000)
    guard longer.options.segmentMs > choice.options.segmentMs,
      let longerPlan = self.plan(longer.options, isOnChange), longerPlan.segments < plan?.segments ?? .max
    else { return plan.map { (choice, $0) } }
    longer.words.append("--segment \(longer.options.segmentMs / 1_000)")
    return (longer, longerPlan)
  }

  /// Puts the captures on a timeline; nil if they make too many segments.
  private func plan(_ options: EncodingOptions, _ isOnChange: Bool) -> Plan? {
    let shownMs = isOnChange ? batch.endMs - captures[0].timeMs : Int64(captures.count) * options.maxHoldMs
    guard shownMs / options.longestSegmentMs + Int64(captures.count) <= options.limits.segments else { return nil }
    var timeline = Timeline(
      intervalMs: batch.intervalMs, maxHoldMs: isOnChange ? nil : options.maxHoldMs, segmentMs: options.segmentMs,
      film: options.film)
    var plan = Plan()
    for capture in captures {
      for hold in timeline.append(capture) { plan.add(hold) }
    }
    for hold in timeline.finish(endMs: batch.endMs) { plan.add(hold) }
    return plan
  }

  /// The facts of a timeline of captures.
  private struct Plan {
    /// Whether the open segment has a new picture.
    private var isNew = false
    private(set) var segments = 0
    /// The segments without a new picture.
    private(set) var continuing = 0
    private(set) var shownMs: Int64 = 0
    private(set) var gapMs: Int64 = 0
    /// The number of gaps.
    private(set) var gaps = 0

    /// Whether gaps take most of the time, and follow most pictures.
    func isMostlyGaps(of frames: Int) -> Bool { gapMs > shownMs && 2 * gaps >= frames }

    var continuesMostly: Bool { segments >= TimelineAdvice.fewest.segments && 2 * continuing > segments }

    mutating func add(_ hold: FrameHold) {
      shownMs += hold.holdMs
      isNew = isNew || hold.status == .captured
      guard let gapMs = hold.closingGapMs else { return }
      segments += 1
      if !isNew { continuing += 1 }
      self.gapMs += gapMs
      if gapMs > 0 { gaps += 1 }
      isNew = false
    }
  }
}
