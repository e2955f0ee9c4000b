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

  @Test func readersGiveTheSameAsFromADirectory() throws {
    let calls = [
      ["stitch", "film.mp4"], ["stitch", "part.mp4", "--from", "+3s", "--to-time", "+9.5s"],
      ["stitch", "list", "--format", "hls"], ["pictures", "all"], ["pictures", "at.png", "--at", "+3s"],
      ["pictures", "sheet.jpg", "--sheet"],
    ]
    try expectSame(calls, of: id, as: directory)
    let options = ["--quality", "small", "--json", "--output"]
    let wanted = try Tool.run(EncoderWorker.path, ["reencode", directory] + options + [scratch.path("smaller")])
    let stored = try onStore(["reencode", id] + options + [scratch.path("stored")])
    #expect(wanted.status == 0 && stored.text == wanted.text, "\(stored.errors)")
    #expect(try contents(scratch.path("stored/" + id)) == contents(scratch.path("smaller/" + id)))
  }

  @Test func sessionIsVerifiedEndedAndDeleted() throws {
    #expect(try keys("output/\(id)/").contains { $0.hasPrefix("pack-") })
    #expect(try !keys("output/\(id)/").contains { $0.hasPrefix("segment-") || $0.hasPrefix("session.") })
    let verified = try onStore(["verify", id])
    #expect(verified.status == 0, "\(verified.text) \(verified.errors)")
    let ended = try onStore(["end", id])
    #expect(ended.status == 0, "\(ended.errors)")
    _ = try run(["run", "--drain", "--layout", "packed"])
    #expect(try keys("output/\(id)/").contains("session.json"))
    #expect(try onStore(["verify", id]).status == 0)
    let deleted = try onStore(["delete", id])
    #expect(deleted.status == 0, "\(deleted.errors)")
    #expect(try keys("output/").isEmpty)
  }

  /// `/metrics` counts the requests of a batch: two writes besides the producer's, whatever the number of its segments.
  @Test func batchCostsTwoWrites() throws {
    let server = try RunningServer(["run"] + remote + ["--layout", "packed"], environment: environment)
    let (writes, reads) = (try counted("PUT", at: server), try counted("GET", at: server))
    let sent = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    try #require(sent.status == 0, "\(sent.errors)")
    try waitUntil("the batch is published") {
      try server.get("/metrics").text.contains("encoder_worker_batches_total{outcome=\"published\"} 1")
    }
    try waitUntil("the batch is removed") { try keys("incoming/").allSatisfy { $0.hasPrefix(".") } }
    #expect(try counted("PUT", at: server) - writes == 2)
    #expect(try counted("GET", at: server) - reads <= 3)
    #expect(server.stop() == 0)
  }

  /// The playlist, besides. Stock ffmpeg plays ranges of presigned packs over HTTP.
  @Test func livePlaylistCostsOneWriteAndIsPlayedFromLinks() throws {
    let server = try RunningServer(["run", "--hls"] + remote + ["--layout", "packed"], environment: environment)
    let writes = try counted("PUT", at: server)
    let sent = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    try #require(sent.status == 0, "\(sent.errors)")
    try waitUntil("the playlist is there") { try keys("output/phone/hls/").contains("session.m3u8") }
    // The pack and the head, the playlist, and the one that names it.
    #expect(try counted("PUT", at: server) - writes == 4)
    #expect(try keys("output/phone/hls/").count == 2 && keys("output/phone/pack-").count == 1)
    #expect(server.stop() == 0)
    #expect(try onStore(["end", "phone"]).status == 0)
    _ = try run(["run", "--drain", "--layout", "packed"])
    let printed = try onStore(["stitch", "phone", "--format", "hls", "--presign"])
    #expect(printed.status == 0 && printed.text.contains("#EXT-X-ENDLIST"), "\(printed.errors)")
    let file = try scratch.file("phone.m3u8", Array(printed.text.utf8))
    let probed = try Tool.run(
      "ffprobe",
      [
        "-v", "error", "-allowed_extensions", "ALL", "-protocol_whitelist", "file,http,tcp,crypto,data",
        "-count_packets",
        "-select_streams", "v", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0", file,
      ], environment: ["no_proxy": "127.0.0.1"])
    let count = probed.text.split(whereSeparator: \.isNewline).first.flatMap { Int($0.prefix { $0.isNumber }) }
    #expect(probed.status == 0 && (count ?? 0) >= 5, "\(probed.errors) \(probed.text)")
    #expect(try onStore(["verify", "phone"]).status == 0)
    // A server has no packs to give: it makes the playlist of the segments.
    let viewer = try RunningServer(["serve", "--store", location], environment: environment)
    let served = try viewer.get("/sessions/phone/session.m3u8").text
    #expect(served.contains("#EXTINF:") && !served.contains("pack-"), "\(served)")
    #expect(viewer.stop() == 0)
    #expect(try onStore(["delete", "phone"]).status == 0 && keys("output/phone/").isEmpty)
  }

  private func counted(_ kind: String, at server: RunningServer) throws -> Int {
    let lines = try server.get("/metrics").text.split(separator: "\n")
    let line = lines.first { $0.hasPrefix("encoder_worker_store_requests_total{kind=\"\(kind)\"} ") }
    return try #require(line?.split(separator: " ").last.flatMap { Int($0) })
  }

  @Test func packsNeedAStore() throws {
    let spool = try Tool.run(EncoderWorker.path, ["run", "--spool", scratch.path("spool"), "--layout", "packed"])
    #expect(spool.status == 64 && spool.errors.contains("add --store URL"), "\(spool.errors)")
  }
}
