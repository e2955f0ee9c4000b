import Foundation
import TestSupport
import Testing

@testable import Deleting
@testable import FileSystem
@testable import FrameBatches
@testable import Sessions
@testable import WorkQueues

/// Deletion of sessions beside a worker that holds a batch.
@Suite struct SpoolDeletionTests {
  private let scratch: ScratchDirectory
  private let spool: Spool
  private let queue: SpoolQueue
  private let id: SessionID

  init() throws {
    scratch = try ScratchDirectory()
    spool = try Spool(creating: scratch.path("spool"))
    queue = try SpoolQueue(spool, worker: WorkerID(), elsewhere: HeartbeatMonitor(lease: 10))
    id = try #require(SessionID("walk"))
    try DurableFile.makeDirectories(spool.defaultOutput)
  }

  private func claim(_ name: String) throws -> Claim {
    let batch = try scratch.directory("spool/incoming/\(name)")
    try scratch.file(
      "spool/incoming/\(name)/1767859512340.jpg", try Fixture("exact-1fps").bytes("0000.jpg"))
    #expect(DurableFile.exists(batch))
    let entry = try #require(try queue.waiting().first { $0.name == name })
    return try #require(try queue.claim(entry))
  }

  private func delete(waitMs: Int, isCancelled: @escaping () -> Bool = { false }) throws -> Deletion {
    let place = DirectoryDeletionPlace(
      output: spool.defaultOutput, spool: spool,
      BatchIdentifier(unpacker: nil, cancellation: Cancellation(isCancelled)),
      waitMs: waitMs)
    let run = place.delete([Tombstone(id, deletedAtMs: 1, reason: "")])
    try run.end.get()
    return run
  }

  @Test func heldBatchOfTheSessionIsReported() throws {
    let (own, other) = (try claim("walk@1"), try claim("other@1"))
    let run = try delete(waitMs: 60)
    #expect(run.remains.held == [own.path] && run.failures.isEmpty)
    #expect(DurableFile.exists(own.path) && DurableFile.exists(other.path))
    queue.leave()
  }

  /// Claims of a live worker are named, and those of a dead one are counted.
  @Test func dryRunWaitsForNobodyAndTakesNothing() throws {
    let own = try claim("walk@1")
    let dead = "\(WorkerID.host)~99999999~dead1"
    _ = try scratch.directory("spool/claimed/\(dead)/1.1.0/walk@2")
    try scratch.file("spool/claimed/\(dead)/alive", [])
    try scratch.file(
      "spool/claimed/\(dead)/1.1.0/walk@2/1767859512340.jpg", try Fixture("exact-1fps").bytes("0000.jpg"))
    let place = DirectoryDeletionPlace(
      output: spool.defaultOutput, spool: spool, BatchIdentifier(unpacker: nil), waitMs: 600_000)
    let before = try snapshot(of: spool.path)
    let run = place.delete([Tombstone(id, deletedAtMs: 1, reason: "")], isDryRun: true)
    try run.end.get()
    #expect(run.remains.held == [own.path] && run.failures.isEmpty)
    #expect(run.reports[id]?.batches == ["claimed/\(dead)/1.1.0/walk@2"])
    #expect(try snapshot(of: spool.path) == before)
    queue.leave()
  }

  @Test func picturesThatNoBatchHasAreRemoved() throws {
    for session in ["walk", "other"] {
      _ = try scratch.directory("spool/ingest/\(session)/.draft")
      try scratch.file("spool/ingest/\(session)/1767859512340.jpg", try Fixture("exact-1fps").bytes("0000.jpg"))
      try scratch.file("spool/ingest/\(session)/.draft/1767859511340.jpg", try Fixture("exact-1fps").bytes("0001.jpg"))
    }
    let run = try delete(waitMs: 0)
    // The pictures become a batch, which is removed, too; both of them are in it.
    let removed = try #require(run.reports[id]).batches.map { String($0.prefix { $0 != "@" }) }
    #expect(run.failures.isEmpty && removed == ["incoming/walk", "ingest/walk"])
    #expect(try names(in: spool.pictures) == ["other"] && names(in: spool.trash) == [])
    #expect(DurableFile.exists(spool.pictures + "/other/1767859512340.jpg"))
  }

  /// The worker had looked before the tombstone was there, and quarantines or keeps the batch afterwards.
  @Test(arguments: [false, true]) func deletionWaitsForHeldBatchAndFindsItWhereItWent(isKept: Bool) throws {
    let own = try claim("walk@1")
    let spool = spool
    let moving = ThreadGroup()
    try moving.start {
      usleep(150_000)
      try? DurableFile.makeDirectories(spool.done)
      rename(own.path, (isKept ? spool.done : spool.quarantine) + "/walk@1")
    }
    let run = try delete(waitMs: 60_000)
    moving.join()
    #expect(run.remains == RemainingBatches() && run.failures.isEmpty)
    #expect(run.reports[id]?.batches == [(isKept ? "done" : "quarantine") + "/walk@1"])
    #expect(try names(in: spool.quarantine) == [] && names(in: spool.done) == [] && names(in: spool.trash) == [])
    queue.leave()
  }

