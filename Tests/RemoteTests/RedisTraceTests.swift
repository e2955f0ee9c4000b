import FrameBatches
import TestSupport
import Testing
import WorkQueues

@testable import Remote

/// The field `traceparent` of an entry: the trace of its batch.
@Suite(.enabled(if: QueueServer.isInstalled, "there is no redis-server: scripts/setup test"))
struct RedisTraceTests: RedisStreamSuite {
  private static let step = TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")!
  let server: QueueServer

  init() throws { server = try QueueServer() }

  @Test func claimTellsTheTraceOfItsEntry() throws {
    let worker = try worker()
    let step = Self.step.description
    try server.command("XADD", "encoder-worker", "*", "batch", "a", "traceparent", step)
    try server.command("XADD", "encoder-worker", "*", "traceparent", step, "more", "1", "batch", "b")
    #expect(try worker.add(["c", "d"], traceParent: Self.step) == 2)
    #expect(try worker.add(["c"], traceParent: nil) == 0 && worker.add(["e"]) == 1)
    let entries = try (0..<5).map { _ in try take(worker) }
    #expect(entries.map(\.name) == ["a", "b", "c", "d", "e"])
    #expect(entries.map(\.traceParent) == [Self.step, Self.step, Self.step, Self.step, nil])
    for entry in entries { try worker.acknowledge(entry) }
    #expect(try isEmpty())
  }

  @Test(arguments: [
    "", "x", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" + String(repeating: "0", count: 100_000),
  ])
  func otherValueIsNoTrace(text: String) throws {
    try server.command("XADD", "encoder-worker", "*", "batch", "a", "traceparent", text)
    let worker = try worker()
    let entry = try take(worker)
    #expect(entry.name == "a" && entry.attempt == 1 && entry.traceParent == nil)
    try worker.acknowledge(entry)
    #expect(try isEmpty())
  }

  @Test func traceOutlivesRetriesTakeoverAndHandback() throws {
    let one = try worker("one")
    #expect(try one.add(["a"], traceParent: Self.step) == 1)
    let failed = try #require(try one.fail(take(one)))
    #expect(failed.traceParent == Self.step && failed.failures == 1)
    let (two, taken) = try takeOver(failed)
    #expect(taken.traceParent == Self.step)
    let begun = try #require(try two.begin(taken))
    #expect(begun.traceParent == Self.step && begun.attempt == taken.attempt + 1)
    #expect(try #require(try two.forgive(begun)).traceParent == Self.step)
    try two.handBack(begun)
    let again = try take(one)
    #expect(again.traceParent == Self.step && again.failures == 1)
    // The name is known: the entry keeps its trace.
    try one.handBack(again)
    #expect(try one.add(["a"]) == 0)
    #expect(try take(two).traceParent == Self.step)
  }
}
