import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Deleting
@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions
@testable import WorkQueues

/// Deletion of sessions in an output directory.
@Suite struct DeletionTests {
  private let scratch: ScratchDirectory
  private let output: String
  private let session: GeneratedSession
  private let id: SessionID

  init() throws {
    scratch = try ScratchDirectory()
    output = try scratch.directory("output")
    session = try GeneratedSession(seed: 7, in: scratch)
    id = try #require(SessionID(session.name))
  }

  private func encoder(hls: Bool = false) throws -> BatchEncoder {
    BatchEncoder(
      BatchEncoder.Options(), staging: try Staging(output: output, worker: WorkerID()),
      index: SessionViews(.on([(.hls, hls)])))
  }

  private func delete(_ id: SessionID, reason: String = "asked for") throws -> Deletion {
    let place = DirectoryDeletionPlace(output: output, spool: nil, BatchIdentifier(unpacker: nil))
    let run = place.delete([Tombstone(id, deletedAtMs: 1_767_859_512_340, reason: reason)])
    try run.end.get()
    return run
  }

  private var tombstones: SessionTombstones { SessionTombstones(output: output) }

  @Test func deletedSessionLeavesATombstoneAndNothingElse() throws {
    for batch in session.batches { _ = try encoder(hls: true).publish(batch) }
    let pictures = try PictureBytes(in: session.batches + [output])
    let segments = try names(in: output + "/\(id)").count { $0.hasSuffix(".mp4") }
    let run = try delete(id)
    #expect(run.failures.isEmpty && run.reports[id]?.session.segments == segments)
    #expect(try names(in: output).filter { $0 != ".staging" } == [".deleted"])
    #expect(try pictures.copies(below: output) == [])
    let there = try #require(try tombstones.tombstone(of: id))
    #expect(there == Tombstone(id, deletedAtMs: 1_767_859_512_340, reason: "asked for"))
    // A second run keeps the first tombstone.
    #expect(try delete(id, reason: "again").reports[id]?.tombstone == there)
    #expect(try names(in: output + "/.deleted") == ["\(id).json"])
  }

  @Test func laterBatchIsRefusedBeforeItIsDecoded() throws {
    _ = try delete(id)
    // Its frames are gone: a decoder would refuse them.
    for name in try names(in: session.batches[0]) where name.hasSuffix(".jpg") {
      try scratch.file("\(session.name)@0/\(name)", [])
    }
    let receipts = try encoder().publish(scratch.path("\(session.name)@0"))
    #expect(receipts.count == 1 && receipts[0].segments == 0 && receipts[0].session == id)
    #expect(receipts[0].refusal?.contains("was deleted at 2026-01-08T08:05:12.340Z") == true)
    #expect(!receipts[0].json.contains("startMs"))
    #expect(!DurableFile.exists(output + "/\(id)"))
  }

