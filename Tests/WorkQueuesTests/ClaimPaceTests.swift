import FrameBatches
import Synchronization
import TestSupport
import Testing

@testable import FileSystem
@testable import Sessions
@testable import WorkQueues

/// Pauses between claims that bring nothing.
@Suite struct ClaimPaceTests {
  @Test func emptyClaimPausesAtLeast200Ms() {
    for _ in 0..<50 {
      var pace = ClaimPace()
      #expect(!pace.isPausing(atMs: 0))
      pace.noteEmpty(askedMs: 1_000, nowMs: 1_001)
      #expect(pace.isPausing(atMs: 1_199) && !pace.isPausing(atMs: 1_400))
    }
  }

  @Test func pausesGrowToTwoSeconds() {
    var pace = ClaimPace()
    for count in 1...99 { pace.noteEmpty(askedMs: 1_000 * count, nowMs: 1_000 * count) }
    #expect(pace.emptyInARow == 99 && pace.isPausing(atMs: 99_999) && !pace.isPausing(atMs: 101_000))
    pace.noteNoneWaiting()
    pace.noteEmpty(askedMs: 200_000, nowMs: 200_000)
    #expect(pace.emptyInARow == 1 && !pace.isPausing(atMs: 200_400))
  }

  @Test func claimThatBringsSomethingEndsThePause() {
    var pace = ClaimPace()
    pace.noteEmpty(askedMs: 0, nowMs: 0)
    pace.noteFound()
    #expect(!pace.isPausing(atMs: 1) && pace.emptyInARow == 0)
  }

  /// SQS waits for a message itself.
  @Test func emptyClaimThatWaitedItselfIsNotFollowedByAPause() {
    var pace = ClaimPace()
    for count in 0..<50 { pace.noteEmpty(askedMs: 2_000 * count, nowMs: 2_000 * (count + 1)) }
    #expect(pace.emptyInARow == 0 && !pace.isPausing(atMs: 100_000))
  }

  /// A queue that counts names, and gives none; for each claim that others have begun, another worker was faster.
  private final class MiscountingNames: NameQueue {
    let claims = Atomic(0)
    let count = Atomic(Int.max)

    func waitingCount() -> Int { count.load(ordering: .relaxed) }
    func heldElsewhereCount() -> Int { 0 }
    var heldCount: Int { 0 }
    func next() -> Claim? {
      claims.add(1, ordering: .relaxed)
      return nil
    }
    func takeOver() -> [Claim] { [] }
    func begin(_ claim: Claim) -> Claim? { nil }
    func fail(_ claim: Claim) -> Claim? { nil }
    func renew(_ claim: Claim) -> Bool { false }
    func forgive(_ claim: Claim) -> Claim? { nil }
    func handBack(_ claim: Claim) {}
    func acknowledge(_ claim: Claim) {}
    func deadLetter(_ claim: Claim, reason: String) {}
    func add(_ names: [String], traceParent: TraceParent?) -> Int { 0 }
    func holds(_ id: String) -> Bool { false }
    var lostState: Bool { false }
    func leave() {}
  }

  private final class Clock: Sendable {
    let ms = Atomic(0)
    func advance(ms: Int) { self.ms.add(ms, ordering: .relaxed) }
  }

  private static func queue(_ names: any NameQueue, _ scratch: ScratchDirectory, _ clock: Clock) throws -> ObjectQueue {
    let id = WorkerID()
    let staging = try Staging(scratch: scratch.path("own"), worker: id)
    return ObjectQueue(
      names, MemoryObjects(), name: "s3://test", staging: staging, worker: id, maximumBytes: 1 << 30,
      clock: { clock.ms.load(ordering: .relaxed) })
  }

  @Test func queueThatCountsWrongIsAskedOnceInAPause() throws {
    let (scratch, names, clock) = (try ScratchDirectory(), MiscountingNames(), Clock())
    let queue = try Self.queue(names, scratch, clock)
    for round in 1...5 {
      let entries = try queue.waiting()
      #expect(entries.count == 64)
      for entry in entries { #expect(try queue.claim(entry) == nil) }
      #expect(names.claims.load(ordering: .relaxed) == round && queue.isPausing && queue.emptyClaims == round)
      clock.advance(ms: 2_000)
      #expect(!queue.isPausing)
    }
    names.count.store(0, ordering: .relaxed)
    #expect(try queue.waiting().isEmpty && queue.emptyClaims == 0)
  }

  @Test func claimThatAnotherWorkerHasTakenOverPausesTheQueue() throws {
    let (scratch, clock) = (try ScratchDirectory(), Clock())
    let queue = try Self.queue(MiscountingNames(), scratch, clock)
    #expect(try queue.begin(Claim(id: "1-0", name: "a", attempt: 1, failures: 0)) == nil)
    #expect(queue.isPausing)
  }

  @Test func claimThatBringsSomethingIsFollowedByTheNextAtOnce() throws {
    let (scratch, names, clock) = (try ScratchDirectory(), MemoryNames(), Clock())
    let queue = try Self.queue(names, scratch, clock)
    #expect(names.add(["a", "b", "c"]) == 3)
    for entry in try queue.waiting() { #expect(try queue.claim(entry) != nil && !queue.isPausing) }
    #expect(try queue.claim(QueueEntry(name: nil)) == nil && queue.isPausing)
    #expect(names.add(["d"]) == 1)
    clock.advance(ms: 400)
    #expect(try queue.claim(QueueEntry(name: nil))?.name == "d" && !queue.isPausing)
  }
}
