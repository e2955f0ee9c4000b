import FileSystem
import Foundation
import Logging
import TestSupport
import Testing

@testable import Deleting
@testable import Encoding
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions
@testable import WorkQueues

/// The promises of every store whose sessions end (`EndingStore`), each stated once.
@Suite struct EndContractTests {
  private static let kinds = StoreKind.allCases.filter(\.knowsEarlierBatches)

  private let scratch: ScratchDirectory
  private let session: GeneratedSession
  private let id: SessionID

  init() throws {
    scratch = try ScratchDirectory()
    session = try GeneratedSession(seed: 7, in: scratch)
    id = try #require(SessionID(session.name))
  }

  private func store(_ backend: any StoreBackend) throws -> any WorkerStore {
    try #require(try backend.store() as? any WorkerStore)
  }

  private func publish(_ batch: String, in store: any WorkerStore) throws -> Receipt {
    try BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache()).publish(batch)[0]
  }

  /// `session.json`, as far as these tests read it.
  private struct Index: Decodable, Equatable {
    let complete: Bool
    let frames: Int
    let endMs: Int64
  }

  private func index(_ backend: any StoreBackend) throws -> Index {
    let bytes = try #require(try backend.file("\(id)/session.json"))
    return try JSONDecoder().decode(Index.self, from: Data(bytes))
  }

  private func hasEndedPlaylist(_ backend: any StoreBackend) throws -> Bool {
    HLSPlaylist.hasEnded(try #require(try backend.file("\(id)/hls/session.m3u8")))
  }

  private func end(_ store: any WorkerStore, quietMs: Int64? = nil) throws -> EndOutcome {
    try store.end(id, .request, ifQuietForMs: quietMs, cancellation: .never)
  }

  @Test(arguments: kinds) func sessionEndsOnceAndALateBatchDoesNotReopenIt(kind: StoreKind) throws {
    let backend = try kind.backend()
    let (one, two) = (try store(backend), try store(backend))
    let batches = session.batches
    for batch in batches.dropLast() { _ = try publish(batch, in: one) }
    _ = one.flushPending(all: true)
    #expect(try !index(backend).complete && !hasEndedPlaylist(backend))
    #expect(try one.endRequests().isEmpty && one.takeEndRequest(of: id) == nil)

    #expect(try one.requestEnd(EndRequest(id, .request, awaiting: ["a", "b"])) == .requested)
    #expect(try two.endRequests() == [id])
    let held = try #require(try one.takeEndRequest(of: id))
    #expect(held.request.awaited == ["a", "b"] && held.request.cause == .request)
    guard case .ended(let ended) = try end(one) else { return #expect(Bool(false), "it has not ended") }
    let before = try index(backend)
    #expect(before.complete && before.endMs == ended.endMs && before.frames == ended.frames)
    #expect(try hasEndedPlaylist(backend))
    // The record stays, whoever ends it again.
    guard case .ended(let again) = try end(two) else { return #expect(Bool(false), "it has not ended") }
    #expect(again == ended)
    #expect(try two.requestEnd(EndRequest(id, .quiet)) == .alreadyEnded(ended.end))
    try one.removeEndRequest(held)
    #expect(try two.endRequests().isEmpty)

    #expect(try !publish(batches[batches.count - 1], in: two).duplicate)
    _ = two.flushPending(all: true)
    let after = try index(backend)
    #expect(after.complete && after.frames == session.frames.count && after.frames > before.frames)
    #expect(try hasEndedPlaylist(backend))
    #expect(try publish(batches[0], in: one).duplicate && index(backend) == after)
  }

  /// The disk is full between the record and the views.
  @Test(arguments: kinds) func endThatAFailureCutOffIsFinishedByTheNextRequest(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try store(backend)
    _ = try publish(session.batches[0], in: store)
    _ = store.flushPending(all: true)
    try backend.blockViews(true)
    #expect(try store.requestEnd(EndRequest(id, .request)) == .requested)
    #expect(throws: (any Error).self) { try end(store) }
    try backend.blockViews(false)
    #expect(try !hasEndedPlaylist(backend))
    #expect(try store.requestEnd(EndRequest(id, .request)) == .requested && store.endRequests() == [id])
    guard case .ended(let ended) = try end(store) else { return #expect(Bool(false), "it has not ended") }
    #expect(try index(backend).complete && hasEndedPlaylist(backend))
    #expect(try store.requestEnd(EndRequest(id, .request)) == .alreadyEnded(ended.end))
  }

  /// The views lack the last segments when the end is announced.
  @Test(arguments: kinds) func endOfASessionWithDeferredViewsHasAllFrames(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try store(backend)
    let batch = session.batches[session.batches.count - 1] + "/batch.json"
    let text = try String(contentsOfFile: batch, encoding: .utf8)
    try text.replacing("\"version\"", with: "\"final\": true, \"version\"")
      .write(toFile: batch, atomically: true, encoding: .utf8)
    for batch in session.batches { _ = try publish(batch, in: store) }
    guard case .ended(let ended) = try end(store) else { return #expect(Bool(false), "it has not ended") }
    #expect(ended.frames == session.frames.count && ended.end.cause == .final)
    #expect(try index(backend) == Index(complete: true, frames: ended.frames, endMs: ended.endMs))
  }

  @Test(arguments: kinds) func endHasTheTraceOfTheLastSegment(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try store(backend)
    var last: (startMs: Int64, trace: String) = (0, "")
    for (index, batch) in session.batches.enumerated() {
      let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-" + String(format: "%016x", index + 1) + "-01"
      let description = batch + "/batch.json"
      let text = try String(contentsOfFile: description, encoding: .utf8)
      try text.replacing("\"version\"", with: "\"traceparent\": \"\(trace)\", \"version\"")
        .write(toFile: description, atomically: true, encoding: .utf8)
      for segment in try publish(batch, in: store).published where segment.startMs > last.startMs {
        last = (segment.startMs, trace)
      }
    }
    guard case .ended(let ended) = try end(store) else { return #expect(Bool(false), "it has not ended") }
    #expect(ended.traceParent?.description == last.trace)
  }

  @Test(arguments: kinds) func finalBatchEndsItsSession(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try store(backend)
    let description = session.batches[0] + "/batch.json"
    let text = try String(contentsOfFile: description, encoding: .utf8)
    try text.replacing("\"version\"", with: "\"final\": true, \"version\"")
      .write(toFile: description, atomically: true, encoding: .utf8)
    _ = try publish(session.batches[0], in: store)
    _ = store.flushPending(all: true)
    #expect(try index(backend).complete && hasEndedPlaylist(backend))
    guard case .alreadyEnded(let end) = try store.requestEnd(EndRequest(id, .request)) else {
      return #expect(Bool(false), "it has not ended")
    }
    #expect(end.cause == .final && end.session == id)
    for batch in session.batches.dropFirst() { _ = try publish(batch, in: store) }
    _ = store.flushPending(all: true)
    #expect(try index(backend).complete && index(backend).frames == session.frames.count)
  }

  @Test(arguments: kinds) func requestIsTakenByOneAndANewerOneStays(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try store(backend)
    _ = try store.requestEnd(EndRequest(id, .request))
    let held = try #require(try store.takeEndRequest(of: id))
    if kind == .directory { #expect(try self.store(backend).takeEndRequest(of: id) == nil) }
    _ = try store.requestEnd(EndRequest(id, .request, awaiting: ["late"]))
    try store.removeEndRequest(held)
    #expect(try store.takeEndRequest(of: id)?.request.awaited == ["late"])
  }

  /// A request that waits stays free for any process, and a process can take its own request again.
  @Test(arguments: kinds) func requestThatWaitsIsNotTaken(kind: StoreKind) throws {
    let backend = try kind.backend()
    let (one, two) = (try store(backend), try store(backend))
    _ = try one.requestEnd(EndRequest(id, .request, awaiting: ["late"]))
    #expect(try one.takeEndRequest(of: id) { $0.awaited == ["late"] } == nil)
    for store in [one, two, one] { #expect(try store.takeEndRequest(of: id) { _ in false } != nil) }
  }

  /// A worker that looks too early ends the session at a later look.
  @Test(arguments: kinds) func sessionEndsOnceItsBatchesAreFinished(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try store(backend)
    _ = try publish(session.batches[0], in: store)
    let batches = MemoryObjects()
    let queue = ObjectQueue(
      MemoryNames(), batches, name: "s3://test/",
      staging: try Staging(scratch: scratch.path("batches"), worker: WorkerID()), worker: WorkerID(),
      maximumBytes: 1 << 20)
    let ender = SessionEnder(store, queue, quietMs: nil, Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    func pass() -> Int { ender.pass(now: true) { try store.removeEndRequest($1) } }
    batches["incoming/late"] = [1]
    _ = try store.requestEnd(EndRequest(id, .request, awaiting: ["late"]))
    for _ in 0..<2 { #expect(pass() == 0 && ender.isWaiting) }
    batches["incoming/late"] = nil
    #expect(pass() == 1 && !ender.isWaiting)
    #expect(try store.endRequests().isEmpty && index(backend).complete)
  }

  /// The batcher has made its batches, and they are finished, before a worker looks for the first time: a drain looks once.
  @Test(arguments: kinds) func requestBehindABatcherIsPerformedAtOnce(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try store(backend)
    _ = try publish(session.batches[0], in: store)
    let queue = ObjectQueue(
      MemoryNames(), MemoryObjects(), name: "s3://test/",
      staging: try Staging(scratch: scratch.path("batches"), worker: WorkerID()), worker: WorkerID(),
      maximumBytes: 1 << 20)
    let ender = SessionEnder(store, queue, quietMs: nil, Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    _ = try store.requestEnd(EndRequest(id, .request, isClosing: true))
    #expect(ender.pass(now: true) { try store.removeEndRequest($1) } == 1 && !ender.isWaiting)
    #expect(try store.endRequests().isEmpty && index(backend).complete)
  }

  @Test func objectOfARequestNamesTheProcessThatHasTakenIt() throws {
    let objects = MemoryObjects()
    let (one, two) = (EndRequestObjects(objects: objects, own: "one"), EndRequestObjects(objects: objects, own: "two"))
    try one.add(EndRequest(id, .request, awaiting: ["late"]))
    #expect(try one.take(id) { _ in true } == nil)
    #expect(try two.take(id) { _ in false } != nil)
    #expect(try one.take(id) { _ in false } == nil)
    #expect(try two.take(id) { _ in false } != nil)
    // The other process is probably dead.
    objects.age("ending/\(id)", seconds: 600)
    #expect(try one.take(id) { _ in false } != nil)
    #expect(try two.take(id) { _ in false } == nil)
  }

  @Test(arguments: kinds) func onlyPublishedAndQuietSessionsEnd(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try store(backend)
    #expect(try end(store) == .unknown)
    _ = try publish(session.batches[0], in: store)
    #expect(try end(store, quietMs: 3_600_000) == .goesOn)
    #expect(try store.quietSessions(forMs: 3_600_000).isEmpty)
    #expect(try store.quietSessions(forMs: 0) == [id])
    guard case .ended = try end(store, quietMs: 0) else { return #expect(Bool(false), "it has not ended") }
    #expect(try store.quietSessions(forMs: 0).isEmpty)
    // A worker that died before it told of the end tells of it later, when the session is not quiet any more.
    guard case .ended = try end(store, quietMs: 3_600_000) else { return #expect(Bool(false), "it has not ended") }
  }

  @Test(arguments: kinds) func deletedSessionDoesNotEnd(kind: StoreKind) throws {
    let backend = try kind.backend()
    let store = try store(backend)
    _ = try publish(session.batches[0], in: store)
    _ = try store.requestEnd(EndRequest(id, .request))
    let place = try #require(try backend.deletion)
    try place.delete([Tombstone(id, deletedAtMs: GeneratedSession.startMs, reason: "")]).end.get()
    #expect(throws: SessionDeleted.self) { try end(store) }
    #expect(try store.endRequests().isEmpty && store.quietSessions(forMs: 0).isEmpty)
  }
}
