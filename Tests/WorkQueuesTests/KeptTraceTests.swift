import Foundation
import FrameBatches
import TestSupport
import Testing

@testable import FileSystem
@testable import WorkQueues

/// The trace of a batch that its file has, through the states of a spool and of a queue of names.
@Suite struct KeptTraceTests {
  private static let step = TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")!
  private let scratch: ScratchDirectory
  private let spool: Spool

  init() throws {
    scratch = try ScratchDirectory()
    spool = try Spool(creating: scratch.path("spool"))
  }

  private func add(_ name: String, _ step: TraceParent? = step) throws -> String {
    let path = spool.incoming + "/" + name
    try Data("a batch".utf8).write(to: URL(fileURLWithPath: path))
    let file = open(path, O_RDWR | O_CLOEXEC)
    defer { close(file) }
    if let step { #expect(KeptTrace.keep(step, with: file)) }
    return path
  }

  private func queue() throws -> SpoolQueue {
    try SpoolQueue(spool, worker: WorkerID(), elsewhere: HeartbeatMonitor(lease: 10))
  }

  private func fetched(_ queue: SpoolQueue) throws -> Claim {
    let entry = try #require(try queue.waiting().first)
    let claim = try #require(try queue.claim(entry))
    guard case .batch(let batch) = queue.fetch(claim) else { throw Tool.Failure("no batch") }
    return batch.claim
  }

  /// The claim itself changes the time, and a failure does not.
  @Test func claimTellsWhenItsBatchCame() throws {
    let path = try add("a", nil)
    var status = stat()
    #expect(lstat(path, &status) == 0)
    let queue = try queue()
    let claim = try fetched(queue)
    #expect(claim.arrivedMs == WallClock.unixMs(status.st_ctim.tv_sec, status.st_ctim.tv_nsec))
    #expect(try queue.fail(claim).arrivedMs == claim.arrivedMs)
    #expect(claim.with(attempt: 2).arrivedMs == claim.arrivedMs)
  }

  @Test(.enabled(if: ScratchDirectory.keepsAttributes, "the file system keeps no extended attributes"))
  func fileKeepsItsTraceUntilQuarantine() throws {
    _ = try add("a")
    let queue = try queue()
    let claim = try fetched(queue)
    #expect(claim.traceParent == Self.step)
    try queue.handBack(claim)
    let again = try fetched(queue)
    #expect(again.traceParent == Self.step)
    let name = try queue.quarantine(again, BadBatch("read", "a", "no batch", advice: "see the file"))
    #expect(KeptTrace.of(spool.quarantine + "/" + name) == Self.step)
    #expect(try DurableFile.contents(of: spool.quarantine + "/" + name, limit: 100) == Array("a batch".utf8))
  }

  @Test(.enabled(if: ScratchDirectory.keepsAttributes, "the file system keeps no extended attributes"))
  func otherAttributeLinkAndDirectoryAreNoTrace() throws {
    let path = try add("a", nil)
    #expect(KeptTrace.of(path) == nil)
    let script = "import os, sys; os.setxattr(sys.argv[1], 'user.traceparent', sys.argv[2].encode())"
    for text in ["", "x", String(repeating: "0", count: TraceParent.length), String(repeating: "1", count: 2_000)] {
      try Tool.output(Tool.python, ["-c", script, path, text])
      #expect(KeptTrace.of(path) == nil)
    }
    try Tool.output(Tool.python, ["-c", script, path, Self.step.description])
    #expect(KeptTrace.of(path) == Self.step)
    let traced = try add("b")
    symlink(traced, spool.incoming + "/c")
    #expect(KeptTrace.of(traced) == Self.step && KeptTrace.of(spool.incoming + "/c") == nil)
    #expect(KeptTrace.of(spool.incoming) == nil && KeptTrace.of(spool.path + "/nothing") == nil)
  }

  @Test func nameCarriesItsTraceFromClaimToClaim() throws {
    let names = MemoryNames()
    #expect(names.add(["a"], traceParent: Self.step) == 1 && names.add(["b"]) == 1)
    let claim = try #require(names.next())
    #expect(claim.traceParent == Self.step)
    #expect(claim.with(attempt: 3).traceParent == Self.step && claim.with(failures: 2).attempt == 1)
    #expect(try #require(names.next()).traceParent == nil)
  }
}
