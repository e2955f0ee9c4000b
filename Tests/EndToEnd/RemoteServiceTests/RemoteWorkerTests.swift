import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import Remote

/// Tests workers that read batch names from a queue and objects from a store, as in production.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct RemoteWorkerTests {
  private let queue: QueueServer
  private let store: StoreServer
  private let scratch: ScratchDirectory
  private let client: S3Client
  private let receiver: ReceiverServer
  /// A prefix for this test only.
  private let location = "s3://\(StoreServer.bucket)/\(UUID().uuidString)"

  init() throws {
    (queue, store, scratch) = (try QueueServer(), try StoreServer.shared.get(), try ScratchDirectory())
    receiver = try ReceiverServer()
    let environment = store.environment
    client = try S3Client(S3Location(location), S3Settings { environment[$0] })
  }

  private var environment: [String: String] { store.environment.merging(["TMPDIR": scratch.path("")]) { $1 } }

  private var remote: [String] { ["--queue", queue.url, "--store", location] }

  private func run(_ words: [String], _ others: [String: String] = [:]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words + remote, environment: environment.merging(others) { $1 })
  }

  private func start(_ words: String...) throws -> RunningWorker {
    try RunningWorker(["run"] + remote + words, environment: environment)
  }

  /// Returns all keys under a prefix, without the prefix.
  private func keys(_ prefix: String) throws -> [String] {
    var all: [String] = []
    while case let page = try client.list(prefix, after: all.last), !page.isEmpty { all += page.map(\.key) }
    return all.map { String($0.dropFirst(prefix.count)) }
  }

  /// Returns the names of the invalid batches: every nineteenth.
  private func badNames(_ numbers: Range<Int>) -> [String] {
    numbers.filter { $0 % 19 == 7 }.map { "s\($0 % 20)@\($0).tar" }
  }

  /// Uploads batches of two pictures, and some invalid ones, and adds the same batches to a spool.
  private func submit(_ numbers: Range<Int>, to spool: TestSpool) throws {
    let bad = badNames(numbers)
    let pictures = try (0..<6).map { number in
      Array(try Data(contentsOf: URL(fileURLWithPath: Fixture("exact-1fps").path + "/000\(number).jpg")))
    }
    for number in numbers {
      let name = "s\(number % 20)@\(number).tar"
      let startMs = 1_767_859_512_340 + Int64(number / 20) * 2_000
      let bytes: [UInt8]
      if bad.contains(name) {
        bytes = Array("no batch at all: \(number)".utf8)
      } else {
        bytes = try Archive.tar(
          (0..<2).map { ("\(startMs + Int64($0) * 1_000).jpg", pictures[(number + $0) % pictures.count]) })
      }
      try spool.add(file: name, bytes)
      #expect(try client.put("incoming/" + name, .bytes(bytes), .archive, when: .absent) != nil)
    }
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

  /// Runs four workers until no batch is left. Kills a worker or Redis each time that a share of the batches is done.
  ///
  /// - Parameter midway: called once, when half of the batches are done.
  private func storm(kills maximum: Int, midway: () throws -> Void = {}) throws {
    func worker() throws -> RunningWorker {
      try start("--lease", "10", "--jobs", "1", "--notify", receiver.url)
    }
    var workers = try (0..<4).map { _ in try worker() }
    // A worker that is killed at its start leaves the objects of its conditional-write probe.
    func owedCount() throws -> Int { try keys("incoming/").count { !$0.hasPrefix(".") } }
    let owed = try owedCount()
    var (kills, isMidway, orphans) = (0, false, Set<String>())
    try waitUntil("the four workers have done all batches", pauseMs: 5) {
      let left = try owedCount()
      if left == 0 { return true }
      // A worker that cannot reach the queue at its start exits, so that its service manager restarts it.
      for index in workers.indices where !workers[index].isRunning {
        #expect(try workers[index].wait() == 75)
        workers[index] = try worker()
      }
      if !isMidway, left < owed / 2 {
        isMidway = true
        try midway()
      }
      guard kills < maximum, left <= owed - owed * (kills + 1) / (maximum + 2) else { return false }
      // Waits a random time, so that the kill hits any step of the work on a batch.
      usleep(UInt32.random(in: 0..<20_000))
      try expectNotified()
      if kills % 3 == 0 {
        queue.kill()
        receiver.kill()
        usleep(200_000)
        try queue.restart()
        try receiver.restart()
      } else {
        guard let index = try killHolder(among: workers, orphans: &orphans) else { return false }
        workers[index] = try worker()
      }
      kills += 1
      return false
    }
    #expect(kills > 2 && isMidway)
    // A worker may have died after the receipt and before the queue's acknowledgement.
    try waitUntil("the queue is empty", pauseMs: 100) { try queue.command("XLEN", "encoder-worker") == ["0"] }
    for worker in workers where worker.isRunning {
      // Until a worker has installed its signal handling, a signal kills it.
      try waitUntil("the worker handles signals") { try takesSignals(worker.processIdentifier) }
      worker.signal(SIGTERM)
      #expect(try worker.wait() == 0)
    }
  }

  /// Checks that the event of each batch with a receipt is delivered, and has one key.
  private func expectNotified() throws {
    // Read the log after the receipts.
    let finished = try Set(keys("receipts/").compactMap { $0.split(separator: "/").first.map(String.init) })
    let events = try receiver.events()
    #expect(finished.subtracting(events.map(\.batch)).sorted() == [])
    #expect(Dictionary(grouping: events, by: \.batch).allSatisfy { Set($0.value.map(\.key)).count == 1 })
  }

  /// Returns the events in the stream.
  private func streamed() throws -> [ReceiverServer.Event] {
    // Five lines an entry: its ID, and two fields with their values.
    let lines = try queue.command("XRANGE", "{encoder-worker}:published", "-", "+")
    return try stride(from: 0, to: lines.count - 4, by: 5).map {
      #expect(lines[$0 + 1] == "key" && lines[$0 + 3] == "event")
      let event = try JSONDecoder().decode(ReceiverServer.Event.self, from: Data(lines[$0 + 4].utf8))
      #expect(event.key == lines[$0 + 2])
      return event
    }
  }

  /// Whether a process handles SIGTERM: the worker blocks it, to read it from a descriptor.
  private func takesSignals(_ process: Int32) throws -> Bool {
    let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    let blocked = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") }?.split(separator: "\t").last
    return blocked.flatMap { UInt64($0, radix: 16) }.map { $0 & 1 << UInt64(SIGTERM - 1) != 0 } ?? false
  }

  /// Kills a worker that holds a batch. The batch is unfinished until its lease expires and another worker takes it
  /// over.
  ///
  /// - Parameter orphans: entries whose worker was killed. They are skipped: three deaths would quarantine a good
  ///   batch.
  /// - Returns: the killed worker; nil if no worker holds another batch now.
  private func killHolder(among workers: [RunningWorker], orphans: inout Set<String>) throws -> Int? {
    for index in workers.indices.shuffled() where workers[index].isRunning {
      let worker = workers[index]
      worker.signal(SIGSTOP)
      // Four lines an entry: its id, its worker as HOST~PROCESS~MOMENT, idle time, deliveries.
      let lines = try queue.command("XPENDING", "encoder-worker", "encoder-worker", "-", "+", "100")
      let held = stride(from: 0, to: lines.count - 3, by: 4)
        .filter { lines[$0 + 1].contains("~\(worker.processIdentifier)~") }.map { lines[$0] }
      guard !held.isEmpty, orphans.isDisjoint(with: held) else {
        worker.signal(SIGCONT)
        continue
      }
      worker.signal(SIGKILL)
      _ = try worker.wait()
      orphans.formUnion(held)
      return index
    }
    return nil
  }

  /// Checks that each batch is published or quarantined with a reason, once, and as in the spool.
  private func expectAll(_ count: Int, _ spool: TestSpool) throws {
    let bad = badNames(0..<count)
    #expect(try keys("receipts/").count == count)
    let kept = try keys("quarantine/")
    #expect(kept.sorted() == (bad + bad.map { $0 + ".reason.json" }).sorted())
    try expectSame(spool)
    #expect(try run(["reconcile", "--json"]).text == "{\"misnamed\":0,\"owed\":0,\"queued\":0}\n")
  }

  @Test func noBatchIsLostWhenWorkersOrRedisAreKilled() throws {
    let spool = try TestSpool()
    let (first, all) = (Extent.of(60, full: 1_800), Extent.of(90, full: 2_000))
    let bad = badNames(0..<first)
    try submit(0..<first, to: spool)
    #expect(try spool.drain().status == 65)
    let queued = try run(["reconcile", "--json"])
    #expect(queued.text == "{\"misnamed\":0,\"owed\":\(first),\"queued\":\(first)}\n", "\(queued.errors)")
    try storm(kills: Extent.of(6, full: 24))
    try expectAll(first, spool)
    try expectNotified()
    // Redis is told of each batch, too.
    let events = try streamed()
    #expect(Set(events.map(\.batch)).count == first)
    #expect(Set(events.map(\.key)) == Set(try receiver.events().map(\.key)))
    // Each invalid batch is among the dead letters, once.
    let letters = try queue.command("XRANGE", "{encoder-worker}:dead", "-", "+")
    for name in bad { #expect(letters.count { $0 == name } == 1, "\(name)") }
    #expect(try queue.command("XLEN", "{encoder-worker}:dead") == ["\(bad.count)"])

    // Then Redis loses all data in the middle of the work. The store still has all unfinished batches.
    try submit(first..<all, to: spool)
    #expect(try spool.drain().status == 65)
    _ = try run(["reconcile"])
    try storm(kills: 4) {
      try queue.flush()
      let again = try run(["reconcile"])
      #expect(again.status == 0, "\(again.errors)")
    }
    try expectAll(all, spool)
    try expectNotified()
  }

  @Test func eventIsDeliveredBeforeTheReceipt() throws {
    receiver.answer(["hold": true])
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    #expect(try client.put("incoming/bad", .bytes([1, 2, 3]), .archive, when: .absent) != nil)
    _ = try run(["reconcile"])
    let worker = try start("--notify", receiver.url, "--jobs", "1")
    try waitUntil("both events have arrived") { try receiver.log().count == 2 }
    #expect(try keys("receipts/").isEmpty && keys("quarantine/").isEmpty && keys("incoming/").count == 2)
    #expect(try Set(streamed().map(\.event)) == ["batch.published", "batch.quarantined"])
    receiver.answer([:])
    try waitUntil("both batches have a receipt") { try keys("receipts/").count == 2 }
    try waitUntil("the queue is empty") { try queue.command("XLEN", "encoder-worker") == ["0"] }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try Set(streamed().map(\.key)) == Set(receiver.events().map(\.key)) && streamed().count == 2)
  }

  @Test func refusedEventIsKeptInTheStore() throws {
    receiver.answer(["status": 410])
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    let result = try run(["run", "--drain", "--notify", receiver.url])
    #expect(result.status == 0 && result.errors.contains("notification.refused"), "\(result.errors)")
    #expect(try keys("receipts/").count == 1 && keys("incoming/").isEmpty)
    let key = try #require(receiver.log().last).event.key
    #expect(try keys("notifications/") == [key + ".json"])
    func notify(_ words: String...) throws -> Tool.Result {
      try Tool.run(EncoderWorker.path, ["notify"] + words + ["--store", location], environment: environment)
    }
    #expect(try notify("list").text.contains(key))
    receiver.answer([:])
    let retried = try notify("retry", "--all", "--notify", receiver.url)
    #expect(retried.status == 0, "\(retried.errors)")
    #expect(try keys("notifications/").isEmpty && receiver.events().map(\.key) == [key])
  }

  @Test func enqueuedFramesArePublishedAsASession() throws {
    let queued = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    #expect(queued.status == 0 && queued.text.hasPrefix("phone@"), "\(queued.errors)")
    let done = try run(["run", "--drain", "--hls", "--keep-batches", "--log-format", "json"])
    #expect(done.status == 0 && done.errors.contains("1 batch published"), "\(done.errors)")
    #expect(try keys("output/phone/").contains("hls/session.m3u8"))
    #expect(try keys("done/").count == 1 && keys("incoming/").isEmpty)
    // The worker does not encode a batch that is enqueued again.
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    let again = try run(["run", "--drain"])
    #expect(again.status == 0 && again.errors.contains("1 published before"), "\(again.errors)")
    // Bad batches go to quarantine with a message.
    #expect(try client.put("incoming/bad", .bytes([1, 2, 3]), .archive, when: .absent) != nil)
    _ = try run(["reconcile"])
    let bad = try run(["run", "--drain"])
    #expect(bad.status == 65 && bad.errors.contains("quarantined"), "\(bad.errors)")
    #expect(try keys("quarantine/") == ["bad", "bad.reason.json"])
  }

  @Test func unreachableQueueOrStoreIsReported() throws {
    queue.kill()
    let noQueue = try run(["run", "--drain"])
    #expect(noQueue.status == 75 && noQueue.errors.contains("redis://127.0.0.1"), "\(noQueue.errors)")
    try queue.restart()
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    // No process listens at this port.
    let gone = try StoreServer("hostile.py")
    gone.stop()
    let noStore = try run(["run", "--drain"], gone.environment)
    #expect(noStore.status == 75 && noStore.errors.contains("s3://"), "\(noStore.errors)")
    #expect(try queue.command("XLEN", "encoder-worker") == ["1"])
    for words in [["--queue", queue.url], ["--spool", scratch.path("s")] + remote] {
      #expect(try Tool.run(EncoderWorker.path, ["run"] + words).status == 64)
    }
  }

  @Test func metricsAndReadinessAreServed() throws {
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    let server = try RunningServer(["run"] + remote, environment: environment)
    for line in [
      "encoder_worker_batches_total{outcome=\"published\"} 1", "encoder_worker_batches{state=\"waiting\"} 0",
    ] {
      try waitUntil("/metrics has \(line)") { try server.get("/metrics").text.contains(line) }
    }
    #expect(try server.get("/readyz").status == 200)
    #expect(server.stop() == 0)
  }
}
