import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions

/// A store that stops honouring conditions is noticed, and no other one is taken for such a store.
@Suite struct ConditionWatchTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let batches: [String]
  private let headKey: String
  private let session: SessionID
  private let clock = Clock()

  private final class Clock: Sendable {
    private let ms = Mutex(0)
    var now: Int { ms.withLock { $0 } }
    func advance(seconds: Int) { ms.withLock { $0 += 1_000 * seconds } }
  }

  /// A client whose store ignores conditions from some write on.
  private final class Forgetful: ObjectClient {
    private let objects: MemoryObjects
    private let left: Mutex<Int>

    var hasForgotten: Bool { left.withLock { $0 <= 0 } }

    init(_ objects: MemoryObjects, after writes: Int) {
      self.objects = objects
      left = Mutex(writes)
    }

    func get(_ key: String, limit: Int) throws -> StoredObject? { try objects.get(key, limit: limit) }
    func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
      try objects.download(key, to: path, limit: limit)
    }
    func head(_ key: String) throws -> ObjectInfo? { try objects.head(key) }
    func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws -> ObjectTag? {
      let holds = left.withLock { left in
        left -= 1
        return left >= 0
      }
      return try objects.put(key, body, kind, when: holds ? condition : .always)
    }
    func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
      try objects.copy(key, tag, to: target)
    }
    func delete(_ key: String, _ tag: ObjectTag?) throws { try objects.delete(key, tag) }
    func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] { try objects.list(prefix, after: key) }
  }

  init() throws {
    scratch = try ScratchDirectory()
    var generated = try GeneratedSession(seed: 1, in: scratch)
    for seed in 2...20 where generated.batches.count < 4 { generated = try GeneratedSession(seed: seed, in: scratch) }
    batches = generated.batches.sorted()
    headKey = "index/\(generated.name)/head.json"
    session = try #require(SessionID(generated.name))
    try #require(batches.count > 3)
  }

  /// A worker of its own.
  private func worker(_ client: (any ObjectClient)? = nil) throws -> BatchEncoder {
    let staging = try Staging(scratch: scratch.path("own"), worker: WorkerID())
    let store = ObjectStore(
      client ?? objects, name: "s3://test/", staging: staging, clock: { [clock] in clock.now })
    return BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
  }

  private func isNoticed(_ body: () throws -> Void) -> Bool {
    do {
      try body()
      return false
    } catch {
      // The failure ends the worker, and is none of the batch.
      return Disposition.endsWorker(error) && Disposition.mayHaveLost(error) && Disposition.isSystemWide(error)
        && Disposition(of: error, batch: "b") == .retry && "\(error)".contains("s3://test/")
    }
  }

  /// Two workers read the head, and the store takes the writes of both: the second one overwrites the batch of the first.
  @Test func lostPublicationIsNoticedWithTheNextReadOfTheHead() throws {
    // The limit lets the first batch be published as usual.
    let (one, two) = (try worker(), try worker())
    _ = try one.publish(batches[0])
    objects.isUnconditional = true
    objects.before { [objects, headKey, batches] key in
      guard key == headKey else { return }
      objects.before(nil)
      #expect((try? two.publish(batches[1])) != nil)
    }
    _ = try one.publish(batches[2])
    #expect(isNoticed { _ = try two.publish(batches[3]) })
    // And from then on, also for other sessions, whatever the store does now.
    objects.isUnconditional = false
    #expect(isNoticed { _ = try two.publish(batches[0]) })
    _ = try one.publish(batches[1])
    _ = try one.publish(batches[3])
  }

  /// The other worker writes between this one's write and its look at the head: the views find it.
  @Test func publicationThatIsOverwrittenAtOnceIsNoticedWithTheViews() throws {
    let (one, two) = (try worker(), try worker())
    _ = try one.publish(batches[0])
    objects.isUnconditional = true
    let stale = try #require(objects[headKey])
    let view = "output/\(session)/session.json"
    objects.before { [objects, headKey] key in
      guard key == view else { return }
      objects.before(nil)
      objects[headKey] = stale
    }
    #expect(isNoticed { _ = try two.publish(batches[1]) })
  }

  /// With a trial before each publication, none is made after the one in which the store has changed.
  @Test(arguments: Array(stride(from: 0, to: 60, by: 3))) func storeThatForgetsAtAnyWriteIsNoticed(writes: Int) throws {
    let client = Forgetful(objects, after: writes)
    let workers = try (0..<2).map { _ in try worker(client) }
    for (number, batch) in batches.prefix(4).enumerated() {
      clock.advance(seconds: 61)
      let hasForgotten = client.hasForgotten
      let isNoticed = isNoticed { _ = try workers[number % 2].publish(batch) }
      #expect(isNoticed || !hasForgotten, "batch \(number)")
      #expect(!isNoticed || client.hasForgotten, "batch \(number)")
    }
  }

  @Test func writesAreTriedOnceAMinuteWhileBatchesArePublished() throws {
    let tried = Mutex(0)
    objects.before { key in if key == ConditionWatch.key { tried.withLock { $0 += 1 } } }
    let worker = try worker()
    _ = try worker.publish(batches[0])
    #expect(tried.withLock { $0 } == 0)
    clock.advance(seconds: 60)
    _ = try worker.publish(batches[1])
    // The first one creates the object.
    #expect(tried.withLock { $0 } == 3)
    _ = try worker.publish(batches[2])
    #expect(tried.withLock { $0 } == 3)
    clock.advance(seconds: 600)
    // A batch that is published already is not published again.
    #expect(try worker.publish(batches[0]).duplicate && tried.withLock { $0 } == 3)
    _ = try worker.publish(batches[3])
    #expect(tried.withLock { $0 } == 5)
  }

  @Test func storeThatForgotIsNoticedBeforeThePublication() throws {
    let worker = try worker()
    _ = try worker.publish(batches[0])
    clock.advance(seconds: 60)
    _ = try worker.publish(batches[1])
    let head = objects[headKey]
    objects.isUnconditional = true
    clock.advance(seconds: 60)
    #expect(isNoticed { _ = try worker.publish(batches[2]) })
    #expect(objects[headKey] == head)
    #expect(isNoticed { _ = try worker.publish(batches[2]) })
  }

  @Test func lostAnswersAreNoAlarm() throws {
    for write in 0..<20 {
      for key in objects.keys { objects[key] = nil }
      let worker = try worker()
      for batch in batches.prefix(3) {
        clock.advance(seconds: 61)
        objects.loseAnswer(of: write)
        _ = try worker.publish(batch)
      }
    }
  }

  @Test func failedTrialIsRepeatedWithTheNextPublication() throws {
    let worker = try worker()
    _ = try worker.publish(batches[0])
    clock.advance(seconds: 60)
    objects.before { [objects] key in if key == ConditionWatch.key { objects.fail(from: 0) } }
    #expect { _ = try worker.publish(batches[1]) } throws: { MemoryObjects.isFailure($0) }
    objects.before(nil)
    objects.fail(from: nil)
    _ = try worker.publish(batches[1])
    #expect(objects[ConditionWatch.key] != nil)
  }

  /// The object of the trials, and a session, may be removed by hand; a session may be deleted and allowed again.
  @Test func removedObjectsAreNoAlarm() throws {
    let worker = try worker()
    _ = try worker.publish(batches[0])
    clock.advance(seconds: 60)
    _ = try worker.publish(batches[1])
    for key in objects.keys { objects[key] = nil }
    clock.advance(seconds: 60)
    _ = try worker.publish(batches[0])
    let deletion = ObjectDeletion(objects, name: "s3://test/")
    _ = try deletion.add(Tombstone(session, deletedAtMs: 1, reason: "test"))
    _ = try deletion.remove(session)
    #expect(!isNoticed { _ = try worker.publish(batches[1]) } && !objects.keys.contains { $0.hasPrefix("output/") })
    #expect(try deletion.removeTombstone(of: session))
    for batch in batches { _ = try worker.publish(batch) }
  }

  /// The beginning of a session may be in pages, or be removed.
  @Test func headThatBeginsLaterIsNoAlarm() throws {
    let worker = try worker()
    for batch in batches.prefix(2) { _ = try worker.publish(batch) }
    let head = try #require(objects[headKey])
    let index = try SessionIndex(JSONParser.parse(head), of: session)
    let known = ConditionWatch.Known(generation: nil, starts: index.entries.map(\.startMs))
    let watched = ObjectSession(id: session, objects: objects, name: "s3://test/")
    let published = try #require(try watched.published())
    #expect(known.lost(in: published, generation: nil) == nil)
    let starts = index.entries.map(\.startMs)
    for (others, lost) in [
      ([starts[0] - 5_000], nil), ([starts[0] + 1], starts[0] + 1), (starts + [.max], Int64.max), ([], nil),
    ] {
      let known = ConditionWatch.Known(generation: nil, starts: others)
      #expect(known.lost(in: published, generation: nil) == lost)
      #expect(known.lost(in: published, generation: "another") == nil)
    }
  }

  @Test func threadsOfOneWorkerAreNoAlarm() throws {
    let staging = try Staging(scratch: scratch.path("own"), worker: WorkerID())
    let store = ObjectStore(objects, name: "s3://test/", staging: staging, clock: { [clock] in clock.now })
    let failures = Mutex<[any Error]>([])
    let threads = ThreadGroup()
    for _ in 0..<4 {
      try threads.start { [batches] in
        let encoder = BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
        for batch in batches.shuffled() {
          do {
            _ = try encoder.publish(batch)
          } catch {
            failures.withLock { $0.append(error) }
          }
        }
      }
    }
    threads.join()
    let alarms = failures.withLock { $0 }.filter { Disposition.mayHaveLost($0) }
    #expect(alarms.isEmpty, "\(alarms)")
  }
}