  @Test func otherSessionsOfABatchArePublished() throws {
    let batch = try scratch.directory("desk@1")
    for screen in ["1", "2"] {
      try scratch.file("desk@1/1767859512340_m\(screen).jpg", try Fixture("exact-1fps").bytes("0000.jpg"))
    }
    _ = try delete(try #require(SessionID("desk.m1")))
    let receipts = try encoder().publish(batch)
    #expect(receipts.map { $0.refusal == nil } == [false, true])
    #expect(try names(in: output).filter { !$0.hasPrefix(".") } == ["desk.m2"])
  }

  /// The session is deleted while its batch is encoded, and while another worker holds its lock.
  @Test func publicationAfterTheDeletionIsRefused() throws {
    let encoder = try encoder()
    for isThere in [false, true] {
      if isThere { _ = try encoder.publish(session.batches[0]) }
      var questions = 0
      let receipts = try encoder.publish(session.batches[1]) {
        questions += 1
        if questions == 2 { #expect(throws: Never.self) { try self.delete(self.id) } }
        return false
      }
      #expect(questions > 2 && receipts.map(\.segments) == [0])
      #expect(receipts[0].refusal != nil)
      #expect(try names(in: output).filter { $0 != ".staging" } == [".deleted"])
      #expect(try tombstones.remove(of: id))
    }
  }

  @Test func deletionWaitsForAPublicationThatHasTheLock() throws {
    let published = try #require(try? encoder().publish(session.batches[0]))
    #expect(published[0].segments > 0)
    let directory = SessionDirectory(output: output, session: id)
    var lock: SessionLock? = try directory.lock()
    let removed = Mutex<Int?>(nil)
    let deleting = ThreadGroup()
    try deleting.start {
      let segments = (try? self.delete(self.id))?.reports[self.id]?.session.segments ?? 0
      removed.withLock { $0 = segments }
    }
    // From the tombstone on it waits.
    while try tombstones.tombstone(of: id) == nil { usleep(1_000) }
    usleep(20_000)
    #expect(removed.withLock { $0 } == nil && DurableFile.exists(directory.path))
    withExtendedLifetime(lock) {}
    lock = nil
    deleting.join()
    #expect(!DurableFile.exists(directory.path))
    #expect(removed.withLock { $0 } ?? 0 > 0)
  }

  @Test func deferredViewsDoNotBringTheSessionBack() throws {
    let staging = try Staging(output: output, worker: WorkerID())
    let views = SessionViews(.hls)
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: views)
    for batch in session.batches.sorted() { _ = try encoder.publish(batch) }
    #expect(views.dueInMs != nil)
    _ = try delete(id)
    #expect(views.flushPending(staging, all: true).isEmpty && views.dueInMs == nil)
    staging.remove()
    #expect(try names(in: output).filter { $0 != ".staging" } == [".deleted"])
  }

  @Test func interruptedRemovalIsFinishedByTheNextRun() throws {
    _ = try encoder().publish(session.batches[0])
    _ = try SessionDirectory(output: output, session: id).hide()
    let other = try #require(SessionID(session.name + "-2"))
    rename(try encoderHidden(other), output + "/.pruned~\(other)~x~1~y")
    let run = try delete(id)
    #expect(run.reports[id]?.session.segments ?? 0 > 0)
    #expect(try names(in: output).filter { $0.hasPrefix(".pruned") } == [".pruned~\(other)~x~1~y"])
  }

  /// Returns a directory like one that another removal has hidden.
  private func encoderHidden(_ id: SessionID) throws -> String { try scratch.directory("output/hidden") }

  @Test func sessionThatIsAllowedAgainDuringTheWaitIsNotRemoved() throws {
    _ = try encoder().publish(session.batches[0])
    #expect(try SessionRemoval(output: output, cancellation: .never).remove(id) == RemovedSession())
    #expect(DurableFile.exists(output + "/\(id)"))
  }

  @Test func damagedTombstoneIsAFailureNotAPublication() throws {
    _ = try scratch.directory("output/.deleted")
    for text in ["", "{}", #"{"format":"session-tombstone/1","session":"other","deletedAtMs":1}"#, "[1"] {
      try scratch.file("output/.deleted/\(id).json", Array(text.utf8))
      let error = #expect(throws: DamagedOutput.self) { _ = try encoder().publish(session.batches[0]) }
      #expect(error.map { Disposition(of: $0, batch: "b") } == .retry)
    }
    unlink(output + "/.deleted/\(id).json")
    symlink("/dev/null", output + "/.deleted/\(id).json")
    #expect(throws: DamagedOutput.self) { _ = try encoder().publish(session.batches[0]) }
    #expect(!DurableFile.exists(output + "/\(id)"))
  }

  @Test func linkInPlaceOfTheTombstonesIsAFailure() throws {
    symlink(try scratch.directory("elsewhere"), output + "/.deleted")
    #expect(throws: DiskError.self) { _ = try encoder().publish(session.batches[0]) }
    #expect(throws: (any Error).self) { _ = try delete(id) }
    #expect(try names(in: scratch.path("elsewhere")) == [])
  }

  @Test func draftsOfDeadProcessesAreRemoved() throws {
    _ = try scratch.directory("output/.deleted")
    let dead = ".\(WorkerID.host)~99999999~x1"
    for name in [dead, ".elsewhere~1~x1"] { try scratch.file("output/.deleted/" + name, [1]) }
    _ = try delete(id)
    #expect(try names(in: output + "/.deleted") == [".elsewhere~1~x1", "\(id).json"])
    #expect(try tombstones.sessions() == [id])
  }

  @Test func reasonIsBounded() throws {
    let run = try delete(id, reason: String(repeating: "\u{1}é", count: 5_000))
    #expect(run.reports[id]?.tombstone.reason.utf8.count ?? 0 <= Tombstone.maximumReasonBytes)
    #expect(try tombstones.tombstone(of: id)?.reason.isEmpty == false)
  }
}
