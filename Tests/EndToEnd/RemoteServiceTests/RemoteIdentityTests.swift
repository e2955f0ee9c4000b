import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// A worker with a role whose credentials expire every few seconds, and a store that is busy, and withdraws permissions.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct RemoteIdentityTests {
  private let queue: QueueServer
  private let identity: IdentityServer
  private let store: StoreServer
  private let scratch: ScratchDirectory

  init() throws {
    (queue, identity, scratch) = (try QueueServer(), try IdentityServer(), try ScratchDirectory())
    store = try StoreServer(variables: [
      "STORE_ISSUED": identity.issuedPath, "STORE_CONTROL": scratch.path("control"),
    ])
  }

  private func rules(_ json: String) throws {
    try Data(json.utf8).write(to: URL(fileURLWithPath: scratch.path("control")), options: .atomic)
  }

  private func environment(_ step: IdentityServer.Step) throws -> [String: String] {
    store.environment.merging(try identity.environment(step)) { $1 }.merging(["TMPDIR": scratch.path("")]) { $1 }
  }

  /// Uploads a batch of two pictures and queues it, whatever the store's rules for others are.
  private func submit(_ number: Int) throws {
    let startMs = 1_767_859_512_340 + Int64(number) * 2_000
    let pictures = try (0..<2).map { index in
      let path = Fixture("exact-1fps").path + "/000\(index).jpg"
      return ("\(startMs + Int64(index) * 1_000).jpg", Array(try Data(contentsOf: URL(fileURLWithPath: path))))
    }
    try store.put("incoming/phone@\(number).tar", Data(Archive.tar(pictures)))
    _ = try queue.command("XADD", "encoder-worker", "*", "batch", "phone@\(number).tar")
  }

  private func start(_ step: IdentityServer.Step) throws -> RunningWorker {
    try RunningWorker(
      ["run", "--queue", queue.url, "--store", "s3://replay", "--jobs", "2"], environment: try environment(step),
      under: ["sh", "-c", "exec \"$@\" 2>>'\(scratch.path("log"))'", "sh"])
  }

  private var log: String { (try? String(contentsOfFile: scratch.path("log"), encoding: .utf8)) ?? "" }

  @Test(arguments: [IdentityServer.Step.webIdentity, .container])
  func nothingIsLostWhileCredentialsExpireAndPermissionsAreWithdrawn(step: IdentityServer.Step) throws {
    identity.set(.init(lifeS: 3))
    try rules(#"{"busy": 0.1}"#)
    let worker = try start(step)
    let seconds = step == .webIdentity ? Extent.of(12, full: 600) : 12
    var number = 0
    for second in 0..<seconds {
      switch second % 12 {
      case 4: try rules(#"{"deny": true}"#)
      case 6: try rules(#"{"busy": 0.1}"#)
      case 8: identity.set(.init(lifeS: 3, fault: "status-500"))
      case 10: identity.set(.init(lifeS: 3))
      default: break
      }
      for _ in 0..<2 {
        try submit(number)
        number += 1
      }
      sleep(1)
    }
    try rules("{}")
    let submitted = number
    try waitUntil("all batches have a receipt", pauseMs: 200) {
      try store.keys("receipts/").count == submitted && store.keys("incoming/").isEmpty
    }
    #expect(worker.isRunning)
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try store.keys("output/phone/").count { $0.hasSuffix(".mp4") } == submitted)
    #expect(try store.keys("quarantine/").isEmpty)
    #expect(try identity.issued().count >= seconds / 4)
    // The log says why the worker waited, and shows no secret.
    #expect(log.contains("status 403") && log.contains(".recovered"), "\(log.suffix(4_000))")
    #expect(!log.contains("hush") && !log.isEmpty)
    for made in try identity.issued() { #expect(!log.contains(made.secret) && !log.contains(made.token)) }
  }

  @Test func storeWithAnotherClockIsServed() throws {
    try rules(#"{"skewS": 600}"#)
    try submit(0)
    let result = try Tool.run(
      EncoderWorker.path, ["run", "--drain", "--queue", queue.url, "--store", "s3://replay"],
      environment: try environment(.container))
    #expect(result.status == 0 && result.errors.contains("1 batch published"), "\(result.errors)")
    #expect(result.errors.components(separatedBy: "set the clock").count == 2, "\(result.errors)")
  }

  @Test func missingOrFailingIdentityIsReportedAndNoRequestIsUnsigned() throws {
    try submit(0)
    let words = ["run", "--drain", "--queue", queue.url, "--store", "s3://replay"]
    identity.set(.init(fault: "status-403"))
    for step in [IdentityServer.Step.webIdentity, .container, .instance, .profile] {
      let result = try Tool.run(EncoderWorker.path, words, environment: try environment(step))
      #expect(result.status == 75 && result.errors.contains("get credentials from "), "\(result.errors)")
      #expect(!result.errors.contains("hush"))
    }
    let variables = try environment(.instance).merging([
      "AWS_EC2_METADATA_SERVICE_ENDPOINT": "", "AWS_EC2_METADATA_DISABLED": "true",
    ]) { $1 }
    let none = try Tool.run(EncoderWorker.path, words, environment: variables)
    #expect(none.status == 64 && none.errors.contains("--unsigned"), "\(none.errors)")
    let unsigned = try Tool.run(EncoderWorker.path, words + ["--unsigned"], environment: variables)
    #expect(unsigned.status == 75 && unsigned.errors.contains("status 403"), "\(unsigned.errors)")
    #expect(try store.keys("receipts/").isEmpty && queue.command("XLEN", "encoder-worker") == ["1"])
  }
}
