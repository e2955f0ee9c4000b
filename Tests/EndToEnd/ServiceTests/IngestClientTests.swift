import CLinux
import Foundation
import TestSupport
import Testing

/// Clients of `run --ingest` that are slow, leave, or send no HTTP.
@Suite struct IngestClientTests {
  private let spool: TestSpool
  private let ingest: RunningIngest

  init() throws {
    spool = try TestSpool()
    ingest = try RunningIngest(["--spool", spool.path])
  }

  private static let head = "PUT /v1/batches/slow.tar HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"

  private func send(_ text: String, to file: Int32) -> Bool {
    let bytes = Array(text.utf8)
    return Foundation.send(file, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }

  @Test func slowClientsKeepNobodyOut() throws {
    clinux_raise_descriptor_limit()
    var slow: [Int32] = []
    defer { for file in slow { close(file) } }
    for _ in 0..<512 {
      let file = try ingest.connection()
      slow.append(file)
      // The server may have closed it to make room.
      _ = send(Self.head + "some bytes", to: file)
    }
    #expect(try ingest.send("PUT", "/v1/batches/good.tar", body: IngestTests.batch("film")).status == 201)
    let hanging = slow.count { file in
      // A connection that the server has closed is readable.
      var polled = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
      return poll(&polled, 1, 0) == 0
    }
    #expect(hanging > 0)
  }

  @Test func slowBodyIsCutAndLeavesNothing() throws {
    let file = try ingest.connection()
    defer { close(file) }
    #expect(send(Self.head, to: file))
    try waitUntil("the body is a draft") { try spool.names("tmp").count == 1 }
    var polled = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
    while poll(&polled, 1, 500) == 0 { _ = send("x", to: file) }
    #expect(try RunningIngest.reply(from: file).status == 408)
    try waitUntil("the draft is removed") { try spool.names("tmp").isEmpty }
  }

  @Test func clientsThatLeaveHoldNothing() throws {
    for _ in 0..<Extent.of(40, full: 1_000) {
      let file = try ingest.connection()
      _ = send(Self.head + "some bytes", to: file)
      close(file)
    }
    try waitUntil("the drafts are removed") { try spool.names("tmp").isEmpty }
    try waitUntil("no body is open") {
      try ingest.send("GET", "/metrics").text.contains("encoder_worker_ingest_bodies_open 0\n")
    }
  }

  /// A body beyond the limit is refused where it exceeds it, although its size was not announced.
  @Test func endlessBodyIsRefusedAtTheLimit() throws {
    let other = try TestSpool()
    let ingest = try RunningIngest(["--spool", other.path, "--limit", "unpacked-bytes=1000000"])
    let file = try ingest.connection()
    defer { close(file) }
    #expect(
      send("PUT /v1/batches/a.tar HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", to: file))
    let chunk = "4000\r\n" + String(repeating: "x", count: 0x4000) + "\r\n"
    var polled = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
    while poll(&polled, 1, 0) == 0, send(chunk, to: file) {}
    #expect(try RunningIngest.reply(from: file).status == 413)
    try waitUntil("the draft is removed") { try other.names("tmp").isEmpty }
  }

  @Test func badRequestsLeaveMemoryFlat() throws {
    var random = Random(seed: 45)
    let parts = [
      "PUT", "POST", "GET", " ", "/v1/batches/", "/v1/sessions/s/frames?t=", "1767859512340", "HTTP/1.1", "\r\n",
      "\r\n\r\n",
      "Content-Length: ", "Transfer-Encoding: chunked", "Host: localhost", "Content-Digest: sha-256=:", ":", "99", "\0",
      "Authorization: Bearer ", "Idempotency-Key: ", "\u{E9}", "%00", "%2F", "a", "zzzz", "5\r\nhello\r\n", "0\r\n\r\n",
    ]
    func round(_ count: Int) throws {
      for _ in 0..<count {
        let file = try ingest.connection()
        defer { close(file) }
        var text = Bool.random(using: &random) ? "PUT /v1/batches/a HTTP/1.1\r\nHost: localhost\r\n" : ""
        for _ in 0..<Int.random(in: 1...12, using: &random) {
          text += parts[Int.random(in: 0..<parts.count, using: &random)]
        }
        _ = send(text, to: file)
        shutdown(file, Int32(SHUT_WR))
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while recv(file, &buffer, buffer.count, 0) > 0 {}
      }
    }
    try round(500)
    let before = try ingest.residentKiB()
    try round(Extent.of(2_000, full: 1_000_000))
    #expect(try ingest.residentKiB() < before + 32 << 10)
    #expect(try ingest.send("PUT", "/v1/batches/good.tar", body: IngestTests.batch("film")).status == 201)
    try waitUntil("the drafts are removed") { try spool.names("tmp").isEmpty }
  }
}