  @Test func waitEndsWithAStopRequest() throws {
    _ = try claim("walk@1")
    var questions = 0
    #expect(throws: Cancelled.self) {
      _ = try delete(waitMs: 600_000) {
        questions += 1
        return questions > 8
      }
    }
    queue.leave()
  }

  @Test func batchWithOtherSessionsWaitsForAWorkerButIsNotKept() throws {
    for place in ["incoming", "done"] {
      _ = try scratch.directory("spool/\(place)/desk@1")
      for screen in ["1", "2"] {
        try scratch.file(
          "spool/\(place)/desk@1/1767859512340_m\(screen).jpg", try Fixture("exact-1fps").bytes("0000.jpg"))
      }
    }
    let deletionPlace = DirectoryDeletionPlace(
      output: spool.defaultOutput, spool: spool, BatchIdentifier(unpacker: nil), waitMs: 10)
    let screen = try #require(SessionID("desk.m1"))
    let run = deletionPlace.delete([Tombstone(screen, deletedAtMs: 1, reason: "")])
    try run.end.get()
    #expect(run.reports[screen]?.batches == ["done/desk@1"])
    #expect(try names(in: spool.incoming) == ["desk@1"])
    // All of its sessions are deleted now, in two runs.
    let other = try #require(SessionID("desk.m2"))
    let second = deletionPlace.delete([Tombstone(other, deletedAtMs: 2, reason: "")])
    try second.end.get()
    #expect(second.reports[other]?.batches == ["incoming/desk@1"] && second.failures.isEmpty)
    queue.leave()
  }

  /// Links in the spool lead to files of others.
  @Test func linksAreNotFollowed() throws {
    let precious = try scratch.directory("walk@1")
    try scratch.file("walk@1/1767859512340.jpg", try Fixture("exact-1fps").bytes("0000.jpg"))
    for place in [spool.quarantine, spool.incoming, spool.trash] { symlink(precious, place + "/walk@1") }
    symlink(precious, spool.defaultOutput + "/.pruned~walk~x~1~y")
    symlink(precious, spool.done)
    let run = try delete(waitMs: 10)
    #expect(try names(in: precious) == ["1767859512340.jpg"])
    #expect(try names(in: spool.trash) == [])
    #expect(run.remains.held.isEmpty)
    queue.leave()
  }

  @Test func reasonWhoseBatchIsGoneIsRemoved() throws {
    for (name, batch) in [("a", "walk@1.tar"), ("b", "other@1.tar")] {
      try scratch.file(
        "spool/quarantine/\(name).reason.json",
        Array(#"{"format":"quarantine-reason/1","batch":"\#(batch)","worker":"x"}"#.utf8))
    }
    _ = try delete(waitMs: 10)
    #expect(try names(in: spool.quarantine) == ["b.reason.json"])
    queue.leave()
  }

  /// Archives that break off behind a description of the session, and a description that breaks off itself. Their names say another one.
  @Test(arguments: ["tar", "tgz", "zip", "json", "directory"])
  func damagedBatchIsKnownByWhatCanBeReadOfIt(kind: String) throws {
    let text = #"{"version":1,"metadata":{"session":"inner"},"session":"walk","endMs":1767859522340,"frames":["#
    let draft = try scratch.directory("draft")
    var numbers = Random(seed: 1)
    // Of a compressed archive that breaks off, the last 64 KiB cannot be read.
    let random = (0..<200_000).map { _ in UInt8(numbers.int(0...255)) }
    try scratch.file("draft/1767859512340.jpg", random)
    try scratch.file("draft/batch.json", Array((text + #"{"file":"1767859512340.jpg","timeMs":1767859512340}]}"#).utf8))
    for place in ["incoming", "tmp", "quarantine", "done"] {
      _ = try scratch.directory("spool/\(place)")
      let path = "spool/\(place)/other@1"
      switch kind {
      case "tar", "tgz":
        let options = kind == "tgz" ? ["--gzip"] : []
        let all = Array(
          try Tool.output("tar", options + ["-cf", "-", "-C", draft, "batch.json", "1767859512340.jpg"]))
        try scratch.file(path + "." + kind, Array(all.prefix(all.count / 2)))
      case "zip":
        _ = try Tool.run(
          "zip", ["-q", "-j", scratch.path("whole.zip"), draft + "/batch.json", draft + "/1767859512340.jpg"])
        let all = try DurableFile.contents(of: scratch.path("whole.zip"), limit: .max) ?? []
        try scratch.file(path + ".zip", Array(all.prefix(all.count / 2)))
      case "json": try scratch.file(path + ".json", Array(text.utf8))
      default:
        _ = try scratch.directory(path)
        try scratch.file(path + "/batch.json", Array(text.utf8))
        try scratch.file(path + "/1767859512340.jpg", random)
      }
    }
    let run = try delete(waitMs: 0)
    let name = kind == "directory" ? "other@1" : "other@1.\(kind)"
    let removed = try #require(run.reports[id]).batches.sorted()
    #expect(removed == ["done", "incoming", "quarantine", "tmp"].map { "\($0)/\(name)" }, "\(run.remains)")
    #expect(run.failures.isEmpty && run.remains.unidentified == [])
  }

  /// The content comes before the name: what names another session is left for a person, although its name says this one.
  @Test func damagedBatchOfAnotherSessionStays() throws {
    _ = try scratch.directory("spool/quarantine")
    let path = try scratch.file(
      "spool/quarantine/walk@1.json", Array(#"{"version":1,"session":"other","frames":["#.utf8))
    let run = try delete(waitMs: 0)
    #expect(try #require(run.reports[id]).batches == [] && run.remains.unidentified == [path])
    #expect(DurableFile.exists(path))
  }
}
