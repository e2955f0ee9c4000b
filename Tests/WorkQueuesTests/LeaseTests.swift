import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import Sessions
@testable import WorkQueues

/// A worker judges workers on other hosts only by their heartbeats.
@Suite struct LeaseTests {
  private let scratch: ScratchDirectory
  private let spool: Spool
  private let other: String
  private let clock = Clock()

  private final class Clock: Sendable {
    let seconds = Atomic(1_000)
    func pass(_ count: Int) { seconds.add(count, ordering: .relaxed) }
  }

  init() throws {
    scratch = try ScratchDirectory()
    spool = try Spool(creating: scratch.path("spool"))
    other = try scratch.directory("spool/claimed/elsewhere~12~x1")
    _ = try scratch.directory("spool/claimed/elsewhere~12~x1/3.2.1/batch")
    try beat(1)
  }

  private func beat(_ count: Int) throws {
    try scratch.file("spool/claimed/elsewhere~12~x1/alive", Array("\(count)".utf8))
  }

  private var witness: HeartbeatMonitor {
    HeartbeatMonitor(lease: 60) { [clock] in clock.seconds.load(ordering: .relaxed) }
  }

  private func desk() throws -> SpoolQueue { try SpoolQueue(spool, worker: WorkerID(), elsewhere: witness) }

  @Test func claimIsTakenOverAfterALeaseWithoutHeartbeat() throws {
    let desk = try desk()
    #expect(try desk.takeOver().claims.isEmpty)
    clock.pass(59)
    #expect(try desk.takeOver().claims.isEmpty)
    clock.pass(1)
    let (claims, failures) = try desk.takeOver()
    #expect(failures.isEmpty)
    #expect(claims.map(\.name) == ["batch"])
    #expect(claims.map(\.attempt) == [2])
    #expect(claims.map(\.failures) == [1])
    #expect(claims.allSatisfy { DurableFile.exists($0.path) })
    // The other worker may still be alive. It loses the batch but keeps its directory.
    #expect(try names(in: other) == ["alive"])
    #expect(try desk.takeOver().claims.isEmpty)
  }

  @Test func workerWithHeartbeatsKeepsItsClaims() throws {
    let desk = try desk()
    for count in 2..<50 {
      #expect(try desk.takeOver().claims.isEmpty)
      clock.pass(59)
      try beat(count)
    }
    // A late scan does not prove that the worker is dead.
    clock.pass(10_000)
    #expect(try desk.takeOver().claims.isEmpty)
    clock.pass(59)
    #expect(try desk.takeOver().claims.isEmpty)
    #expect(try names(in: other) == ["3.2.1", "alive"])
  }

  @Test func modificationTimeDoesNotAffectTheLease() throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 0)], ofItemAtPath: other + "/alive")
    #expect(try desk().takeOver().claims.isEmpty)
  }

  @Test func liveWorkerWritesHeartbeats() throws {
    let worker = try WorkerDirectory(in: scratch.path("workers"), worker: WorkerID())
    let file = worker.path + "/alive"
    var seen: Set<Data> = []
    // No time limit: on a busy machine the heartbeat thread may wait.
    while seen.count < 3 {
      seen.insert(try Data(contentsOf: URL(fileURLWithPath: file)))
      usleep(100_000)
    }
  }

  @Test func directoryOfALiveOrUnknownWorkerIsNotPruned() throws {
    let worker = try WorkerDirectory(in: spool.claimed, worker: WorkerID())
    let staging = try Staging(output: spool.defaultOutput, worker: WorkerID())
    let pruning = Pruning(spool: spool, output: nil, isDryRun: false)
    let witness = self.witness
    try FileManager.default.removeItem(atPath: other + "/3.2.1")
    for _ in 0..<3 {
      #expect(try pruning.watch(with: witness) == 1)
      clock.pass(59)
      let (pruned, _, _, failures, _) = pruning.run(with: witness)
      #expect(pruned.isEmpty)
      #expect(failures.isEmpty)
      try beat(.random(in: 2...(.max)))
    }
    _ = try pruning.watch(with: witness)
    clock.pass(60)
    #expect(pruning.run(with: witness).pruned.map(\.path) == [other])
    #expect(try names(in: spool.claimed) == [lastComponent(of: worker.path)])
    staging.remove()
  }

  @Test func workerWithUnreadableDirectoryIsNotEvicted() throws {
    let desk = try desk()
    let own = try #require(names(in: scratch.path("spool/claimed")).first { $0.hasPrefix(WorkerID.host + "~") })
    let path = scratch.path("spool/claimed/" + own)
    #expect(desk.fault == nil)
    try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
    #expect(desk.fault == .workerEvicted)
    // A link that points to itself makes the check fail: the directory neither exists nor is missing.
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path)
    #expect(desk.fault == nil)
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
  }

  @Test(arguments: ["0.jpg", "batch"])
  func batchThatIsReadableAgainIsNotQuarantined(file: String) throws {
    let desk = try desk()
    _ = try scratch.directory("spool/incoming/batch")
    try scratch.file("spool/incoming/batch/0.jpg", [1])
    let claim = try #require(try desk.waiting().first.flatMap { try desk.claim($0) })
    #expect(throws: DiskError.self) {
      try desk.quarantine(claim, BadBatch("read", file, "permission denied", advice: ""))
    }
    #expect(try names(in: scratch.path("spool/quarantine")).isEmpty)
    #expect(try names(in: claim.path) == ["0.jpg"])
    try desk.quarantine(claim, BadBatch("read", "missing.jpg", "permission denied", advice: ""))
    #expect(try names(in: scratch.path("spool/quarantine")) == ["batch", "batch.reason.json"])
  }

  @Test func claimsOfADeadWorkerAreNotPruned() throws {
    let pruning = Pruning(spool: spool, output: nil, isDryRun: false)
    let witness = self.witness
    _ = try pruning.watch(with: witness)
    clock.pass(60)
    #expect(pruning.run(with: witness).pruned.isEmpty)
    #expect(try names(in: other) == ["3.2.1", "alive"])
  }
}
