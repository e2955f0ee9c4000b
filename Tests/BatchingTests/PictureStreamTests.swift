import TestSupport
import Testing

@testable import Batching
@testable import FileSystem
@testable import FrameBatches

/// The plans of batches, by hand-written instants.
@Suite struct PictureStreamTests {
  private static func picture(_ timeMs: Int64, bytes: Int64 = 1) -> LoosePicture {
    LoosePicture(
      FolderFile(name: "\(timeMs).jpg", stamp: FileStamp(inode: 0, size: bytes, modified: 0)), timeMs: timeMs,
      capture: .interval)
  }

  /// A stream of the session "film".
  private static func stream(
    _ timesMs: [Int64] = [], after session: OpenSession? = nil, bytes: Int64 = 1
  ) -> PictureStream {
    var stream = PictureStream("", BatchRules(), OneSession("film"), session: session, nowMs: 0)
    for timeMs in timesMs { stream.add(picture(timeMs, bytes: bytes), nowMs: 0) }
    return stream
  }

  private static let last = OpenSession(name: "film", lastMs: 10_000, endMs: 11_000, intervalMs: 1_000)

  /// Takes out all plans that are due.
  private static func plans(
    _ stream: inout PictureStream, nowMs: Int, _ urgency: PictureStream.Urgency = .byClock
  ) -> [BatchPlan] {
    var plans: [BatchPlan] = []
    while let plan = stream.next(nowMs: nowMs, urgency) {
      let times = plan.pictures.map(\.timeMs)
      let endMs = plan.nextMs ?? times[times.count - 1] + 1_000
      stream.commit(
        plan,
        session: OpenSession(
          name: plan.session, lastMs: times[times.count - 1], endMs: endMs, intervalMs: 1_000,
          isOpen: plan.nextMs == nil || plan.isLate),
        nowMs: nowMs)
      plans.append(plan)
    }
    return plans
  }

  /// The session of a folder: a pause ends it.
  private struct FolderLike: SessionNames {
    var areFixed: Bool { false }
    var endAtPause: Bool { true }
    func name(at timeMs: Int64) -> String { "shots-\(timeMs)" }
    func isOver(_ beforeMs: Int64, at afterMs: Int64) -> Bool { false }
    func mayContinue(_ session: OpenSession) -> Bool { true }
  }

  /// A run with a shorter pause takes no picture out of a session that the run before has held until it: that would never end.
  @Test func pictureThatEndedAHoldStaysInItsSession() {
    var rules = BatchRules()
    rules.idleMs = 6_000
    for (endMs, isOpen, name) in [
      (17_000, false, "shots-1"), (17_000, true, "shots-17000"), (11_000, false, "shots-17000"),
    ]
      as [(Int64, Bool, String)]
    {
      let last = OpenSession(name: "shots-1", lastMs: 10_000, endMs: endMs, intervalMs: 1_000, isOpen: isOpen)
      var stream = PictureStream("", rules, FolderLike(), session: last, nowMs: 0)
      stream.add(Self.picture(17_000), nowMs: 0)
      let plans = Self.plans(&stream, nowMs: 6_000)
      #expect(plans.map(\.session) == [name] && plans[0].isFinal)
    }
  }

  @Test func newestPictureWaitsForTheNextOneThePauseOrTheEnd() {
    var stream = Self.stream([1_000, 2_000, 3_500])
    #expect(Self.plans(&stream, nowMs: 4_999).isEmpty)
    let due = Self.plans(&stream, nowMs: 5_000)
    #expect(due.map { $0.pictures.map(\.timeMs) } == [[1_000, 2_000]] && due[0].nextMs == 3_500)
    #expect(Self.plans(&stream, nowMs: 59_999, .known).isEmpty && stream.waiting.count == 1)
    var other = stream
    for urgency in [PictureStream.Urgency.byClock, .all] {
      let last = Self.plans(&stream, nowMs: urgency == .all ? 6_000 : 60_000, urgency)
      #expect(last.map { $0.pictures.map(\.timeMs) } == [[3_500]] && last[0].nextMs == nil && !last[0].isFinal)
      swap(&stream, &other)
    }
  }

  @Test func batchHasAMaximumOfPicturesAndOfBytes() {
    var many = Self.stream((0..<150).map { $0 * 100 })
    #expect(Self.plans(&many, nowMs: 1).map(\.pictures.count) == [60, 60])
    var large = Self.stream([0, 1_000, 2_000, 3_000], bytes: 60 << 20)
    #expect(Self.plans(&large, nowMs: 5_000).map(\.pictures.count) == [2])
    #expect(Self.plans(&large, nowMs: 10_000).map(\.pictures.count) == [1])
  }

  @Test func eachLatePictureHasABatchOfItsOwn() {
    var stream = Self.stream([9_000, 9_000, 9_500, 11_000, 12_000], after: Self.last)
    let plans = Self.plans(&stream, nowMs: 5_000)
    #expect(plans.map { $0.pictures.map(\.timeMs) } == [[9_000, 9_000], [9_500], [11_000]])
    // The next one that waits ends a hold only if it is near.
    #expect(plans.map(\.nextMs) == [9_500, nil, 12_000] && plans.map(\.isLate) == [true, true, false])
    #expect(stream.session?.lastMs == 11_000)
  }

  /// Pictures that come late into the hold of the last one: each is alone in conflict, and takes no other with it.
  @Test func latePictureDoesNotEndTheHoldThatItLiesIn() {
    let held = OpenSession(name: "film", lastMs: 10_000, endMs: 13_000, intervalMs: 1_000)
    var stream = Self.stream([12_000, 12_400, 13_000, 14_000, 15_000], after: held)
    let plans = Self.plans(&stream, nowMs: 5_000)
    #expect(plans.map { $0.pictures.map(\.timeMs) } == [[12_000], [12_400], [13_000, 14_000]])
    #expect(plans.map(\.isLate) == [true, true, false])
  }

  @Test func seamIsNotLate() {
    // Half of the interval either way.
    #expect(!Self.last.covers(10_501) && Self.last.covers(10_500) && Self.last.covers(10_000))
    let open = OpenSession(name: "film", lastMs: 10_000, endMs: 11_000, intervalMs: 1_000, isOpen: true)
    #expect(!open.covers(10_001) && open.covers(10_000))
  }

  @Test func jumpOfTheClockEndsABatch() {
    let day: Int64 = 86_400_000
    var stream = Self.stream([1_000, 2_000, 2_001 + day, 3_000 + day])
    let plans = Self.plans(&stream, nowMs: 5_000) + Self.plans(&stream, nowMs: 10_000)
    #expect(plans.map { $0.pictures.map(\.timeMs) } == [[1_000, 2_000], [2_001 + day]])
    #expect(plans.map(\.nextMs) == [nil, 3_000 + day])
  }
}
