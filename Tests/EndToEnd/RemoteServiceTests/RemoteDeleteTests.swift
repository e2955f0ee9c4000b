import Foundation
import TestSupport
import Testing

@testable import Remote

/// `delete --store`, beside workers with a queue.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct RemoteDeleteTests: RemoteSuite {
  let servers: RemoteServers

  init() throws { servers = try RemoteServers() }

  private func run(_ words: String..., isQueued: Bool = true) throws -> Tool.Result {
    let place = (isQueued ? ["--queue", queue.url] : []) + ["--store", location]
    return try Tool.run(EncoderWorker.path, words + place, environment: environment)
  }

  private func keys() throws -> [String] {
    try keys("").filter { !$0.hasPrefix("receipts/") }
  }

  private func copies() throws -> [String] {
    let pictures = try PictureBytes(in: [Fixture("jittered").path])
    return try keys().filter { pictures.isPart(of: Data(try client.get($0, limit: 1 << 30)?.bytes ?? [])) }
  }

  private func enqueue(_ session: String, _ fixture: String = "jittered") throws {
    #expect(try run("enqueue", "--session", session, Fixture(fixture).path).status == 0)
  }

  /// The line of `delete` for a session.
  private struct Line: Decodable {
    let session: String
    let segments: Int
    let batches: [String]
  }

  @Test func deletedSessionStaysOutOfTheStore() throws {
    try enqueue("phone")
    try enqueue("other", "colour-bars")
    #expect(try run("run", "--drain", "--hls", "--keep-batches").status == 0)
    try enqueue("phone")
    #expect(try copies().count > 1)
    let result = try run("delete", "phone", "--json", "--reason", "request 17", isQueued: false)
    #expect(result.status == 0, "\(result.errors)")
    let line = try result.json(as: Line.self)
    #expect(line.session == "phone" && line.segments > 0 && line.batches.count == 2)
    #expect(try copies() == [] && keys().filter { $0.contains("phone") } == ["index/phone/head.json"])
    #expect(try keys().contains { $0.hasPrefix("output/other/hls/") })
    // The queue still names the removed batch.
    let drained = try run("run", "--drain")
    #expect(drained.status == 0 && drained.errors.hasPrefix("0 batches published"), "\(drained.errors)")
    try enqueue("phone")
    let refused = try run("run", "--drain", "--keep-batches", "--hls", "--log-level", "notice")
    #expect(refused.status == 0 && refused.errors.contains("batch.refused"), "\(refused.errors)")
    #expect(try copies() == [] && keys().filter { $0.contains("phone") } == ["index/phone/head.json"])
    #expect(try run("reconcile", "--json").text == "{\"misnamed\":0,\"owed\":0,\"queued\":0}\n")
    #expect(try run("delete", "phone", "--json", "--undelete", isQueued: false).text.contains(#""undeleted":true"#))
    try enqueue("phone")
    #expect(try run("run", "--drain").errors.hasPrefix("1 batch published"))
  }

  @Test func workersDoNotBringASessionBack() throws {
    let workers = try (0..<2).map { _ in
      try RunningWorker(
        ["run", "--queue", queue.url, "--store", location, "--hls", "--jobs", "2"], environment: environment)
    }
    for round in 0..<Extent.of(3, full: 30) {
      for _ in 0..<3 { try enqueue("phone\(round)") }
      usleep(UInt32.random(in: 0..<400_000))
      let result = try run("delete", "phone\(round)", isQueued: false)
      #expect(result.status == 0, "\(result.errors)")
    }
    try waitUntil("the queue is empty", pauseMs: 100) { try queue.command("XLEN", "encoder-worker") == ["0"] }
    for worker in workers { worker.signal(SIGTERM) }
    for worker in workers { #expect(try worker.wait() == 0) }
    #expect(try copies() == [])
    #expect(try keys().allSatisfy { $0.hasSuffix("/head.json") })
  }
}
