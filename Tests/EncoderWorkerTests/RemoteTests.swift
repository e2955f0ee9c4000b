import Foundation
import TestSupport
import Testing

@testable import SegmentEncoder
@testable import encoder_worker

/// Workers that take names from a queue and work in a store, as one would run them.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct RemoteTests {
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
  private func submit(_ count: Int, to spool: TestSpool) throws -> (good: Int, bad: Int) {
    let pictures = try (0..<6).map { number in
      Array(try Data(contentsOf: URL(fileURLWithPath: Fixture("exact-1fps").path + "/000\(number).jpg")))
    }
    var bad = 0
    for number in 0..<count {
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
    return (count - bad, bad)
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

  @Test func nothingIsLostWhoeverDies() throws {
    let spool = try TestSpool()
    let (good, bad) = try submit(500, to: spool)
    #expect(try spool.drain().status == 65)
    let queued = try run(["reconcile", "--json"])
    #expect(queued.text == "{\"owed\":\(good + bad),\"queued\":\(good + bad)}\n", "\(queued.errors)")

    var workers = try (0..<4).map { _ in try start("--lease", "10", "--jobs", "1") }
    var random = SystemRandomNumberGenerator()
    var (kills, isForgotten) = (0, false)
    let deadline = Date(timeIntervalSinceNow: 300)
    while try !keys("incoming/").isEmpty {
      if Date() > deadline {
        Issue.record(
          "still owed after \(kills) kills: \(try keys("incoming/").prefix(5)), \(try queue.command("XLEN", "encoder-worker"))"
        )
        return
      }
      usleep(UInt32.random(in: 100_000...1_500_000))
      guard kills < 12 else { continue }
      kills += 1
      if kills % 4 == 0 {
        queue.kill()
        usleep(200_000)
        try queue.restart()
      } else {
        let index = Int.random(in: 0..<workers.count, using: &random)
        workers[index].signal(SIGKILL)
        _ = workers[index].wait()
        workers[index] = try start("--lease", "10", "--jobs", "1")
      }
      // All that the queue knew is gone; the store owes what it owed.
      let settled = try keys("receipts/").count
      if !isForgotten, kills > 5, settled > 100 {
        isForgotten = true
        try queue.flush()
        let again = try run(["reconcile"])
        #expect(again.status == 0, "\(again.errors)")
      }
    }
    #expect(kills > 5)
    for worker in workers {
      worker.signal(SIGTERM)
      #expect(worker.wait() == 0)
    }
    // Published or kept with a reason, each once.
    let receipts = try keys("receipts/")
    #expect(receipts.count == good + bad)
    let kept = try keys("quarantine/")
    #expect(kept.count == 2 * bad && kept.count { $0.hasSuffix(".reason.json") } == bad)
    try expectSame(spool)
    // Nothing is left to do.
    #expect(try run(["reconcile", "--json"]).text == "{\"owed\":0,\"queued\":0}\n")
    let rest = try run(["run", "--drain"])
    #expect(rest.status == 0 && rest.errors.contains("0 batches published"), "\(rest.errors)")
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
