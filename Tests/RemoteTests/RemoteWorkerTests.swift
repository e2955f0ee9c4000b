import Foundation
import TestSupport
import Testing

@testable import SegmentEncoder
@testable import encoder_worker

/// Workers that take names from a queue and work in a store, as one would run them.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct RemoteWorkerTests {
  private let queue: QueueServer
  private let store: StoreServer
  private let scratch: ScratchDirectory
  private let client: S3Client

  init() throws {
    (queue, store, scratch) = (try QueueServer(), try StoreServer(), try ScratchDirectory())
    let environment = store.environment
    client = try S3Client(S3Location("s3://\(StoreServer.bucket)/replay"), S3Settings { environment[$0] })
  }

  private var environment: [String: String] { store.environment.merging(["TMPDIR": scratch.path("")]) { $1 } }

  private var remote: [String] { ["--queue", queue.url, "--store", "s3://\(StoreServer.bucket)/replay"] }

  private func run(_ words: [String]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words + remote, environment: environment)
  }

  private func start(_ words: String...) throws -> RunningWorker {
    try RunningWorker(["run"] + remote + words, environment: environment)
  }

  /// All that is there, by what it is called.
  private func keys(_ prefix: String) throws -> [String] {
    var all: [String] = []
    while case let page = try client.list(prefix, after: all.last), !page.isEmpty { all += page.map(\.key) }
    return all.map { String($0.dropFirst(prefix.count)) }
  }

  /// Batches of two pictures, and some that are none; the same in a spool.
  private func submit(_ numbers: Range<Int>, to spool: TestSpool) throws -> (good: Int, bad: Int) {
    let pictures = try (0..<6).map { number in
      Array(try Data(contentsOf: URL(fileURLWithPath: Fixture("exact-1fps").path + "/000\(number).jpg")))
    }
    var bad = 0
    for number in numbers {
      let startMs = 1_767_859_512_340 + Int64(number / 20) * 2_000
      let bytes: [UInt8]
      if number % 50 == 7 {
        bytes = Array("no batch at all: \(number)".utf8)
        bad += 1
      } else {
        bytes = try Archive.tar(
          (0..<2).map { ("\(startMs + Int64($0) * 1_000).jpg", pictures[(number + $0) % pictures.count]) })
      }
      let name = "s\(number % 20)@\(number).tar"
      try spool.add(file: name, bytes)
      #expect(try client.put("incoming/" + name, .bytes(bytes), .archive, when: .absent) != nil)
    }
    return (numbers.count - bad, bad)
  }

  /// What the store has published is what the spool has.
  private func expectSame(_ spool: TestSpool) throws {
    var files: [String] = []
    for case let name as String in try #require(FileManager.default.enumerator(atPath: spool.output)) {
      if !name.hasPrefix("."), DurableFile.isFile(spool.output + "/" + name) { files.append(name) }
    }
    #expect(try keys("output/") == files.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    for name in files {
      let there = try client.get("output/" + name, limit: 1 << 30)
      #expect(try there?.bytes == DurableFile.contents(of: spool.output + "/" + name), "\(name)")
    }
  }

  /// Four workers, until nothing is owed; some are killed, and so is Redis.
  ///
  /// - Parameter midway: done once, when half of the work is.
  private func storm(kills most: Int, midway: () throws -> Void = {}) throws {
    func worker() throws -> RunningWorker { try start("--lease", "10", "--jobs", "1") }
    var workers = try (0..<4).map { _ in try worker() }
    // A worker that is killed while it begins leaves what it tried the store with.
    func owedCount() throws -> Int { try keys("incoming/").count { !$0.hasPrefix(".") } }
    let owed = try owedCount()
    var (kills, isMidway) = (0, false)
    let deadline = Date(timeIntervalSinceNow: 400)
    while case let left = try owedCount(), left > 0 {
      guard Date() < deadline else {
        throw Tool.Failure("still owed after \(kills) kills: \(left), \(try queue.command("XLEN", "encoder-worker"))")
      }
      if !isMidway, left < owed / 2 {
        isMidway = true
        try midway()
      }
      usleep(UInt32.random(in: 100_000...1_000_000))
      guard kills < most else { continue }
      kills += 1
      if kills % 4 == 0 {
        queue.kill()
        usleep(200_000)
        try queue.restart()
      } else {
        let index = Int.random(in: 0..<workers.count)
        workers[index].signal(SIGKILL)
        _ = workers[index].wait()
        workers[index] = try worker()
      }
    }
    #expect(kills > 2 && isMidway)
    // Whoever was killed between the receipt and the queue.
    for _ in 0..<300 where try queue.command("XLEN", "encoder-worker") != ["0"] { usleep(100_000) }
    for worker in workers {
      worker.signal(SIGTERM)
      #expect(worker.wait() == 0)
    }
  }

  /// Published or kept with a reason, each once, and as in the spool.
  private func expectAll(_ good: Int, _ bad: [String], _ spool: TestSpool) throws {
    #expect(try keys("receipts/").count == good + bad.count)
    let kept = try keys("quarantine/")
    #expect(kept.sorted() == (bad + bad.map { $0 + ".reason.json" }).sorted())
    try expectSame(spool)
    #expect(try run(["reconcile", "--json"]).text == "{\"misnamed\":0,\"owed\":0,\"queued\":0}\n")
  }

  @Test func nothingIsLostWhoeverDies() throws {
    let spool = try TestSpool()
    let bad = (0..<500).filter { $0 % 50 == 7 }.map { "s\($0 % 20)@\($0).tar" }
    _ = try submit(0..<500, to: spool)
    #expect(try spool.drain().status == 65)
    let queued = try run(["reconcile", "--json"])
    #expect(queued.text == "{\"misnamed\":0,\"owed\":500,\"queued\":500}\n", "\(queued.errors)")
    try storm(kills: 12)
    try expectAll(500 - bad.count, bad, spool)
    // Each of those is among the dead letters, once.
    let letters = try queue.command("XRANGE", "{encoder-worker}:dead", "-", "+")
    for name in bad { #expect(letters.count { $0 == name } == 1, "\(name)") }
    #expect(try queue.command("XLEN", "{encoder-worker}:dead") == ["\(bad.count)"])

    // Then all that the queue knows is gone, in the middle of the work: the store owes what it owed.
    _ = try submit(500..<580, to: spool)
    #expect(try spool.drain().status == 65)
    _ = try run(["reconcile"])
    try storm(kills: 3) {
      try queue.flush()
      let again = try run(["reconcile"])
      #expect(again.status == 0, "\(again.errors)")
    }
    let more = (500..<580).filter { $0 % 50 == 7 }.map { "s\($0 % 20)@\($0).tar" }
    try expectAll(580 - bad.count - more.count, bad + more, spool)
  }

  @Test func framesGoInAndASessionComesOut() throws {
    let queued = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    #expect(queued.status == 0 && queued.text.hasPrefix("phone@"), "\(queued.errors)")
    let done = try run(["run", "--drain", "--hls", "--keep-batches", "--log-format", "json"])
    #expect(done.status == 0 && done.errors.contains("1 batch published"), "\(done.errors)")
    #expect(try keys("output/phone/").contains("hls/session.m3u8"))
    #expect(try keys("done/").count == 1 && keys("incoming/").isEmpty)
    // Once more is no work.
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    let again = try run(["run", "--drain"])
    #expect(again.status == 0 && again.errors.contains("1 published before"), "\(again.errors)")
    // What is bad goes to quarantine, and is said.
    #expect(try client.put("incoming/bad", .bytes([1, 2, 3]), .archive, when: .absent) != nil)
    _ = try run(["reconcile"])
    let bad = try run(["run", "--drain"])
    #expect(bad.status == 65 && bad.errors.contains("quarantined"), "\(bad.errors)")
    #expect(try keys("quarantine/") == ["bad", "bad.reason.json"])
  }

  @Test func withoutAQueueOrAStoreItSaysSo() throws {
    queue.kill()
    let noQueue = try run(["run", "--drain"])
    #expect(noQueue.status == 75 && noQueue.errors.contains("redis://127.0.0.1"), "\(noQueue.errors)")
    try queue.restart()
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    store.stop()
    let noStore = try run(["run", "--drain"])
    #expect(noStore.status == 75 && noStore.errors.contains("s3://"), "\(noStore.errors)")
    #expect(try queue.command("XLEN", "encoder-worker") == ["1"])
    for words in [["--queue", queue.url], ["--spool", scratch.path("s")] + remote] {
      #expect(try Tool.run(EncoderWorker.path, ["run"] + words).status == 64)
    }
  }

  @Test func itTellsHowItGoes() throws {
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    let server = try RunningServer(["run"] + remote, environment: environment)
    for _ in 0..<200 where try !keys("incoming/").isEmpty { usleep(50_000) }
    let metrics = try server.get("/metrics").text
    #expect(metrics.contains("encoder_worker_batches_total{outcome=\"published\"} 1"), "\(metrics)")
    #expect(metrics.contains("encoder_worker_batches{state=\"waiting\"} 0"), "\(metrics)")
    #expect(try server.get("/readyz").status == 200)
    #expect(server.stop() == 0)
  }
}
