import Foundation
import TestSupport
import Testing

@testable import Remote

/// A worker that writes packs: commands give the same as from a directory.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct PackedWorkerTests: RemoteSuite {
  let servers: RemoteServers
  private let id: String
  private let directory: String

  init() throws {
    servers = try RemoteServers()
    let session = try GeneratedSession(seed: 7, in: servers.scratch)
    id = session.name
    directory = servers.scratch.path("output/" + session.name)
    try encode(session, ["--layout", "packed", "--thumbnails"])
  }

  private func program(_ words: [String]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words + ["--store", location], environment: environment)
  }

  @Test func readersGiveTheSameAsFromADirectory() throws {
    let calls = [
      ["stitch", "film.mp4"], ["stitch", "part.mp4", "--from", "+3s", "--to-time", "+9.5s"],
      ["stitch", "list", "--format", "hls"], ["pictures", "all"], ["pictures", "at.png", "--at", "+3s"],
      ["pictures", "sheet.jpg", "--sheet"],
    ]
    for words in calls {
      let (target, other) = (scratch.path("from-directory-" + words[1]), scratch.path("from-store-" + words[1]))
      let options = Array(words.dropFirst(2))
      let wanted = try Tool.run(EncoderWorker.path, [words[0], directory, "--to", target] + options)
      let stored = try program([words[0], id, "--to", other] + options)
      #expect(wanted.status == 0 && stored.status == 0, "\(wanted.errors) \(stored.errors)")
      #expect(try contents(other) == contents(target) && !contents(target).isEmpty, "\(words)")
    }
    let options = ["--quality", "small", "--json", "--output"]
    let wanted = try Tool.run(EncoderWorker.path, ["reencode", directory] + options + [scratch.path("smaller")])
    let stored = try program(["reencode", id] + options + [scratch.path("stored")])
    #expect(wanted.status == 0 && stored.text == wanted.text, "\(stored.errors)")
    #expect(try contents(scratch.path("stored/" + id)) == contents(scratch.path("smaller/" + id)))
  }

  @Test func sessionIsVerifiedEndedAndDeleted() throws {
    #expect(try keys("output/\(id)/").contains { $0.hasPrefix("pack-") })
    #expect(try !keys("output/\(id)/").contains { $0.hasPrefix("segment-") || $0.hasPrefix("session.") })
    let verified = try program(["verify", id])
    #expect(verified.status == 0, "\(verified.text) \(verified.errors)")
    let ended = try program(["end", id])
    #expect(ended.status == 0, "\(ended.errors)")
    _ = try run(["run", "--drain", "--layout", "packed"])
    #expect(try keys("output/\(id)/").contains("session.json"))
    #expect(try program(["verify", id]).status == 0)
    let deleted = try program(["delete", id])
    #expect(deleted.status == 0, "\(deleted.errors)")
    #expect(try keys("output/").isEmpty)
  }

  /// `/metrics` counts the requests of a batch: two writes besides the producer's, whatever the number of its segments.
  @Test func batchCostsTwoWrites() throws {
    let server = try RunningServer(["run"] + remote + ["--layout", "packed"], environment: environment)
    func counted(_ kind: String) throws -> Int {
      let lines = try server.get("/metrics").text.split(separator: "\n")
      let line = lines.first { $0.hasPrefix("encoder_worker_store_requests_total{kind=\"\(kind)\"} ") }
      return try #require(line?.split(separator: " ").last.flatMap { Int($0) })
    }
    let (writes, reads) = (try counted("PUT"), try counted("GET"))
    let sent = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    try #require(sent.status == 0, "\(sent.errors)")
    try waitUntil("the batch is published") {
      try server.get("/metrics").text.contains("encoder_worker_batches_total{outcome=\"published\"} 1")
    }
    try waitUntil("the batch is removed") { try keys("incoming/").allSatisfy { $0.hasPrefix(".") } }
    #expect(try counted("PUT") - writes == 2)
    #expect(try counted("GET") - reads <= 3)
    #expect(server.stop() == 0)
  }

  @Test func playlistsNeedThePlainLayout() throws {
    let refused = try run(["run", "--drain", "--hls", "--layout", "packed"])
    #expect(refused.status == 64 && refused.errors.contains("--hls works with --layout plain"), "\(refused.errors)")
    let spool = try Tool.run(EncoderWorker.path, ["run", "--spool", scratch.path("spool"), "--layout", "packed"])
    #expect(spool.status == 64 && spool.errors.contains("add --store URL"), "\(spool.errors)")
  }
}
