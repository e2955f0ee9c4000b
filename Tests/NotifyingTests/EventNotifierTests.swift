import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import Notifying
@testable import SegmentEncoder
@testable import WorkQueues

/// A receiver whose answers a test decides.
private final class ScriptedReceiver: EventReceiver {
  let name = "test://"
  /// The batches of all attempts, in order.
  let attempts = Mutex<[String]>([])
  private let answer: @Sendable (_ batch: String, _ attempt: Int) -> Delivery

  init(_ answer: @escaping @Sendable (_ batch: String, _ attempt: Int) -> Delivery) { self.answer = answer }

  func send(key: String, event: String, traceParent: TraceParent?, cancellation: Cancellation) -> Delivery {
    let batch = String(event.split(separator: "\"")[3])
    let attempt = attempts.withLock { attempts in
      attempts.append(batch)
      return attempts.count { $0 == batch }
    }
    let result = answer(batch, attempt)
    guard result == .cancelled else { return result }
    // Hangs until the notifier stops.
    while !cancellation.isRequested { usleep(1_000) }
    return .cancelled
  }
}

@Suite struct EventNotifierTests {
  private let settled = Settled()

  private final class Settled: Sendable {
    let batches = Mutex<[String]>([])
    let refused = Mutex<[String]>([])
  }

  private func batch(_ name: String) -> FinishedBatch {
    let claim = Claim(id: name, name: name, attempt: 1, failures: 0)
    return FinishedBatch(
      claim: claim, ending: .quarantine(BadBatch("read", name, "test", advice: "none")),
      facts: BatchFacts(of: claim, InputOptions()))
  }

  private func add(_ names: [String], to notifier: EventNotifier<FinishedBatch>) {
    for name in names { notifier.add(batch(name), batch(name).event) }
  }

  private func start(_ notifier: EventNotifier<FinishedBatch>) throws {
    let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    @Sendable func wake() {}
    try notifier.start(logger, wake: wake) { [settled] batch, refused in
      settled.batches.withLock { $0.append(batch.claim.name) }
      if let refused { settled.refused.withLock { $0.append(refused.cause) } }
    }
  }

  private func wait(_ awaited: String, until condition: () -> Bool) throws {
    for _ in 0..<60_000 {
      if condition() { return }
      usleep(1_000)
    }
    throw Tool.Failure("still not: \(awaited)")
  }

  @Test func eachBatchIsSettledOnceAfterItsDelivery() throws {
    let receiver = ScriptedReceiver { batch, attempt in
      switch (batch, attempt) {
      case ("bad", _): .refused(cause: "why")
      case (_, 1): .failed(cause: "away", retryAfterS: nil)
      default: .accepted
      }
    }
    let notifier = EventNotifier<FinishedBatch>(receiver, limit: 100, timeoutS: 60)
    try start(notifier)
    add(["a", "bad", "b"], to: notifier)
    try wait("all are settled") { notifier.isIdle }
    #expect(settled.batches.withLock { $0.sorted() } == ["a", "b", "bad"])
    #expect(settled.refused.withLock { $0 } == ["why"])
    let counts = notifier.counts
    #expect(counts.sent == 2 && counts.failed == 2 && counts.refused == 1 && counts.pending == 0)
    #expect(notifier.stop().isEmpty)
  }

  /// One event that the receiver always fails on does not hold up the others.
  @Test func eventThatAlwaysFailsDoesNotBlockTheOthers() throws {
    let receiver = ScriptedReceiver { batch, _ in
      batch == "poison" ? .failed(cause: "500", retryAfterS: nil) : .accepted
    }
    let notifier = EventNotifier<FinishedBatch>(receiver, limit: 100, timeoutS: 60)
    add(["poison"] + (0..<20).map { "b\($0)" }, to: notifier)
    try start(notifier)
    // A batch is settled a moment before its delivery counts as ended.
    try wait("the others are settled") { settled.batches.withLock { $0.count } == 20 && notifier.counts.pending == 1 }
    #expect(notifier.surrender == nil)
    #expect(notifier.stop().map(\.claim.name) == ["poison"])
    // Each of its attempts has a pause of its own, so there are few.
    #expect(receiver.attempts.withLock { $0.count { $0 == "poison" } } <= 3)
  }

  @Test func receiverThatIsAwayGetsOneAttemptAtATime() throws {
    let receiver = ScriptedReceiver { _, _ in .failed(cause: "away", retryAfterS: 3_600) }
    let notifier = EventNotifier<FinishedBatch>(receiver, limit: 3, timeoutS: 0)
    try start(notifier)
    add(["a"], to: notifier)
    try wait("the first attempt has failed") { notifier.isFailing }
    #expect(!notifier.isFull && notifier.trouble == nil && notifier.remark?.contains("away") == true)
    add(["b", "c"], to: notifier)
    #expect(notifier.isFull && notifier.trouble?.contains("3 batches wait for test://") == true)
    // The receiver has asked for an hour; the bound is five minutes.
    usleep(100_000)
    #expect(receiver.attempts.withLock { $0 } == ["a"])
    #expect("\(try #require(notifier.surrender))".contains("3 batches are put back"))
    #expect(notifier.stop().map(\.claim.name) == ["a", "b", "c"] && settled.batches.withLock { $0 }.isEmpty)
  }

  @Test func deliveryInProgressIsCancelledByAStop() throws {
    let receiver = ScriptedReceiver { batch, _ in batch == "hangs" ? .cancelled : .accepted }
    let notifier = EventNotifier<FinishedBatch>(receiver, limit: 4, timeoutS: 60)
    try start(notifier)
    add(["hangs", "a"], to: notifier)
    try wait("the other event is settled") {
      settled.batches.withLock { $0 } == ["a"] && notifier.counts.pending == 1
    }
    #expect(!notifier.isIdle)
    #expect(notifier.stop().map(\.claim.name) == ["hangs"])
  }

  @Test func fullNotifierHasRoomAgainWhenAQuarterIsFree() throws {
    let gate = Gate()
    let receiver = ScriptedReceiver { _, _ in gate.isAway ? .failed(cause: "away", retryAfterS: nil) : .accepted }
    let notifier = EventNotifier<FinishedBatch>(receiver, limit: 4, timeoutS: 60)
    try start(notifier)
    add(["a", "b", "c", "d"], to: notifier)
    try wait("an attempt has failed") { notifier.isFailing }
    #expect(notifier.isFull)
    gate.open()
    try wait("all are settled") { notifier.isIdle }
    #expect(!notifier.isFull && notifier.trouble == nil && notifier.remark == nil)
    #expect(settled.batches.withLock { $0.sorted() } == ["a", "b", "c", "d"])
    #expect(notifier.stop().isEmpty)
  }

  private final class Gate: Sendable {
    private let state = Mutex(true)
    var isAway: Bool { state.withLock { $0 } }
    func open() { state.withLock { $0 = false } }
  }
}
