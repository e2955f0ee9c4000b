import Foundation
import TestSupport
import Testing

@testable import Remote
@testable import Sessions

/// A worker that compacts sessions: commands give the same before and after.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct CompactedWorkerTests: RemoteSuite {
  let servers: RemoteServers
  private let id: String
  private let directory: String

  init() throws {
    servers = try RemoteServers()
    let session = try GeneratedSession(seed: 7, in: servers.scratch)
    id = session.name
    directory = servers.scratch.path("output/" + session.name)
    try encode(session)
  }

  private func packs() throws -> [String] { try keys("output/\(id)/").filter { $0.hasPrefix("pack-") } }

  private func expectSameAsDirectory() throws {
    let calls = [
      ["stitch", "film.mp4"], ["stitch", "part.mp4", "--from", "+3s", "--to-time", "+9.5s"],
      ["stitch", "list", "--format", "hls"], ["pictures", "all"], ["pictures", "at.png", "--at", "+3s"],
    ]
    try expectSame(calls, of: id, as: directory)
    let verified = try onStore(["verify", id])
    #expect(verified.status == 0, "\(verified.text) \(verified.errors)")
  }

  @Test func workerCompactsASessionThatHasEnded() throws {
    #expect(try onStore(["end", id]).status == 0)
    let drained = try run(["run", "--drain", "--compact", "--log-level", "info", "--log-format", "json"])
    #expect(drained.status == 0 && drained.errors.contains("session.compacted"), "\(drained.errors)")
    #expect(try !packs().isEmpty)
    try expectSameAsDirectory()
    let again = try run(["run", "--drain", "--compact", "--log-level", "info", "--log-format", "json"])
    #expect(again.status == 0 && !again.errors.contains("session.compacted"), "\(again.errors)")
  }

  @Test func runningWorkerCompactsASessionOnceItsEndIsAnnounced() throws {
    let server = try RunningServer(["run"] + remote + ["--compact"], environment: environment)
    #expect(try onStore(["end", id]).status == 0)
    try waitUntil("the session is compacted") { try !packs().isEmpty }
    #expect(server.stop() == 0)
    #expect(try onStore(["verify", id]).status == 0)
  }

  @Test func pruneCompactsOldSessions() throws {
    let young = try onStore(["prune", "--compact", "1h"])
    #expect(young.status == 0 && young.errors.contains("nothing to compact"), "\(young.text) \(young.errors)")
    try waitUntil("the session is a second old") {
      try onStore(["prune", "--compact", "1s", "--dry-run"]).text.contains("would become")
    }
    #expect(try packs().isEmpty)
    let done = try onStore(["prune", "--compact", "1s"])
    #expect(done.status == 0 && done.text.contains("became"), "\(done.text) \(done.errors)")
    #expect(try !packs().isEmpty)
    try expectSameAsDirectory()
  }

  @Test func compactionNeedsAStore() throws {
    for words in [["run", "--compact"], ["prune", "--compact", "1d"]] {
      let refused = try Tool.run(EncoderWorker.path, words + ["--spool", scratch.path("spool")])
      #expect(
        refused.status == 64 && refused.errors.contains("--compact is for sessions in a store"), "\(refused.errors)")
    }
  }

  /// A URL that was presigned just before a compaction works until it expires.
  @Test func replacedObjectsStayAsLongAsAURL() {
    #expect(ReplacedObjects.graceMs == 1_000 * Int64(S3Client.maximumExpiryS))
  }
}
