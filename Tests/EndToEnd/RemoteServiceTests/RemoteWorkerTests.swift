import Foundation
import TestSupport
import Testing

@testable import Remote

/// Commands and workers with a queue and a store: batches, events, metrics, and servers that do not answer.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct RemoteWorkerTests: RemoteSuite {
  let servers: RemoteServers

  init() throws { servers = try RemoteServers() }

  @Test func eventIsDeliveredBeforeTheReceipt() throws {
    receiver.answer(.init(hold: true))
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    #expect(try client.put("incoming/bad", .bytes([1, 2, 3]), .archive, when: .absent) != nil)
    _ = try run(["reconcile"])
    let worker = try start("--notify", receiver.url, "--jobs", "1")
    try waitUntil("both events have arrived") { try receiver.log().count == 2 }
    #expect(try keys("receipts/").isEmpty && keys("quarantine/").isEmpty && keys("incoming/").count == 2)
    #expect(try Set(streamed().map(\.event)) == ["batch.published", "batch.quarantined"])
    receiver.answer()
    try waitUntil("both batches have a receipt") { try keys("receipts/").count == 2 }
    try waitUntil("the queue is empty") { try queue.command("XLEN", "encoder-worker") == ["0"] }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try Set(streamed().map(\.key)) == Set(receiver.events().map(\.key)) && streamed().count == 2)
  }

  @Test func workerSaysAtItsStartWhatItWatches() throws {
    let log = scratch.path("log")
    let worker = try RunningWorker(
      ["run"] + remote, environment: environment, under: ["sh", "-c", "exec \"$@\" 2>'\(log)'", "-"])
    let place = "; batches are in \(location)/incoming, sessions go to \(location)/output\n"
    try waitUntil("the worker says what it watches") {
      let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
      return text.hasPrefix("watching redis://127.0.0.1:") && text.hasSuffix(place)
    }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
  }

  /// systemd-tmpfiles or an operator removes what lies in TMPDIR.
  @Test func workerGoesOnAfterACleanerOfTemporaryFilesAndTheNextOneStarts() throws {
    let own = scratch.path("encoder-worker-\(geteuid())")
    let tar = try Tool.output("tar", ["-C", Fixture("exact-1fps").path, "-cf", "-", "."])
    let ingest = try RunningIngest(remote, environment: environment)
    for number in 1...3 {
      let answer = try ingest.send("PUT", "/v1/batches/s\(number).tar", body: tar)
      #expect(answer.status == 201, "\(number): \(answer.text)")
      try waitUntil("batch \(number) has a receipt") { try keys("receipts/").count == number }
      var status = stat()
      #expect(lstat(own, &status) == 0 && status.st_mode & 0o777 == 0o700)
      try FileManager.default.removeItem(atPath: own)
    }
    #expect(ingest.stop() == 0)
    #expect(try run(["run", "--drain"]).status == 0)
  }

  private static let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  /// The trace of an entry, and that of a request, which becomes one of an entry.
  @Test(arguments: [true, false]) func traceOfAnEntryIsInTheManifestAndTheEvent(isRequest: Bool) throws {
    let tar = try Tool.output("tar", ["-C", Fixture("exact-1fps").path, "-cf", "-", "."])
    if isRequest {
      let ingest = try RunningIngest(remote + ["--notify", receiver.url], environment: environment)
      #expect(try ingest.send("PUT", "/v1/batches/a.tar", ["traceparent": Self.trace], body: tar).status == 201)
      try waitUntil("the batch has a receipt") { try keys("receipts/").count == 1 }
      #expect(ingest.stop() == 0)
    } else {
      #expect(try client.put("incoming/a.tar", .bytes(Array(tar)), .archive, when: .absent) != nil)
      try queue.command("XADD", "encoder-worker", "*", "batch", "a.tar", "traceparent", Self.trace)
      #expect(try run(["run", "--drain", "--notify", receiver.url]).status == 0)
    }
    // The batch also ends its session, which is an event without a trace.
    let published = try streamed().filter { $0.event == "batch.published" }
    #expect(published.map(\.traceparent) == [Self.trace])
    let request = try #require(try receiver.accepted().first)
    #expect(try request.headers["traceparent"] == Self.trace && request.event.traceparent == Self.trace)
    let manifests = try keys("output/exact-1fps/").filter { $0.hasPrefix("segment-") && $0.hasSuffix(".json") }
    #expect(!manifests.isEmpty)
    for name in manifests {
      let bytes = try #require(try client.get("output/exact-1fps/" + name, limit: 1 << 20)).bytes
      #expect(String(decoding: bytes, as: UTF8.self).contains(Self.trace), "\(name)")
    }
  }

  @Test func refusedEventIsKeptInTheStore() throws {
    receiver.answer(.init(status: 410))
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    let result = try run(["run", "--drain", "--notify", receiver.url])
    #expect(result.status == 0 && result.errors.contains("notification.refused"), "\(result.errors)")
    #expect(try keys("receipts/").count == 1 && keys("incoming/").isEmpty)
    let key = try #require(receiver.log().last).event.key
    #expect(try keys("notifications/") == [key + ".json"])
    func notify(_ words: String...) throws -> Tool.Result {
      try Tool.run(
        EncoderWorker.path, ["quarantine"] + words + ["--events", "--store", location], environment: environment)
    }
    #expect(try notify("list").text.contains(key))
    receiver.answer()
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

  @Test func foldersOfKeysTellTheSession() throws {
    for part in 0..<2 {
      let picture = try Fixture("exact-1fps").bytes("000\(part).jpg")
      _ = try scratch.directory("part\(part)")
      try scratch.file("part\(part)/\(1_767_859_512_000 + part * 1_000).jpg", picture)
      let archive = try Tool.output("tar", ["-cf", "-", "-C", scratch.path("part\(part)"), "."])
      let key = "incoming/lobby/2026-01-08/\(part).tar"
      #expect(try client.put(key, .bytes(Array(archive)), .archive, when: .absent) != nil)
    }
    _ = try run(["reconcile"])
    let done = try run(["run", "--drain", "--session-from", "{session}/*/{part}"])
    #expect(done.status == 0 && done.errors.contains("2 batches published"), "\(done.errors)")
    #expect(try keys("output/lobby/").count { $0.hasSuffix(".mp4") } == 2)
    #expect(try keys("output/").allSatisfy { $0.hasPrefix("lobby/") })
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
