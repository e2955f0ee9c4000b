import Foundation
import TestSupport
import Testing

/// `collect --to` and `enqueue --to`: from a folder on one machine to a session of a worker on another, over failures of both.
@Suite struct SenderTests {
  private static let startMs: Int64 = 1_767_859_512_340
  private let spool: TestSpool
  private let folder: String
  private let outbox: String
  private let token: String
  private let tokens: String

  init() throws {
    spool = try TestSpool()
    folder = try spool.scratch.directory("shots")
    outbox = spool.scratch.path("outbox")
    token = try Self.secret("kiosk-token-0123456789\n", at: spool.scratch.path("token"))
    tokens = try Self.secret(
      "kiosk-7 kiosk-token-0123456789\nother other-token-0123456789 other-\n", at: spool.scratch.path("tokens"))
  }

  private static func secret(_ text: String, at path: String) throws -> String {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    return path
  }

  private func worker(port: UInt16 = 0) throws -> RunningIngest {
    try RunningIngest(["--spool", spool.path, "--ingest-tokens", tokens], port: port)
  }

  /// A worker at a port that no other process gets while the worker is away.
  private func workerToStop() throws -> RunningIngest {
    for _ in 0..<50 {
      if let worker = try? worker(port: UInt16.random(in: 20_000..<30_000)) { return worker }
    }
    throw Tool.Failure("no free port")
  }

  private func write(_ numbers: Range<Int>) throws {
    for number in numbers {
      let draft = folder + "/.draft"
      try Data(Fixture("exact-1fps").bytes(String(format: "%04d.jpg", number % 12))).write(
        to: URL(fileURLWithPath: draft))
      #expect(rename(draft, folder + "/\(Self.startMs + Int64(number) * 1_000).jpg") == 0)
    }
  }

  private func collect(_ port: UInt16, session: String = "film", idle: Int = 600, token file: String? = nil) throws
    -> RunningWorker
  {
    try RunningWorker([
      "collect", folder, "--spool", outbox, "--session", session, "--batch-every", "1", "--end-after-pause", "\(idle)",
      "--to", "http://127.0.0.1:\(port)", "--token-file", file ?? token,
    ])
  }

  private func stop(_ collector: RunningWorker) throws -> Int32 {
    collector.signal(SIGTERM)
    return try collector.wait()
  }

  private func waiting() throws -> Int {
    FileManager.default.fileExists(atPath: outbox + "/incoming") ? try names(in: outbox + "/incoming").count : 0
  }

  private func shown(_ session: String = "film") throws -> [Int64] {
    try PublishedSession(spool.output + "/" + session).captured.map { Int64($0.timeMs) - Self.startMs }
  }

  /// The worker is away for a while, the collector is stopped and killed meanwhile: each picture is shown once, at its instant.
  @Test func picturesOfAKioskArriveOnceOverFailuresOfBothSides() throws {
    var ingest = try workerToStop()
    let port = ingest.port
    var collector = try collect(port)
    try write(0..<4)
    try spool.waitUntil("the first batch is there") { try !spool.names("output/film").isEmpty }
    #expect(ingest.stop() == 0)
    try write(4..<8)
    try spool.waitUntil("a batch waits") {
      try waiting() > 0 && names(in: folder).filter { !$0.hasPrefix(".") }.count <= 1
    }
    collector.signal(SIGKILL)
    collector = try collect(port)
    try write(8..<10)
    try spool.waitUntil("the folder is read") { try names(in: folder).filter { !$0.hasPrefix(".") }.count <= 1 }
    #expect(try stop(collector) == 0 && waiting() > 0)
    collector = try collect(port)
    ingest = try worker(port: port)
    try write(10..<12)
    try spool.waitUntil("the others are there") { try waiting() == 0 && (try? shown().count).map { $0 >= 11 } ?? false }
    // The newest one waits for its end.
    #expect(try stop(collector) == 0)
    collector = try collect(port, idle: 1)
    try spool.waitUntil("the end is there") { (try? shown().count) == 12 }
    #expect(try stop(collector) == 0 && waiting() == 0 && ingest.stop() == 0)
    #expect(try shown() == (0..<12).map { $0 * 1_000 } && spool.names("quarantine").isEmpty)
  }

