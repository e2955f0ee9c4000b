import Foundation
import TestSupport
import Testing

@testable import Remote

/// A worker of a spool that brings its sessions into a store when they have ended.
@Suite(.enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct UploadWorkerTests {
  private let scratch: ScratchDirectory
  private let store: StoreServer
  private let client: S3Client
  private let location = "s3://\(StoreServer.bucket)/\(UUID().uuidString)"

  init() throws {
    (scratch, store) = (try ScratchDirectory(), try StoreServer.shared.get())
    let environment = store.environment
    client = try S3Client(S3Location(location), S3Settings { environment[$0] })
    let made = try program(["run", "--spool", spool, "--drain"])
    try #require(made.status == 0, "\(made.errors)")
  }

  private var spool: String { scratch.path("spool") }
  private var environment: [String: String] { store.environment.merging(["TMPDIR": scratch.path("")]) { $1 } }

  private func program(_ words: [String], _ others: [String: String] = [:]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words, environment: environment.merging(others) { $1 })
  }

  private func drain(_ words: String..., others: [String: String] = [:]) throws -> Tool.Result {
    try program(["run", "--spool", spool, "--drain", "--upload", location] + words, others)
  }

  private func send(_ session: String, isFinal: Bool = true) throws {
    let words = ["enqueue", "--spool", spool, "--session", session, Fixture("jittered").path]
    let sent = try program(words + (isFinal ? ["--final"] : []))
    try #require(sent.status == 0, "\(sent.errors)")
  }

  private func keys(_ prefix: String) throws -> [String] {
    var all: [String] = []
    while case let page = try client.list(prefix, after: all.last), !page.isEmpty { all += page.map(\.key) }
    return all
  }

  private func isHere(_ session: String) -> Bool {
    FileManager.default.fileExists(atPath: "\(spool)/output/\(session)")
  }

  private func requireVerified(_ session: String) throws {
    let verified = try program(["verify", session, "--store", location])
    #expect(verified.status == 0, "\(verified.text) \(verified.errors)")
  }

  private struct Line: Decodable {
    let event: String
    let session: String?
    let store: String?
  }

  @Test func drainBringsWhatHasEndedIntoTheStore() throws {
    try send("ended")
    try send("open", isFinal: false)
    let result = try drain("--json")
    #expect(result.status == 0, "\(result.errors)")
    let events = try result.jsonLines(as: Line.self)
    #expect(events.contains { $0.event == "session.ended" } && events.last?.event == "session.uploaded")
    #expect(events.last?.session == "ended" && events.last?.store == location)
    #expect(!isHere("ended") && isHere("open"))
    let keys = try keys("")
    #expect(keys.count == 4, "\(keys)")
    try requireVerified("ended")
    let stitched = try program(["stitch", "ended", "--store", location, "--to", scratch.path("film.mp4")])
    #expect(stitched.status == 0, "\(stitched.errors)")
    let status = try program(["status", "--spool", spool])
    #expect(status.text.contains("all sessions that are due are in \(location)"), "\(status.text)")
  }

  @Test func storeThatIsAwayIsToldAndTriedAgain() throws {
    try send("ended")
    let result = try drain(others: ["AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"])
    #expect(result.status == 75 && result.errors.contains("nothing is lost"), "\(result.status) \(result.errors)")
    #expect(isHere("ended"))
    let status = try program(["status", "--spool", spool])
    #expect(status.text.contains("1 session waits for \(location)"), "\(status.text)")
    #expect(try drain().status == 0)
    #expect(!isHere("ended"))
    try requireVerified("ended")
  }

  @Test func runningWorkerUploadsAndDeletes() throws {
    let receiver = try ReceiverServer()
    let server = try RunningServer(
      ["run", "--spool", spool, "--upload", location, "--notify", receiver.url, "--hls"], environment: environment)
    try send("ended")
    try waitUntil("the session is in the store, and not here") { try !isHere("ended") && keys("output/").count == 3 }
    #expect(try receiver.accepted().contains { $0.body.contains(#""event":"session.uploaded""#) })
    let metrics = try server.get("/metrics").text
    #expect(metrics.contains("encoder_worker_sessions_uploaded_total 1"), "\(metrics)")
    for name in ["sessions", "bytes", "oldest_age_seconds", "deletions"] {
      #expect(metrics.contains("encoder_worker_upload_\(name) 0"), "\(name)")
    }
    #expect(!metrics.contains("encoder_worker_uploaded_bytes_total 0"))
    #expect(metrics.contains(#"encoder_worker_store_requests_total{kind="PUT"}"#))
    let deleted = try program(["delete", "ended", "--spool", spool])
    #expect(deleted.status == 0, "\(deleted.errors)")
    #expect(deleted.errors.contains("a worker deletes it in \(location), too"), "\(deleted.errors)")
    try waitUntil("the session is deleted in the store") { try keys("output/").isEmpty }
    let verified = try program(["verify", "ended", "--store", location])
    #expect(verified.status == 65 && (verified.text + verified.errors).contains("was deleted at"), "\(verified.text)")
    #expect(server.stop() == 0)
  }

  /// Workers die at any moment; no picture is lost, and nothing stays twice.
  @Test func killedWorkersLoseNothing() throws {
    let sessions = (0..<Extent.of(6, full: 30)).map { "session-\($0)" }
    var random = Random(seed: 67)
    for session in sessions {
      try send(session)
      let worker = try RunningWorker(
        ["run", "--spool", spool, "--upload", location, "--upload-every", "1"], environment: environment)
      usleep(UInt32(random.int(200...2_500)) * 1_000)
      worker.signal(SIGKILL)
      try waitUntil("the worker is dead") { !worker.isRunning }
    }
    let result = try drain()
    #expect(result.status == 0, "\(result.errors)")
    for session in sessions {
      #expect(!isHere(session))
      try requireVerified(session)
    }
    #expect(try keys("output/").count == 3 * sessions.count)
  }

  @Test func optionsThatDoNotFitAreRefused() throws {
    let calls: [([String], String)] = [
      (["--retain", "1h"], "--keep-local AGE"), (["--max-bytes", "1GB"], "--keep-local AGE"),
      (["--upload-every", "0"], "--upload-every"),
    ]
    for (words, advice) in calls {
      let refused = try program(["run", "--spool", spool, "--drain", "--upload", location] + words)
      #expect(refused.status == 64 && refused.errors.contains(advice), "\(refused.errors)")
    }
    for words in [["--upload-every", "5"], ["--keep-local", "1h"]] {
      let refused = try program(["run", "--spool", spool, "--drain"] + words)
      #expect(refused.status == 64 && refused.errors.contains("--upload"), "\(refused.errors)")
    }
  }
}
