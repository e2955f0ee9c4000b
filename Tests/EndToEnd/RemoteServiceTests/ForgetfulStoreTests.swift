import Foundation
import TestSupport
import Testing

@testable import Remote

/// A store that stops honouring conditions while workers run.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct ForgetfulStoreTests {
  private let scratch: ScratchDirectory
  private let queue: QueueServer
  private let store: StoreServer
  private let location = "s3://\(StoreServer.bucket)/some"

  init() throws {
    scratch = try ScratchDirectory()
    try scratch.file("control", Array("{}".utf8))
    queue = try QueueServer()
    store = try StoreServer(variables: ["STORE_CONTROL": scratch.path("control")])
  }

  private var remote: [String] { ["--queue", queue.url, "--store", location] }

  @Test func workerEndsAndSaysThatBatchesMayBeMissing() throws {
    let environment = store.environment.merging(["TMPDIR": scratch.path("")]) { $1 }
    let picture = try Fixture("single-frame").bytes("1767859512340.jpg")
    var number = 0
    /// Adds a batch of one picture to the session.
    func add() throws {
      number += 1
      let name = "\(1_767_859_512_340 + 10_000 * number).jpg"
      let folder = try scratch.directory("batch-\(number)")
      try scratch.file("batch-\(number)/\(name)", picture)
      let added = try Tool.run(
        EncoderWorker.path, ["enqueue", "--session", "phone", folder] + remote, environment: environment)
      try #require(added.status == 0, "\(added.errors)")
    }
    try add()
    let log = scratch.path("log")
    let workers = try (0..<2).map { worker in
      try RunningWorker(
        ["run", "--jobs", "4"] + remote, environment: environment,
        under: ["sh", "-c", "exec \"$@\" 2>>'\(log)\(worker)'", "-"])
    }
    try waitUntil("the first batch has a receipt") { try store.keys("some/receipts/").count == 1 }
    try scratch.file("control", Array(#"{"unconditional": true}"#.utf8))
    // They overwrite each other's publications, or notice it within a minute of them.
    try waitUntil("a worker ends") {
      for _ in 0..<8 { try add() }
      return workers.contains { !$0.isRunning }
    }
    let ended = try #require(workers.firstIndex { !$0.isRunning })
    #expect(try workers[ended].wait() == 75)
    let text = try String(contentsOfFile: log + "\(ended)", encoding: .utf8)
    #expect(text.contains("ignores the conditions of writes") && text.contains("batch.failed"), "\(text)")
    #expect(text.contains("run verify --store") && !text.contains("nothing is lost"), "\(text)")
    // And none begins.
    let next = try Tool.run(EncoderWorker.path, ["run", "--drain"] + remote, environment: environment)
    #expect(next.status == 75 && next.errors.contains("ignores the conditions of writes"), "\(next.errors)")
  }
}
