import FileSystem
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Deleting
@testable import Encoding
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// The promises of every store (`ArtifactStore`), each stated once. The suites of the directory and the object store test what only
/// they do: views, failing requests, crashes.
@Suite struct StoreContractTests {
  private let scratch: ScratchDirectory
  private let session: GeneratedSession
  private let id: SessionID

  init() throws {
    scratch = try ScratchDirectory()
    session = try GeneratedSession(seed: 7, in: scratch)
    id = try #require(SessionID(session.name))
    #expect(session.batches.count > 2)
  }

  private func encoder(_ backend: any StoreBackend) throws -> BatchEncoder {
    BatchEncoder(BatchEncoder.Options(), publishingTo: try backend.store(), keyFrames: KeyFrameCache())
  }

  /// The segments of batches in a store of their own.
  private func expected(_ batches: [String], of kind: StoreKind) throws -> [String: [UInt8]] {
    let backend = try kind.backend()
    for batch in batches { _ = try encoder(backend).publish(batch) }
    return try backend.segments()
  }

  /// Returns a copy of a batch with other metadata.
  private func otherContent(of batch: String) throws -> String {
    let other = scratch.path("other@1")
    try FileManager.default.copyItem(atPath: batch, toPath: other)
    let text = try String(contentsOfFile: other + "/batch.json", encoding: .utf8)
    try text.replacing("\"version\"", with: "\"metadata\": {\"take\": 2}, \"version\"")
      .write(toFile: other + "/batch.json", atomically: true, encoding: .utf8)
    return other
  }

  // MARK: published once

  @Test func allStoresHaveTheSameSegments() throws {
    let all = try StoreKind.allCases.map { try expected(session.batches, of: $0) }
    #expect(all[0].count >= 2 * session.batches.count)
    for other in all.dropFirst() {
      #expect(other.keys.sorted() == all[0].keys.sorted())
      for (name, bytes) in all[0] { #expect(other[name] == bytes, "\(name)") }
    }
  }

  @Test(arguments: StoreKind.allCases) func repeatedBatchChangesNothing(kind: StoreKind) throws {
    let backend = try kind.backend()
    for batch in session.batches { #expect(try !encoder(backend).publish(batch).duplicate) }
    let before = try backend.segments()
    for batch in session.batches.reversed() {
      let receipt = try encoder(backend).publish(batch)
      #expect(receipt.duplicate == kind.knowsEarlierBatches)
    }
    #expect(try backend.segments() == before)
  }

  @Test(arguments: StoreKind.allCases) func batchThatWorkersPublishAtOnceIsPublishedOnce(kind: StoreKind) throws {
    let backend = try kind.backend()
    let batch = session.batches[0]
    let receipts = Mutex<[Bool]>([])
    let failures = Mutex<[String]>([])
    let threads = ThreadGroup()
    for _ in 0..<4 {
      let encoder = try encoder(backend)
      try threads.start {
        do {
          let isDuplicate = try encoder.publish(batch).duplicate
          receipts.withLock { $0.append(isDuplicate) }
        } catch { failures.withLock { $0.append("\(error)") } }
      }
    }
    threads.join()
    #expect(failures.withLock { $0 } == [])
    if kind.knowsEarlierBatches { #expect(receipts.withLock { $0.count { !$0 } } == 1) }
    #expect(try backend.segments() == expected([batch], of: kind))
  }

  @Test(arguments: StoreKind.allCases.filter(\.knowsEarlierBatches))
  func otherContentForPublishedTimeIsRefused(kind: StoreKind) throws {
    let backend = try kind.backend()
    _ = try encoder(backend).publish(session.batches[0])
    let before = try backend.segments()
    let other = try otherContent(of: session.batches[0])
    let error = #expect(throws: BadBatch.self) { try encoder(backend).publish(other) }
    #expect(error?.cause.contains("overlaps") == true)
    #expect(try backend.segments() == before)
  }

  @Test(arguments: StoreKind.allCases) func publicationIsStoppedAtAnyQuestionAndRetried(kind: StoreKind) throws {
    let batch = try scratch.directory("short@1")
    for (timeMs, name) in [(1_767_859_512_000, "0000"), (1_767_859_513_000, "0001")] {
      try scratch.file("short@1/\(timeMs).jpg", try Fixture("exact-1fps").bytes("\(name).jpg"))
    }
    let whole = try expected([batch], of: kind)
    var question = 0
    var isStopped = true
    while isStopped {
      let backend = try kind.backend()
      var asked = 0
      do {
        _ = try encoder(backend).publish(batch) {
          asked += 1
          return asked > question
        }
        isStopped = false
      } catch is Cancelled {}
      // All or nothing, and a retry finds out which.
      let left = try backend.segments()
      #expect(left.isEmpty || left == whole, "question \(question)")
      let receipt = try encoder(backend).publish(batch)
      if left.isEmpty { #expect(!receipt.duplicate, "question \(question)") }
      #expect(try backend.segments() == whole, "question \(question)")
      question += 1
    }
    #expect(question > 3)
  }

  // MARK: rolled back, deleted

  @Test(arguments: StoreKind.allCases) func rollingBackFindsWhatIsPublished(kind: StoreKind) throws {
    let backend = try kind.backend()
    let encoder = try encoder(backend)
    func rollBack() throws -> [Receipt] {
      try encoder.rollBack(encoder.read(session.batches[0]), cancellation: .never)
    }
    #expect(try rollBack().isEmpty)
    _ = try encoder.publish(session.batches[0])
    let whole = try backend.segments()
    let receipts = try rollBack()
    #expect(receipts.map(\.duplicate) == (kind.knowsEarlierBatches ? [true] : []))
    #expect(try backend.segments() == whole)
  }

  @Test(arguments: StoreKind.allCases.filter(\.knowsEarlierBatches))
  func deletedSessionIsRefusedUntilItIsAllowedAgain(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try backend.store()
    let place = try #require(try backend.deletion)
    _ = try encoder(backend).publish(session.batches[0])
    let whole = try backend.segments()
    #expect(try store.tombstone(of: id) == nil)
    let tombstone = Tombstone(id, deletedAtMs: GeneratedSession.startMs, reason: "asked for")
    let deletion = place.delete([tombstone])
    try deletion.end.get()
    #expect(deletion.failures.isEmpty)
    #expect(try store.hasTombstones() && store.tombstone(of: id) == tombstone && backend.segments().isEmpty)
    for batch in session.batches {
      let receipts = try encoder(backend).publish(batch)
      #expect(receipts.count == 1 && receipts[0].segments == 0)
      #expect(receipts[0].refusal?.contains("was deleted at 2026-01-08T08:05:12.340Z") == true)
    }
    #expect(
      try encoder(backend).rollBack(encoder(backend).read(session.batches[0]), cancellation: .never)
        .allSatisfy { $0.refusal != nil })
    #expect(try backend.segments().isEmpty)
    #expect(try place.removeTombstone(of: id))
    #expect(try !place.removeTombstone(of: id))
    #expect(try !encoder(backend).publish(session.batches[0]).duplicate)
    #expect(try backend.segments() == whole)
  }
}