  /// Only the answer of a worker lets a batch go: not a page of a proxy, whatever its status.
  @Test func batchStaysUntilAWorkerHasIt() throws {
    try write(0..<3)
    let server = try ReceiverServer()
    let collector = try collect(server.port)
    for (status, body) in [(200, "<html>Welcome to our network"), (503, "x"), (401, "x"), (404, "x"), (302, "x")] {
      server.answer(ReceiverServer.Answer(status: status, body: body))
      let before = try server.log().count
      try spool.waitUntil("it is sent again after \(status)") { try server.log().count > before }
      #expect(try waiting() == 1, "\(status)")
    }
    let request = try #require(try server.log().last)
    #expect(request.headers["authorization"] == "Bearer kiosk-token-0123456789" && request.path.contains("?sent="))
    #expect(try stop(collector) == 0 && waiting() == 1)
  }

  /// A batch that the worker will never take keeps no other one waiting, and is kept.
  @Test func refusedBatchIsKeptAndTheOthersGoOn() throws {
    let ingest = try worker()
    let other = try Self.secret("other-token-0123456789\n", at: spool.scratch.path("other"))
    try write(0..<3)
    var collector = try collect(ingest.port, token: other)
    try spool.waitUntil("it is refused") {
      try FileManager.default.fileExists(atPath: outbox + "/quarantine") && names(in: outbox + "/quarantine").count == 2
    }
    #expect(try stop(collector) == 0 && waiting() == 0)
    let reason = try names(in: outbox + "/quarantine").first { $0.hasSuffix(".reason.json") } ?? ""
    let text = try String(contentsOfFile: outbox + "/quarantine/" + reason, encoding: .utf8)
    #expect(text.contains("answered 403") && text.contains("its sessions begin with other-"))
    let retry = try EncoderWorker.run("quarantine", "retry", "--spool", outbox, "--all")
    #expect(retry.status == 0, "\(retry.errors)")
    collector = try collect(ingest.port, idle: 1)
    try spool.waitUntil("all are there") { (try? shown().count) == 3 }
    #expect(try stop(collector) == 0 && ingest.stop() == 0)
  }

  @Test func enqueueHandsOverAndKnowsWhatIsThere() throws {
    let ingest = try worker()
    func enqueue(_ options: String...) throws -> Tool.Result {
      try Tool.run(
        EncoderWorker.path,
        ["enqueue", Fixture("jittered").path, "--to", "http://127.0.0.1:\(ingest.port)/", "--token-file", token]
          + options)
    }
    for _ in 0..<2 {
      let result = try enqueue("--session", "lab")
      #expect(result.status == 0 && result.errors.contains("has the batch"), "\(result.errors)")
    }
    try spool.waitUntil("it is published") { try spool.names("output/lab").contains("session.json") }
    // Nobody waits for a wrong token.
    let wrong = try Self.secret("another-token-012345678\n", at: spool.scratch.path("wrong"))
    let refused = try enqueue("--session", "lab2", "--token-file", wrong)
    #expect(refused.status == 75 && refused.errors.contains("answered 401"), "\(refused.errors)")
    let both = try enqueue("--spool", outbox)
    #expect(both.status == 64, "\(both.errors)")
    #expect(ingest.stop() == 0)
    #expect(try spool.names("incoming").isEmpty && spool.names("quarantine").isEmpty)
  }

  /// An answer may name any number of seconds.
  @Test func enqueueEndsWhenItWouldHaveToWaitTooLong() throws {
    let server = try ReceiverServer()
    server.answer(ReceiverServer.Answer(status: 503, headers: ["Retry-After": "\(Int.max)"]))
    let result = try EncoderWorker.run(
      "enqueue", Fixture("jittered").path, "--session", "lab", "--to", "http://127.0.0.1:\(server.port)")
    #expect(result.status == 75 && result.errors.contains("answered 503"), "\(result.status) \(result.errors)")
  }

  @Test func collectSaysWhereItsBatchesWaitAndWhatIsLeft() throws {
    try write(0..<2)
    let state = spool.scratch.path("state")
    // Nobody listens at this port. The command is stopped once it has tried to send.
    let script = """
      "$0" "$@" 2>log & collect=$!
      until grep -q "nothing is lost" log || ! kill -0 $collect; do sleep 0.05; done
      kill -TERM $collect; wait $collect; status=$?; cat log; exit $status
      """
    let result = try Tool.run(
      "sh",
      [
        "-c", script, EncoderWorker.path, "collect", folder, "--batch-every", "1", "--to", "http://127.0.0.1:9",
        "--token-file", token,
      ], in: spool.scratch.url, environment: ["XDG_STATE_HOME": state])
    #expect(result.status == 0)
    #expect(result.text.contains("to http://127.0.0.1:9, by way of \(state)/encoder-worker/collect-"), "\(result.text)")
    #expect(result.text.contains("1 batch in \(state)/encoder-worker/collect-"), "\(result.text)")
  }
}
