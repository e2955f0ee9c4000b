import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import JSON
@testable import Remote

/// Commands and workers with a queue of SQS and a store, and notifications over HTTP.
@Suite(.enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct SQSWorkerTests {
  private let store: StoreServer
  private let queue: MessageQueue
  private let client: S3Client
  private let scratch: ScratchDirectory
  private let prefix = UUID().uuidString

  init() throws {
    (store, scratch) = (try StoreServer.shared.get(), try ScratchDirectory())
    queue = try MessageQueue(store)
    let environment = store.environment
    client = try S3Client(
      S3Location("s3://\(StoreServer.bucket)/\(prefix)"), S3Settings(environment: { environment[$0] }))
  }

  private var location: String { "s3://\(StoreServer.bucket)/\(prefix)" }
  private var remote: [String] { ["--queue", queue.address, "--store", location] }
  private var environment: [String: String] { store.environment.merging(["TMPDIR": scratch.path("")]) { $1 } }

  private func run(_ words: String...) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words + remote, environment: environment)
  }

  private func keys(_ part: String) throws -> [String] { try client.list(part, after: nil).map(\.key) }

  private func notification(of name: String) -> String {
    let key = PercentEncoding.encoded("\(prefix)/incoming/\(name)")
    return """
      {"Records":[{"eventSource":"minio:s3","eventName":"s3:ObjectCreated:Put",\
      "s3":{"bucket":{"name":"\(StoreServer.bucket)"},"object":{"key":"\(key)"}}}]}
      """
  }

  @Test func enqueuedFramesArePublishedAsASession() throws {
    let queued = try run("enqueue", "--session", "phone", Fixture("jittered").path)
    #expect(queued.status == 0 && queued.text.hasPrefix("phone@"), "\(queued.errors)")
    #expect(try queue.counts() == (1, 0))
    let done = try run("run", "--drain", "--hls")
    #expect(done.status == 0 && done.errors.contains("1 batch published"), "\(done.errors)")
    #expect(try keys("output/phone/").contains("output/phone/session.json") && queue.counts() == (0, 0))
    // A message that comes again, and a batch that nobody can encode.
    _ = try run("enqueue", "--session", "phone", Fixture("jittered").path)
    #expect(try client.put("incoming/bad", .bytes([1, 2, 3]), .archive, when: .absent) != nil)
    try queue.send("bad")
    let again = try run("run", "--drain")
    #expect(again.status == 65 && again.errors.contains("1 published before"), "\(again.errors)")
    #expect(try keys("quarantine/") == ["quarantine/bad", "quarantine/bad.reason.json"] && queue.counts() == (0, 0))
  }

  @Test func reconcileQueuesOnlyIntoAnEmptyQueue() throws {
    #expect(try client.put("incoming/a.tar", .bytes([1]), .archive, when: .absent) != nil)
    #expect(try run("reconcile", "--json").text == "{\"misnamed\":0,\"owed\":1,\"queued\":1}\n")
    let again = try run("reconcile", "--json")
    #expect(again.status == 0 && again.text == "{\"misnamed\":0,\"owed\":1,\"queued\":0}\n")
    #expect(again.errors.contains("nothing is queued") && again.errors.contains("when it is empty"))
  }

  @Test func stoppedWorkerHandsItsBatchBackAtOnce() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(hold: true))
    _ = try run("enqueue", "--session", "phone", Fixture("jittered").path)
    let worker = try RunningWorker(
      ["run"] + remote + ["--notify", receiver.url], environment: environment)
    try waitUntil("the event has arrived") { try receiver.log().count == 1 }
    #expect(try queue.counts() == (0, 1) && keys("receipts/").isEmpty)
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try queue.counts() == (1, 0))
    receiver.answer()
    let done = try run("run", "--drain", "--notify", receiver.url)
    #expect(done.status == 0, "\(done.errors)")
    #expect(try queue.counts() == (0, 0) && keys("receipts/").count == 1 && keys("attempts/").isEmpty)
  }

  @Test func notificationOverHTTPIsWorkedOn() throws {
    let archive = try Tool.output("tar", ["-cf", "-", "-C", Fixture("exact-1fps").path, "."])
    #expect(try client.put("incoming/film@1.tar", .bytes(Array(archive)), .archive, when: .absent) != nil)
    let tokens = try scratch.file("tokens", Array("store 0123456789abcdef\nkiosk fedcba9876543210 kiosk-\n".utf8))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: tokens)
    let worker = try RunningIngest(remote + ["--ingest-tokens", tokens], environment: environment)
    func post(_ token: String, _ body: String) throws -> Int {
      try worker.send(
        "POST", "/hooks/s3", ["Authorization": "Bearer \(token)", "Content-Type": "application/json"],
        body: Data(body.utf8)
      ).status
    }
    #expect(try post("unknown-token-0000", notification(of: "film@1.tar")) == 401)
    #expect(try post("fedcba9876543210", notification(of: "film@1.tar")) == 403)
    #expect(try post("0123456789abcdef", "{}") == 400 && queue.counts() == (0, 0))
    #expect(try post("0123456789abcdef", notification(of: "film@1.tar")) == 200)
    try waitUntil("the batch is published") { try keys("receipts/").count == 1 }
    #expect(worker.stop() == 0)
  }

  @Test func addressesAreCheckedAndShownWithoutSecrets() throws {
    func call(_ words: String...) throws -> Tool.Result {
      try Tool.run(EncoderWorker.path, words + ["--store", location], environment: environment)
    }
    for address in ["sqs://", "sqs://key:secret@replay", "kafka://secret", "https://sqs.example/1/replay?secret=1"] {
      let refused = try call("run", "--drain", "--queue", address)
      #expect(refused.status == 64 && !refused.errors.contains("secret"), "\(refused.errors)")
      #expect(refused.errors.contains("--queue: the queue's address"), "\(refused.errors)")
    }
    let missing = try call("run", "--drain", "--queue", queue.address + "x")
    #expect(missing.status == 75 && missing.errors.contains("create the queue"), "\(missing.errors)")
    let long = try call("run", "--drain", "--lease", "50000", "--queue", queue.address)
    #expect(long.status == 64 && long.errors.contains("43200"), "\(long.errors)")
  }
}
