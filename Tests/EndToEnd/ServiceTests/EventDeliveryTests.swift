import Foundation
import TestSupport
import Testing

@testable import Notifying

/// A worker delivers the event of a batch before it retires the batch: also while the receiver is away, fails or hangs,
/// and after workers are stopped or killed.
@Suite struct EventDeliveryTests {
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  private func claimed() throws -> [String] {
    (FileManager.default.subpaths(atPath: spool.path + "/claimed") ?? []).filter { $0.split(separator: "/").count == 3 }
      .map { URL(fileURLWithPath: $0).lastPathComponent }.sorted()
  }

  private func addSmall(_ count: Int) throws {
    for number in 0..<count {
      try spool.addSmall("s@\(number)", startMs: 1_767_859_512_340 + Int64(number) * 2_000)
    }
  }

  @Test func eventIsSignedAndDeliveredBeforeTheBatchIsRetired() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(hold: true, watch: [spool.path + "/done", spool.path + "/quarantine"]))
    let secret = try spool.scratch.file("secret", Array("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n".utf8))
    chmod(secret, 0o600)
    try spool.add("gap")
    try spool.add(file: "bad", [1, 2, 3])
    let worker = try spool.start(
      "--keep-batches", "--notify", receiver.url, "--notify-secret-file", secret, "--jobs", "1")
    try spool.waitUntil("both events have arrived") { try receiver.log().count == 2 }
    #expect(try claimed() == ["bad", "gap"])
    #expect(try spool.names("done").isEmpty && spool.names("quarantine").isEmpty)
    receiver.answer()
    try spool.waitUntil("both batches are done") {
      try spool.names("done") == ["gap"] && spool.names("quarantine") == ["bad", "bad.reason.json"]
    }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    let accepted = try receiver.accepted()
    #expect(accepted.count == 2)
    let signer = try WebhookSigner(file: secret)
    for request in accepted {
      let event = try request.event
      #expect(request.path == "/hook?token=hush" && request.headers["content-type"] == "application/json")
      #expect(request.headers["idempotency-key"] == event.key && request.headers["webhook-id"] == event.key)
      let time = try #require(request.headers["webhook-timestamp"].flatMap { Int64($0) })
      let signature = signer.signature(id: event.key, timeS: time, body: Array(request.body.utf8))
      #expect(request.headers["webhook-signature"] == signature)
      #expect(try JSONSchema("docs/event.schema.json").faults(of: request.body) == [])
    }
    #expect(try receiver.log().allSatisfy { !$0.isRetired })
  }

  @Test func encodingContinuesWhileTheReceiverIsAway() throws {
    let receiver = try ReceiverServer()
    receiver.kill()
    try addSmall(6)
    let server = try RunningServer(["run", "--spool", spool.path, "--notify", receiver.url])
    try spool.waitUntil("all batches are published, and none is retired") {
      let metrics = try server.get("/metrics").text
      return metrics.contains("encoder_worker_notifications_pending 6")
    }
    #expect(try claimed().count == 6 && PublishedSession(spool.output + "/s").manifests.count == 6)
    try spool.waitUntil("the readiness check tells the failure") { try server.get("/readyz").text.contains("6 wait") }
    let ready = try server.get("/readyz")
    #expect(ready.status == 200 && !ready.text.contains("hush"))
    try receiver.restart()
    try spool.waitUntil("all batches are retired") {
      try spool.names("claimed").allSatisfy { _ in try claimed().isEmpty }
    }
    try spool.waitUntil("the metrics count the events") {
      try server.get("/metrics").text.contains("encoder_worker_notifications_total{outcome=\"sent\"} 6")
    }
    #expect(try receiver.events().map(\.batch).sorted() == (0..<6).map { "s@\($0)" })
    #expect(try server.get("/readyz").text == "ok\n")
    #expect(server.stop() == 0)
    #expect(try spool.isAtRest)
  }

  @Test func noMoreBatchesAreClaimedThanMayWait() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(status: 503))
    try addSmall(8)
    let server = try RunningServer([
      "run", "--spool", spool.path, "--notify", receiver.url, "--notify-pending", "3", "--jobs", "1",
    ])
    try spool.waitUntil("the worker is not ready") { try server.get("/readyz").status == 503 }
    let reason = try server.get("/readyz").text
    #expect(reason.contains("--notify-pending") && reason.contains("503") && !reason.contains("hush"), "\(reason)")
    #expect(try claimed().count == 3 && spool.names("incoming").count == 5)
    receiver.answer()
    try spool.waitUntil("all batches are retired") { try spool.names("incoming").isEmpty && claimed().isEmpty }
    #expect(try Set(receiver.events().map(\.batch)).count == 8)
    #expect(server.stop() == 0)
  }

  @Test func receiverThatHangsIsTriedAgain() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(hold: true))
    try spool.add("single-frame")
    let worker = try spool.start("--notify", receiver.url)
    try spool.waitUntil("a second attempt has arrived") { try receiver.log().count == 2 }
    #expect(try claimed() == ["single-frame"])
    receiver.answer()
    try spool.waitUntil("the batch is retired") { try claimed().isEmpty && spool.names("incoming").isEmpty }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try Set(receiver.events().map(\.key)).count == 1)
  }

  @Test func drainGivesUpAndTheNextOneSendsTheSameKey() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(status: 500))
    try addSmall(3)
    let result = try spool.drain("--notify", receiver.url, "--notify-timeout", "2", verifying: false)
    #expect(result.status == 75 && result.errors.contains("3 batches are put back"), "\(result.errors)")
    #expect(try spool.names("incoming") == ["s@0", "s@1", "s@2"] && spool.names("claimed").isEmpty)
    let sent = try receiver.log().map { try $0.event.key }
    receiver.answer()
    #expect(try spool.drain("--notify", receiver.url).status == 0)
    #expect(try spool.isAtRest)
    let events = try receiver.events()
    #expect(events.map(\.batch).sorted() == ["s@0", "s@1", "s@2"])
    #expect(events.allSatisfy { $0.event == "batch.duplicate" } && Set(events.map(\.key)).isSuperset(of: sent))
  }

  @Test func drainGivesUpOnAReceiverThatHangs() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(hold: true))
    try addSmall(6)
    let result = try spool.drain("--notify", receiver.url, "--notify-timeout", "1", verifying: false)
    #expect(result.status == 75 && result.errors.contains("no answer"), "\(result.errors)")
    #expect(try spool.names("incoming").count == 6 && spool.names("claimed").isEmpty)
    // The request was cancelled before its own timeout.
    #expect(try receiver.log().count == 4)
  }

  @Test func stoppedWorkerPutsUndeliveredBatchesBack() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(hold: true))
    try addSmall(6)
    let worker = try spool.start("--notify", receiver.url)
    try spool.waitUntil("all are published") { try spool.names("incoming").isEmpty && receiver.log().count == 4 }
    try spool.waitUntil("the last is published") {
      (try? PublishedSession(spool.output + "/s").manifests.count) == 6
    }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try spool.names("incoming").count == 6 && spool.names("claimed").isEmpty)
    receiver.answer()
    #expect(try spool.drain("--notify", receiver.url).status == 0)
    #expect(try Set(receiver.events().map(\.batch)).count == 6)
  }

  /// Kills while a published batch waits for the delivery of its event do not count against the batch.
  @Test func killedWorkersLoseNoEventAndQuarantineNoPublishedBatch() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(status: 503))
    try spool.add("gap")
    for number in 1...8 {
      let worker = try spool.start("--notify", receiver.url)
      try spool.waitUntil("an event has arrived") {
        try receiver.log().filter { $0.status == 503 }.count >= number && claimed() == ["gap"]
      }
      usleep(20_000)
      worker.signal(SIGKILL)
      #expect(try worker.wait() == -SIGKILL)
    }
    receiver.answer()
    #expect(try spool.drain("--notify", receiver.url).status == 0)
    #expect(try spool.isAtRest && spool.names("quarantine").isEmpty)
    let events = try receiver.log().map { try $0.event }
    #expect(Set(events.map(\.key)).count == 1)
    #expect(events.first?.event == "batch.published" && events.last?.event == "batch.duplicate")
  }
}
