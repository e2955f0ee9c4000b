import FileSystem
import Foundation
import Sessions
import TestSupport
import Testing

@testable import Remote

/// Headers of what is written: `--store-header`.
@Suite struct StoreHeaderTests {
  @Test(arguments: [
    ("x-amz-storage-class: STANDARD_IA", "x-amz-storage-class", "STANDARD_IA"),
    ("X-Amz-Server-Side-Encryption:aws:kms", "x-amz-server-side-encryption", "aws:kms"),
    ("x-amz-tagging: \t", "x-amz-tagging", nil),
    (
      "x-amz-server-side-encryption-aws-kms-key-id:  arn:aws:kms:eu:1:key/2 ",
      "x-amz-server-side-encryption-aws-kms-key-id",
      "arn:aws:kms:eu:1:key/2"
    ),
    ("x-amz-tagging: team=replay&cost=a%20b", "x-amz-tagging", "team=replay&cost=a%20b"),
    ("x-amz-meta-origin: two   blanks", "x-amz-meta-origin", "two blanks"),
    ("x-amz-storage-class: GLACIER_IR", "x-amz-storage-class", "GLACIER_IR"),
  ])
  func headerIsRead(text: String, name: String, value: String?) throws {
    guard let value else {
      #expect(throws: Failure.self) { try StoreHeader(text) }
      return
    }
    let header = try StoreHeader(text)
    #expect(header.name == name && header.value == value)
  }

  static let wrong = [
    "", ":", "x-amz-storage-class", "x-amz-: a", "x-amz-storage-class:", "x-amz-storage-class: ",
    "x-amz-storage-class : a", "x-amz-a b: c", "x-amz-\u{212A}ind: a", "x-amz-tagging: a\r\nX-Evil: 1",
    "x-amz-tagging: a\nb", "x-amz-tagging: ü", "x-amz-tagging: a\u{7F}", "x-amz-tagging: a\0b",
    "x-amz-tagging: " + String(repeating: "a", count: 2_048), "x-amz-" + String(repeating: "a", count: 200) + ": b",
    "authorization: a", "Host: a", "if-match: a", "if-none-match: *", "content-type: a", "Content-Length: 1",
    "transfer-encoding: chunked", "x-amz-content-sha256: a", "x-amz-date: a", "x-amz-security-token: a",
    "x-amz-meta-sha256: a", "x-amz-copy-source: a", "x-amz-copy-source-if-match: a",
    "x-amz-metadata-directive: REPLACE",
    "x-amz-checksum-sha256: a", "x-amz-write-offset-bytes: 0", "x-amz-server-side-encryption-customer-key: a",
    "x-amz-storage-class: GLACIER", "x-amz-storage-class: deep_archive",
  ]

  @Test(arguments: wrong) func wrongHeaderIsWrongUsage(text: String) throws {
    let failure = try #require(throws: Failure.self) { try StoreHeader(text) }
    #expect(failure.kind == .usage && failure.description.utf8.count < 400)
    #expect(failure.description.allSatisfy { !$0.isNewline })
  }

  @Test func lastHeaderOfANameCounts() throws {
    let headers = try ["x-amz-tagging: a=1", "x-amz-storage-class: A", "x-amz-tagging: b=2"].map(StoreHeader.init(_:))
    #expect(headers.ofWrites.map { "\($0.name)=\($0.value)" } == ["x-amz-storage-class=A", "x-amz-tagging=b=2"])
    #expect(headers.ofCopies.map(\.name) == ["x-amz-storage-class", "x-amz-tagging", "x-amz-tagging-directive"])
    #expect([StoreHeader]().ofCopies.isEmpty)
  }

  private static let given = [
    "x-amz-server-side-encryption: aws:kms", "x-amz-server-side-encryption-aws-kms-key-id: alias/replay",
    "x-amz-storage-class: STANDARD_IA", "x-amz-tagging: team=replay",
  ]

  private func client(_ server: StoreServer, _ location: String) throws -> S3Client {
    var settings = try S3Settings(
      environment: { server.environment[$0] }, headers: Self.given.map(StoreHeader.init(_:)))
    settings.pauseMs = 1
    return try S3Client(S3Location(location), settings)
  }

  /// Returns the headers of an object, or its tags, without the client under test.
  private func told(_ server: StoreServer, _ key: String, query: String = "") throws -> String {
    let words = query.isEmpty ? ["-I"] : []
    return try Tool.run(
      "curl", ["--noproxy", "*", "-sSf"] + words + ["\(server.endpoint)/open/\(StoreServer.bucket)/\(key)\(query)"]
    ).text.lowercased()
  }

