import FileSystem
import Foundation
import Logging
import Synchronization
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
    _ = try store.requestEnd(EndRequest(id, .request, awaitsAll: true))
    #expect(ender.pass(now: true) { try store.removeEndRequest($1) } == 1 && !ender.isWaiting)
    #expect(try store.endRequests().isEmpty && index(backend).complete)
  }

  private struct Look {
    /// Its files go with it.
    let backend: any StoreBackend
    let queue: ObjectQueue
    let batches = MemoryObjects()
    let store: any WorkerStore
    let log = CapturedLog()
    let ender: SessionEnder

    init(_ backend: any StoreBackend, in scratch: ScratchDirectory, quietMs: Int64? = nil, longMs: Int = 60_000) throws
    {
      self.backend = backend
      store = try #require(try backend.store() as? any WorkerStore)
      queue = ObjectQueue(
        MemoryNames(), batches, name: "s3://test/",
        staging: try Staging(scratch: scratch.path("batches"), worker: WorkerID()), worker: WorkerID(),
        maximumBytes: 1 << 20)
      ender = SessionEnder(store, queue, quietMs: quietMs, longMs: longMs, log.logger)
    }

    /// Returns the number of sessions that have ended.
    func pass() -> Int {
      ender.pass(now: true) {
        try store.removeEndRequest($1)
        ender.forget($0.end.session)
      }
    }
  }

  /// The log as text.
  private final class CapturedLog: Sendable {
    let lines = Mutex<[String]>([])

    struct Handler: LogHandler {
      let log: CapturedLog
      var metadata: Logger.Metadata = [:]
      var logLevel = Logger.Level.warning
      subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
      }
      func log(event: LogEvent) {
        log.lines.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") }
      }
    }

    var logger: Logger { Logger(label: "test") { [self] _ in Handler(log: self) } }
    func count(_ event: String) -> Int { lines.withLock { $0.count { $0.hasPrefix(event) } } }
  }

  /// A batch of another session that cannot be written stays in work.
  @Test(arguments: kinds) func endWaitsForTheBatchesOfItsSessionOnly(kind: StoreKind) throws {
    let look = try Look(kind.backend(), in: scratch)
    _ = try publish(session.batches[0], in: look.store)
    let other = try #require(SessionID("other"))
    (look.batches["incoming/stuck"], look.batches["incoming/own"]) = ([1], [1])
    _ = try look.store.requestEnd(EndRequest(id, .request, awaitsAll: true))
    #expect(look.pass() == 0 && look.ender.owed.count == 1)
    // Read by now.
    look.ender.note("stuck", of: [other])
    look.ender.note("own", of: [other, id])
    #expect(look.pass() == 0)
    look.ender.forget(batch: "own")
    look.batches["incoming/own"] = nil
    // Another batch may have the name of one that was read.
    look.ender.forget(batch: "stuck")
    #expect(look.pass() == 0)
    look.ender.note("stuck", of: [other])
    #expect(look.pass() == 1 && look.ender.owed.count == 0)
    #expect(try look.store.endRequests().isEmpty)
  }

  /// A queue that is never empty holds up no end.
  @Test(arguments: kinds) func endWaitsForNoBatchThatCameLater(kind: StoreKind) throws {
    let look = try Look(kind.backend(), in: scratch)
    _ = try publish(session.batches[0], in: look.store)
    look.batches["incoming/1"] = [1]
    _ = try look.store.requestEnd(EndRequest(id, .request, awaitsAll: true, requestedMs: 1))
    #expect(look.pass() == 0)
    look.batches["incoming/2"] = [1]
    #expect(look.pass() == 0)
    look.batches["incoming/1"] = nil
    // A newer request awaits what came before it.
    _ = try look.store.requestEnd(EndRequest(id, .request, awaitsAll: true, requestedMs: 2))
    #expect(look.pass() == 0)
    (look.batches["incoming/2"], look.batches["incoming/3"]) = (nil, [1])
    #expect(look.pass() == 1)
  }

  /// Hundreds of quiet sessions write no lists of thousands of batches, and a look lists the queue once.
  @Test func quietSessionsShareOneListOfTheQueue() throws {
    let look = try Look(StoreKind.directory.backend(), in: scratch, quietMs: 0)
    _ = try publish(session.batches[0], in: look.store)
    for number in 0..<1_500 { look.batches["incoming/\(number)"] = [1] }
    #expect(look.pass() == 0 && look.ender.isWaiting)
    #expect(try look.store.endRequests().isEmpty)
    for number in 0..<1_500 { look.batches["incoming/\(number)"] = nil }
    #expect(look.pass() == 1)
    let text = String(decoding: EndRequest(id, .request, awaitsAll: true).bytes, as: UTF8.self)
    #expect(text.utf8.count < 300 && text.contains(#""closing":true"#), "\(text)")
  }

  /// A request that is damaged, and sessions that nobody knows, hold up no others.
  @Test func requestsThatCannotBePerformedHoldUpNoOthers() throws {
    let look = try Look(StoreKind.directory.backend(), in: scratch)
    _ = try publish(session.batches[0], in: look.store)
    for number in 0..<250 {
      let unknown = try #require(SessionID("0-\(number)"))
      _ = try look.store.requestEnd(EndRequest(unknown, .request, awaitsAll: true))
    }
    _ = try look.store.requestEnd(EndRequest(id, .request, awaitsAll: true))
    let damaged = look.store.staging.output + "/.ending/0.json"
    try Data("{".utf8).write(to: URL(fileURLWithPath: damaged))
    #expect((0..<5).map { _ in look.pass() }.reduce(0, +) == 1)
    #expect(look.log.count("session.failed") == 1)
  }

  @Test(arguments: kinds) func endThatIsOwedForLongIsLoggedOnce(kind: StoreKind) throws {
    let look = try Look(kind.backend(), in: scratch, longMs: 0)
    _ = try publish(session.batches[0], in: look.store)
    look.batches["incoming/stuck"] = [1]
    _ = try look.store.requestEnd(EndRequest(id, .request, awaitsAll: true))
    for _ in 0..<3 { #expect(look.pass() == 0) }
    #expect(look.log.count("session.waiting") == 1)
    #expect(look.log.lines.withLock { $0.contains { $0.contains("stuck") && $0.contains(id.description) } })
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
