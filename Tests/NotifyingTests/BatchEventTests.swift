import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import Notifying
@testable import SegmentEncoder
@testable import Sessions
@testable import WorkQueues

/// The events of batches, and the order of their delivery.
@Suite struct BatchEventTests {
  private func receipt(
    _ digest: String, session: String = "s", segments: Int = 1, duplicate: Bool = false
  ) throws -> Receipt {
    let source = try BatchSessions(
      reading: Fixture("single-frame").path, options: InputOptions(session: session), limits: Limits()
    ).readers[0].batch
    let all = (0..<segments).map {
      PublishedSegment.made(Int64($0) * 5_000, Int64($0 + 1) * 5_000, batch: digest, parts: segments, gapAfterMs: 7)
    }
    return Receipt(all, of: source, refused: [], duplicate: duplicate, warnings: [])
  }

  @Test func keyIsThatOfTheContentAndOfTheName() throws {
    let first = BatchEvent(batch: "b", [try receipt("x"), try receipt("y")])
    let again = BatchEvent(batch: "b", [try receipt("x", duplicate: true), try receipt("y", duplicate: true)])
    #expect(first.outcome == .published && again.outcome == .duplicate && first.key == again.key)
    let half = BatchEvent(batch: "b", [try receipt("x", duplicate: true), try receipt("y")])
    #expect(half.outcome == .published && half.key == first.key)
    let others = [
      BatchEvent(batch: "c", [try receipt("x"), try receipt("y")]), BatchEvent(batch: "b", [try receipt("x")]),
      BatchEvent(batch: "b", [try receipt("y"), try receipt("x")]), BatchEvent(batch: "b", [try receipt("xy")]),
      BatchEvent(batch: "b", BadBatch("read", "f", "cause", advice: "a")),
      BatchEvent(batch: "b", BadBatch("read", "f", "other", advice: "a")),
    ]
    #expect(Set(others.map(\.key) + [first.key]).count == others.count + 1)
    let reason = BadBatch("read", "f", "cause", advice: "other advice")
    #expect(BatchEvent(batch: "b", reason, timeMs: 7).key == others[4].key)
  }

  @Test func eventOfAVeryLongBatchIsBounded() throws {
    let event = BatchEvent(batch: "b", [try receipt("x", segments: 900), try receipt("y", segments: 900)])
    let sessions = try #require(try JSONParser.parse(Array(event.line.utf8)).object?["sessions"]?.array)
    #expect(sessions.map { $0.object?["segments"]?.array?.count } == [900, 100])
    #expect(sessions.map { $0.object?["segmentCount"]?.integer } == [900, 900])
    let gap = sessions[0].object?["gaps"]?.array?.first
    #expect(gap == .object(["startMs": .number(5_000), "endMs": .number(5_007)]))
    let refused = (0..<1_500).map { RefusedFrame(source: "\($0)", reason: "why") }
    var many = [try receipt("x"), try receipt("y")]
    for index in many.indices { many[index].refused = refused }
    let lists = try JSONParser.parse(Array(BatchEvent(batch: "b", many).line.utf8)).object?["sessions"]?.array ?? []
    #expect(lists.map { $0.object?["refused"]?.array?.count } == [1_000, 0])
    #expect(lists.map { $0.object?["refusedCount"]?.integer } == [1_500, 1_500])
    #expect(try JSONSchema("docs/event.schema.json").faults(of: event.line).filter { !$0.contains("not like") } == [])
  }

  @Test func refusedEventIsKeptAsItWasSent() throws {
    let scratch = try ScratchDirectory()
    let event = BatchEvent(batch: "é\n\u{1B}/\\\"", BadBatch("read", "f", "cause", advice: "a"))
    let objects = MemoryObjects()
    let stores: [RefusedNotifications] = [
      RefusedNotifications(spool: try Spool(creating: scratch.path("spool")).path),
      RefusedNotifications(in: objects, name: "s3://test/"),
    ]
    _ = try scratch.directory("spool/notifications")
    try scratch.file("spool/notifications/foreign.json", [1])
    try scratch.file("spool/notifications/" + String(repeating: "a", count: 64) + ".json", [1])
    objects["notifications/foreign.json"] = [1]
    for store in stores {
      for cause in ["first", "second"] {
        try store.add(RefusedNotification(key: event.key, event: event.line, cause: cause))
      }
      let kept = try store.all()
      #expect(kept.map(\.event) == [event.line] && kept.map(\.cause) == ["second"] && kept.map(\.key) == [event.key])
      #expect(kept[0].text("event") == "batch.quarantined")
      for name in ["../incoming", "foreign", String(repeating: "b", count: 64)] {
        #expect(throws: Failure.self) { try store.notification(name) }
      }
      for _ in 0..<2 { try store.remove(event.key) }
      #expect(try store.all().isEmpty)
    }
  }

  @Test func eventInTheFileOfAnotherKeyIsIgnored() throws {
    let scratch = try ScratchDirectory()
    let objects = MemoryObjects()
    let (key, other) = (String(repeating: "a", count: 64), String(repeating: "b", count: 64))
    let spool = RefusedNotifications(spool: try Spool(creating: scratch.path("spool")).path)
    let stores: [RefusedNotifications] = [spool, RefusedNotifications(in: objects, name: "s3://test/")]
    for store in stores { try store.add(RefusedNotification(key: key, event: "{}", cause: "c")) }
    let bytes = try #require(objects["notifications/\(key).json"])
    try scratch.file("spool/notifications/\(other).json", bytes)
    objects["notifications/\(other).json"] = bytes
    for store in stores {
      #expect(try store.all().map(\.key) == [key])
      #expect(throws: Failure.self) { try store.notification(other) }
    }
  }

  @Test func attemptsOfAWaitingBatchAreForgiven() throws {
    let scratch = try ScratchDirectory()
    let spool = try Spool(creating: scratch.path("spool"))
    try scratch.file("spool/incoming/a", [1])
    var claims: [Int] = []
    for _ in 0..<9 {
      let queue = try SpoolQueue(spool, worker: WorkerID(), elsewhere: HeartbeatMonitor(lease: 60))
      let recovered = try queue.takeOver().claims.first.flatMap { try queue.begin($0) }
      let claim = try recovered ?? #require(try queue.waiting().first.flatMap { try queue.claim($0) })
      claims.append(claim.attempt)
      #expect(try queue.forgive(claim).attempt == 1)
      // The queue's end frees the lock of its directory, as the death of a worker does.
    }
    #expect(claims == [1] + Array(repeating: 2, count: 8))
  }
}