  /// The store refuses headers that are not signed.
  @Test(.enabled(if: StoreServer.isInstalled, Comment(rawValue: StoreServer.reason)))
  func headersAreSignedAndWrittenWithEachObject() throws {
    let server = try StoreServer.shared.get()
    let place = UUID().uuidString
    let client = try client(server, "s3://\(StoreServer.bucket)/\(place)")
    let tag = try #require(try client.put("written", .bytes([1, 2, 3]), .json, when: .absent))
    try server.put("\(place)/foreign", Data([4, 5]))
    let foreign = try #require(try client.head("foreign")?.tag)
    #expect(try client.copy("written", tag, to: "copied") && client.copy("foreign", foreign, to: "taken"))
    for key in ["written", "copied", "taken"] {
      let headers = try told(server, "\(place)/\(key)")
      #expect(headers.contains("x-amz-server-side-encryption: aws:kms"), "\(key): \(headers)")
      #expect(headers.contains("x-amz-storage-class: standard_ia"), "\(key): \(headers)")
      #expect(try told(server, "\(place)/\(key)", query: "?tagging").contains("<key>team</key>"), "\(key)")
    }
    // Its tag need not be an MD5: the object's own sum is compared.
    #expect(try client.get("written", limit: 3) == StoredObject(bytes: [1, 2, 3], tag: tag))
    #expect(try client.get("copied", limit: 3)?.bytes == [1, 2, 3] && client.get("taken", limit: 3)?.bytes == [4, 5])
    #expect(try client.list("", after: nil).count == 4)
    try client.requireConditions(tryingAt: "conditions", name: "here")
    try client.delete("written", tag)
    #expect(try client.head("written") == nil)
  }

  @Test(.enabled(if: StoreServer.isInstalled, Comment(rawValue: StoreServer.reason)))
  func headersAreNotSentWithReads() throws {
    let server = try StoreServer("hostile.py")
    defer { server.stop() }
    let sent = try #require(try client(server, "s3://replay").get("echo", limit: 1_000)).bytes
    let names = String(decoding: sent, as: UTF8.self).split(separator: " ")
    #expect(names == ["x-amz-content-sha256", "x-amz-date"], "\(names)")
  }

  @Test func wrongHeaderOfACommandIsWrongUsage() throws {
    for (command, header) in zip(
      [
        ["enqueue", "--queue", "redis://localhost", "--session", "s", Fixture("gap").path], ["reconcile"],
        ["config", "check"], ["end", "s"], ["quarantine", "purge", "--all"],
      ], ["host: a", "x-amz-tagging: a\nb", "content-type: a", "if-match: a", "x-amz-copy-source: a"])
    {
      let result = try Tool.run(
        EncoderWorker.path, command + ["--store", "s3://replay", "--store-header", header],
        environment: ["AWS_ENDPOINT_URL": "http://127.0.0.1:1"])
      #expect(result.status == 64 && result.errors.contains("--store-header"), "\(command): \(result.errors)")
    }
    let alone = try Tool.run(EncoderWorker.path, ["verify", "a", "--store-header", "x-amz-tagging: a=b"])
    #expect(alone.status == 64 && alone.errors.contains("--store-header works with --store"), "\(alone.errors)")
  }

  /// A variable separates values by blanks; a file has one in a line.
  @Test func headersAreSettings() throws {
    let scratch = try ScratchDirectory()
    let file = try scratch.file(
      "settings.conf", Array("store-header = x-amz-tagging: a=b\nstore-header = x-amz-storage-class: ONEZONE_IA\n".utf8)
    )
    let shown = try Tool.run(
      EncoderWorker.path, ["config", "show", "reconcile", "--config", file, "--json"],
      environment: ["ENCODER_WORKER_STORE_HEADER": "x-amz-server-side-encryption:aws:kms x-amz-meta-a:b"])
    #expect(shown.status == 0, "\(shown.errors)")
    for value in [
      "x-amz-tagging: a=b", "x-amz-storage-class: ONEZONE_IA", "x-amz-server-side-encryption:aws:kms", "x-amz-meta-a:b",
    ] {
      #expect(shown.text.contains("\"\(value)\""), "\(shown.text)")
    }
    let parted = try Tool.run(
      EncoderWorker.path, ["config", "show", "reconcile"],
      environment: ["ENCODER_WORKER_STORE_HEADER": "x-amz-server-side-encryption: aws:kms"])
    #expect(parted.status == 64 && parted.errors.contains("write NAME:VALUE without a blank"), "\(parted.errors)")
  }
}
