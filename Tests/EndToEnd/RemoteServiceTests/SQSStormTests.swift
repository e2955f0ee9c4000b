import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import Remote

/// Workers with a queue of SQS are killed, the server is frozen, answers and leases get lost, and each batch is named several times, by
/// names and by notifications. No batch is lost, none is published twice, and none is retired before its event.
@Suite(.enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct SQSStormTests {
  private let store: StoreServer
  private let queue: MessageQueue
  private let client: S3Client
  private let receiver: ReceiverServer
  private let scratch: ScratchDirectory
  private let place: S3Location

  init() throws {
    // The test freezes the server, so it is its own.
    (store, scratch, receiver) = (try StoreServer(), try ScratchDirectory(), try ReceiverServer())
    queue = try MessageQueue(store)
    place = try S3Location("s3://\(StoreServer.bucket)/storm")
    let environment = store.environment
    client = try S3Client(place, S3Settings(environment: { environment[$0] }))
  }

  private var environment: [String: String] { store.environment.merging(["TMPDIR": scratch.path("")]) { $1 } }
  private var remote: [String] { ["--queue", queue.address, "--store", "\(place)"] }

  private func start() throws -> RunningWorker {
    try RunningWorker(
      ["run"] + remote + ["--lease", "10", "--jobs", "1", "--notify", receiver.url], environment: environment)
  }

  private func keys(_ prefix: String) throws -> [String] {
    var all: [String] = []
    while case let page = try client.list(prefix, after: all.last), !page.isEmpty { all += page.map(\.key) }
    return all.map { String($0.dropFirst(prefix.count)) }
  }

  private static func name(_ number: Int) -> String { "s\(number % 20)@\(number).tar" }

  /// Every nineteenth batch is invalid.
  private static func isBad(_ number: Int) -> Bool { number % 19 == 7 }

  /// Uploads batches of two pictures, adds them to a spool, too, and queues the names of most of them.
  private func submit(_ count: Int, to spool: TestSpool) throws {
    let pictures = try (0..<6).map { try Fixture("exact-1fps").bytes("000\($0).jpg") }
    for number in 0..<count {
      let startMs = 1_767_859_512_340 + Int64(number / 20) * 2_000
      let bytes =
        Self.isBad(number)
        ? Array("no batch at all: \(number)".utf8)
        : try Archive.tar(
          (0..<2).map { ("\(startMs + Int64($0) * 1_000).jpg", pictures[(number + $0) % pictures.count]) })
      try spool.add(file: Self.name(number), bytes)
      #expect(try client.put("incoming/" + Self.name(number), .bytes(bytes), .archive, when: .absent) != nil)
    }
    let result = try Tool.run(EncoderWorker.path, ["reconcile", "--json"] + remote, environment: environment)
    #expect(
      result.text == "{\"misnamed\":0,\"owed\":\(count),\"queued\":\(count)}\n", "\(result.errors)")
    for number in 0..<count where number % 3 == 0 { try notify(of: [number]) }
    try notify(of: Array(0..<min(count, 15)))
  }

  /// Sends the notification of the store once more.
  private func notify(of numbers: [Int]) throws {
    let records = numbers.map { number in
      JSONValue.object([
        "eventSource": .string("aws:s3"), "eventName": .string("ObjectCreated:Put"),
        "s3": .object([
          "bucket": .object(["name": .string(StoreServer.bucket)]),
          "object": .object(["key": .string("storm/incoming/" + PercentEncoding.encoded(Self.name(number)))]),
        ]),
      ])
    }
    try queue.send(body: JSONValue.object(["Records": .array(records)]).line)
  }

  /// Checks that the event of each batch with a receipt is delivered, and has one key.
  private func expectNotified() throws {
    // Read the log after the receipts.
    let finished = try Set(keys("receipts/").compactMap { $0.split(separator: "/").first.map(String.init) })
    let events = try receiver.events()
    #expect(finished.subtracting(events.map(\.batch)).sorted() == [])
    #expect(Dictionary(grouping: events, by: \.batch).allSatisfy { Set($0.value.map(\.key)).count == 1 })
  }

  /// Does one thing of those that happen to a service.
  private func disturb(_ number: Int, _ workers: inout [RunningWorker]) throws {
    switch number % 5 {
    case 0: try queue.loseVisibility()
    case 1: try queue.loseAnswers(20)
    case 2:
      // Longer than the lease.
      store.freeze()
      usleep(12_000_000)
      store.thaw()
    case 3:
      receiver.kill()
      usleep(200_000)
      try receiver.restart()
    default:
      guard let index = workers.indices.filter({ workers[$0].isRunning }).randomElement() else { return }
      workers[index].signal(SIGKILL)
      _ = try workers[index].wait()
      workers[index] = try start()
    }
  }

  /// Waits until no more than so many batches are left.
  private func wait(for left: Int, _ workers: inout [RunningWorker]) throws {
    try waitUntil("\(left) batches are left", pauseMs: 20) {
      // A worker that cannot reach the queue at its start exits, so that its service manager restarts it.
      for index in workers.indices where !workers[index].isRunning {
        #expect(try workers[index].wait() == 75)
        workers[index] = try start()
      }
      // A worker that is killed at its start leaves the objects of its conditional-write probe.
      return try keys("incoming/").count { !$0.hasPrefix(".") } <= left
    }
  }

  @Test func noBatchIsLostOrPublishedTwice() throws {
    let count = Extent.of(60, full: 2_000)
    let spool = try TestSpool()
    try submit(count, to: spool)
    #expect(try spool.drain().status == 65)
    var workers = try (0..<4).map { _ in try start() }
    let disturbances = Extent.of(10, full: 40)
    for number in 0..<disturbances {
      try wait(for: count - count * (number + 1) / (disturbances + 2), &workers)
      try expectNotified()
      try disturb(number, &workers)
    }
    try wait(for: 0, &workers)
    // Names that came again, and messages whose worker was killed.
    try waitUntil("the queue is empty", pauseMs: 100) { try queue.counts() == (0, 0) }
    for worker in workers where worker.isRunning {
      try waitUntil("the worker handles signals") { try worker.takesSignals }
      worker.signal(SIGTERM)
      #expect(try worker.wait() == 0)
    }
    let bad = (0..<count).filter(Self.isBad).map(Self.name)
    #expect(try keys("receipts/").count == count)
    #expect(try keys("quarantine/").sorted() == (bad + bad.map { $0 + ".reason.json" }).sorted())
    try expectNotified()
    try expectSame(spool)
  }

  /// Checks that the objects in the store equal the files of the spool, byte for byte. `verify` has checked the files:
  /// Tool.run calls it after each run.
  private func expectSame(_ spool: TestSpool) throws {
    var files: [String] = []
    for case let name as String in try #require(FileManager.default.enumerator(atPath: spool.output)) {
      if !name.hasPrefix("."), DurableFile.isFile(spool.output + "/" + name) { files.append(name) }
    }
    #expect(try keys("output/") == files.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    for name in files {
      let there = try client.get("output/" + name, limit: 1 << 30)
      #expect(try there?.bytes == DurableFile.contents(of: spool.output + "/" + name, limit: .max), "\(name)")
    }
  }
}
