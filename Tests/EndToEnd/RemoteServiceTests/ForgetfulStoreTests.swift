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
    /// Queues batches of one picture each at once, all of one session: the workers race for its head.
    func add(_ count: Int) throws {
      for _ in 0..<count {
        number += 1
        let timeMs = 1_767_859_512_340 + 10_000 * number
        let folder = try scratch.directory("batch-\(number)")
        try scratch.file("batch-\(number)/\(timeMs).jpg", picture)
        try store.put("some/incoming/phone@\(timeMs).tar", Tool.output("tar", ["-C", folder, "-cf", "-", "."]))
      }
      let queued = try Tool.run(EncoderWorker.path, ["reconcile"] + remote, environment: environment)
      try #require(queued.status == 0, "\(queued.errors)")
    }
    try add(1)
    let log = scratch.path("log")
    let workers = try (0..<2).map { worker in
      try RunningWorker(
        ["run", "--jobs", "4"] + remote, environment: environment,
        under: ["sh", "-c", "exec \"$@\" 2>>'\(log)\(worker)'", "-"])
    }
    try waitUntil("the first batch has a receipt") { try store.keys("some/receipts/").count == 1 }
    try scratch.file("control", Array(#"{"unconditional": true}"#.utf8))
    // They overwrite each other's publications and find that out, or try a write within a minute.
    try waitUntil("a worker ends", pauseMs: 1_000) {
      if try store.keys("some/incoming/").isEmpty { try add(24) }
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
