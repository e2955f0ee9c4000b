import FileSystem
import Synchronization
import TestSupport
import Testing

@testable import Serving

/// Which requests for costly work pass, wait, and are refused.
@Suite struct RequestGateTests {
  /// A request that works until it is released.
  private final class Work: Sendable {
    let begun = Flag()
    let release = Flag()
    let ended = Flag()
    let error = Mutex<(any Error)?>(nil)
  }

  private func start(
    _ client: String, at gate: RequestGate<String>, on threads: ThreadGroup,
    isAbandoned: @escaping @Sendable () -> Bool = { false }
  ) throws -> Work {
    let work = Work()
    try threads.start {
      do {
        try gate.pass(for: client, isAbandoned: isAbandoned) {
          work.begun.set()
          _ = work.release.wait()
        }
      } catch { work.error.withLock { $0 = error } }
      work.ended.set()
    }
    return work
  }

  private func wait(for count: Int, at gate: RequestGate<String>) throws {
    try waitUntil("\(count) requests wait") { gate.waiting == count }
  }

  @Test func requestBeyondTheQueueIsRefusedAtOnce() throws {
    let (gate, threads) = (RequestGate<String>(width: 1, waiting: 1), ThreadGroup())
    let first = try start("a", at: gate, on: threads)
    #expect(first.begun.wait())
    let second = try start("a", at: gate, on: threads)
    try wait(for: 1, at: gate)
    #expect(throws: ServerBusy.self) { try gate.pass(for: "a") {} }
    #expect(throws: ServerBusy.self) { try gate.pass(for: "b") {} }
    let gone = try start("b", at: gate, on: threads) { true }
    #expect(gone.ended.wait() && gone.error.withLock { $0 } is ClientGone)
    first.release.set()
    #expect(second.begun.wait())
    second.release.set()
    threads.join()
    try gate.pass(for: "a") {}
  }

  @Test func clientThatLeavesWhileItWaitsStartsNoWork() throws {
    let (gate, threads, gone) = (RequestGate<String>(width: 1, waiting: 9), ThreadGroup(), Flag())
    let first = try start("a", at: gate, on: threads)
    #expect(first.begun.wait())
    let leaving = try start("a", at: gate, on: threads) { gone.isSet }
    try wait(for: 1, at: gate)
    gone.set()
    #expect(leaving.ended.wait())
    #expect(leaving.error.withLock { $0 } is ClientGone)
    #expect(!leaving.begun.isSet && gate.waiting == 0)
    first.release.set()
    threads.join()
    let late = try start("a", at: gate, on: threads) { true }
    threads.join()
    #expect(late.error.withLock { $0 } is ClientGone && !late.begun.isSet)
    try gate.pass(for: "a") {}
  }

  /// One client's requests come first, and wait longest. Another client has its turn before them.
  @Test func clientThatDoesTheLeastPassesFirst() throws {
    let (gate, threads) = (RequestGate<String>(width: 2, waiting: 9), ThreadGroup())
    let first = try (0..<2).map { _ in try start("a", at: gate, on: threads) }
    for work in first { #expect(work.begun.wait()) }
    let waiting = try start("a", at: gate, on: threads)
    try wait(for: 1, at: gate)
    let other = try start("b", at: gate, on: threads)
    try wait(for: 2, at: gate)
    first[0].release.set()
    #expect(other.begun.wait())
    #expect(!waiting.begun.isSet)
    for work in first + [other, waiting] { work.release.set() }
    threads.join()
  }

  @Test func requestOfAnotherClientTakesAPlaceOfTheOneWithMost() throws {
    let (gate, threads) = (RequestGate<String>(width: 1, waiting: 3), ThreadGroup())
    let first = try start("a", at: gate, on: threads)
    #expect(first.begun.wait())
    var waiting: [Work] = []
    for count in 1...3 {
      waiting.append(try start("a", at: gate, on: threads))
      try wait(for: count, at: gate)
    }
    #expect(throws: ServerBusy.self) { try gate.pass(for: "a") {} }
    let other = try start("b", at: gate, on: threads)
    #expect(waiting[2].ended.wait())
    #expect(waiting[2].error.withLock { $0 } is ServerBusy)
    // Both have two places now.
    #expect(!other.ended.isSet && gate.waiting == 3)
    for work in [first, other] + waiting { work.release.set() }
    threads.join()
    #expect(other.begun.isSet && waiting[0].begun.isSet && waiting[1].begun.isSet && !waiting[2].begun.isSet)
  }
}
