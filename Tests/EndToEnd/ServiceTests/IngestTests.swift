import Foundation
import TestSupport
import Testing

/// `run --ingest`: batches over HTTP, and the reasons for which they are refused.
@Suite struct IngestTests {
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  /// A tar of two frames of a session of its own.
  static func batch(_ session: String, startMs: Int64 = 1_767_859_512_340) throws -> Data {
    let scratch = try ScratchDirectory()
    for frame in 0...1 {
      try scratch.file(
        "\(startMs + Int64(frame) * 1_000).jpg", Fixture("exact-1fps").bytes(String(format: "%04d.jpg", frame)))
    }
    try scratch.file("batch.json", Array(#"{"version":1,"session":"\#(session)"}"#.utf8))
    return try Tool.output("tar", ["-C", scratch.path, "--mtime=@0", "-cf", "-"] + names(in: scratch.path))
  }

  private func problem(_ reply: RunningServer.Reply) throws -> [String: Any] {
    #expect(reply.headers["content-type"] == "application/problem+json")
    let problem = try #require(try JSONSerialization.jsonObject(with: reply.body) as? [String: Any])
    #expect(problem["status"] as? Int == reply.status)
    for key in ["type", "title", "detail", "advice"] { #expect((problem[key] as? String)?.isEmpty == false, "\(key)") }
    return problem
  }

  @Test func batchIsTakenOnceAndKnownAfterItsPublication() throws {
    let ingest = try RunningIngest(["--spool", spool.path])
    let batch = try Self.batch("film")
    let first = try ingest.send("PUT", "/v1/batches/a%20b.tar", body: batch)
    #expect(first.status == 201 && first.headers["location"] == "/v1/batches/a%20b.tar", "\(first.text)")
    try spool.waitUntil("published") { try spool.names("output/film").contains("session.json") }
    let again = try ingest.send("PUT", "/v1/batches/a%20b.tar", body: batch)
    #expect(again.status == 200 && again.text == first.text)
    let other = try ingest.send("PUT", "/v1/batches/a%20b.tar", body: try Self.batch("other"))
    #expect(try other.status == 409 && problem(other)["title"] != nil)
    let receipt = try ingest.send("GET", "/v1/batches/a%20b.tar")
    #expect(receipt.status == 200 && receipt.text.contains("\"sha256\""))
    #expect(try ingest.send("GET", "/v1/batches/none").status == 404)
    let metrics = try ingest.send("GET", "/metrics").text
    #expect(metrics.contains("encoder_worker_ingest_requests_total{outcome=\"taken\"} 1\n"), "\(metrics)")
    #expect(metrics.contains("encoder_worker_ingest_bodies_open 0\n"))
    #expect(ingest.stop() == 0)
    #expect(try spool.names("tmp").isEmpty && spool.names("incoming").isEmpty && spool.names("quarantine").isEmpty)
    // The receipt outlives the worker.
    let next = try RunningIngest(["--spool", spool.path])
    #expect(try next.send("PUT", "/v1/batches/a%20b.tar", body: batch).status == 200)
  }

  @Test func bodyInChunksAfterA100ContinueIsTaken() throws {
    let ingest = try RunningIngest(["--spool", spool.path])
    let batch = try Self.batch("film")
    let file = try ingest.connection()
    defer { close(file) }
    let handle = FileHandle(fileDescriptor: file, closeOnDealloc: false)
    let head =
      "PUT /v1/batches/b.tar HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
      + "Connection: close\r\n\r\n"
    try handle.write(contentsOf: Data(head.utf8))
    let interim = try #require(try handle.read(upToCount: 25))
    #expect(String(decoding: interim, as: UTF8.self) == "HTTP/1.1 100 Continue\r\n\r\n")
    for start in stride(from: 0, to: batch.count, by: 3_000) {
      let part = batch[start..<min(start + 3_000, batch.count)]
      try handle.write(contentsOf: Data("\(String(part.count, radix: 16))\r\n".utf8) + part + Data("\r\n".utf8))
    }
    try handle.write(contentsOf: Data("0\r\n\r\n".utf8))
    #expect(try RunningIngest.reply(from: file).status == 201)
    // No body is asked for if the headers are enough to refuse it.
    let refusal = try ingest.exchange(
      Data("PUT /v1/batches/.x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n".utf8))
    #expect(refusal.status == 400 && refusal.headers["connection"]?.lowercased() == "close")
  }

  private static let badRequests: [(status: Int, method: String, path: String, headers: [String: String])] = [
    (400, "PUT", "/v1/batches/.hidden", [:]), (400, "PUT", "/v1/batches/a.part", [:]),
    (400, "PUT", "/v1/batches/", [:]),
    (400, "PUT", "/v1/batches/a%2Fb", [:]), (400, "PUT", "/v1/batches/a%0Ab", [:]),
    (404, "PUT", "/v1/batches/a/b", [:]), (404, "GET", "/v1/nothing", [:]), (405, "POST", "/v1/batches/a", [:]),
    (405, "PUT", "/healthz", [:]), (405, "PUT", "/v1/sessions/s/frames", [:]), (405, "GET", "/v1/sessions/s/end", [:]),
    (411, "PUT", "/v1/batches/a", ["Content-Length": ""]),
    (413, "PUT", "/v1/batches/a", ["Content-Length": "536870913"]),
    (415, "PUT", "/v1/batches/a", ["Content-Type": "multipart/form-data; boundary=x"]),
    (415, "PUT", "/v1/batches/a", ["Content-Type": "application/x-www-form-urlencoded"]),
    (415, "PUT", "/v1/batches/a", ["Content-Encoding": "gzip"]),
    (421, "PUT", "/v1/batches/a", ["Host": "evil.example"]),
    (403, "PUT", "/v1/batches/a", ["Origin": "https://a.example"]),
    (400, "PUT", "/v1/batches/a", ["Content-Digest": "sha-256=abc"]),
    (400, "PUT", "/v1/batches/a", ["Content-Digest": "sha-256=:AAAA:"]),
    (400, "PUT", "/v1/batches/a", ["Idempotency-Key": String(repeating: "k", count: 201)]),
    (422, "PUT", "/v1/batches/a", ["Content-Digest": "sha-512=:AAAA:"]),
    (422, "PUT", "/v1/batches/a", [:]),
    (400, "POST", "/v1/sessions/s%20s/frames?t=1767859512340", [:]),
    (400, "POST", "/v1/sessions/s/frames", ["Content-Type": "image/png"]),
    (400, "POST", "/v1/sessions/s/frames?t=1", ["Content-Type": "image/png"]),
    (400, "POST", "/v1/sessions/s/frames?t=1767859512340.5", ["Content-Type": "image/png"]),
    (415, "POST", "/v1/sessions/s/frames?t=1767859512340", [:]),
    (415, "POST", "/v1/sessions/s/frames?t=1767859512340", ["Content-Type": "text/plain"]),
    (
      413, "POST", "/v1/sessions/s/frames?t=1767859512340", ["Content-Type": "image/png", "Content-Length": "16777217"]
    ),
    (422, "POST", "/v1/sessions/s/frames?t=1767859512340", ["Content-Type": "image/png"]),
  ]

  @Test func badRequestIsRefusedWithAReason() throws {
    let ingest = try RunningIngest(["--spool", spool.path])
    for (status, method, path, headers) in Self.badRequests {
      var fields = ["Host": "127.0.0.1", "Connection": "close", "Content-Length": "11"].merging(headers) { $1 }
      if fields["Content-Length"] == "" { fields["Content-Length"] = nil }
      let head = "\(method) \(path) HTTP/1.1\r\n" + fields.map { "\($0): \($1)\r\n" }.joined() + "\r\n"
      let reply = try ingest.exchange(Data((head + "not a batch").utf8))
      #expect(reply.status == status, "\(method) \(path) \(headers): \(reply.text)")
      _ = try problem(reply)
      if status == 405 { #expect(reply.headers["allow"] != nil) }
      #expect(try spool.names("tmp").isEmpty && spool.names("incoming").isEmpty)
    }
  }

  @Test func digestOfTheBodyIsChecked() throws {
    let ingest = try RunningIngest(["--spool", spool.path])
    let batch = try Self.batch("film")
    let hash =
      "import base64, hashlib, sys; print(base64.b64encode(hashlib.sha256(sys.stdin.buffer.read()).digest()).decode(), end='')"
    let sum = try Tool.run(Tool.python, ["-c", hash], input: batch).text
    let wrong = try ingest.send("PUT", "/v1/batches/d.tar", ["Content-Digest": "sha-256=:\(sum):"], body: batch + [0])
    #expect(try wrong.status == 400 && (problem(wrong)["type"] as? String)?.hasSuffix("wrong-digest") == true)
    let right = ["Content-Digest": "md5=:AAAA:, sha-256=:\(sum):"]
    #expect(try ingest.send("PUT", "/v1/batches/d.tar", right, body: batch).status == 201)
    let key = ["Idempotency-Key": "one"]
    #expect(try ingest.send("PUT", "/v1/batches/k.tar", key, body: batch).status == 201)
    #expect(try ingest.send("PUT", "/v1/batches/k.tar", key, body: batch).status == 200)
    #expect(try ingest.send("PUT", "/v1/batches/l.tar", key, body: batch).status == 409)
  }

  @Test func tokensNameProducersAndLimitTheirSessions() throws {
    let tokens = spool.scratch.path("tokens")
    func write(_ text: String, mode: Int = 0o600) throws {
      try Data(text.utf8).write(to: URL(fileURLWithPath: tokens))
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: tokens)
    }
    try write("# kiosks\nall first-token-of-all\nkiosk second-token-kiosk kiosk-\n")
    let ingest = try RunningIngest(["--spool", spool.path, "--ingest-tokens", tokens, "--log-level", "notice"])
    func put(_ name: String, _ token: String?, _ session: String) throws -> RunningServer.Reply {
      let headers = token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
      return try ingest.send("PUT", "/v1/batches/\(name)", headers, body: Self.batch(session))
    }
    for token in [nil, "none", "first-token-of-al", "first-token-of-all2"] {
      let reply = try put("a.tar", token, "film")
      #expect(try reply.status == 401 && problem(reply)["advice"] != nil)
      #expect(reply.headers["www-authenticate"]?.hasPrefix("Bearer") == true)
    }
    #expect(try put("a.tar", "first-token-of-all", "film").status == 201)
    #expect(try put("b.tar", "second-token-kiosk", "film").status == 403)
    #expect(try put("b.tar", "second-token-kiosk", "kiosk-7").status == 201)
    let frames = try ingest.send(
      "POST", "/v1/sessions/film/frames?t=1767859512340",
      ["Authorization": "Bearer second-token-kiosk", "Content-Type": "image/png"])
    #expect(frames.status == 403)
    #expect(try ingest.send("GET", "/healthz").status == 200)
    #expect(try ingest.send("GET", "/readyz").status == 200)
    // A file that cannot be used changes nothing.
    try write("all third-token-of-all\n", mode: 0o644)
    ingest.signal(SIGHUP)
    try spool.waitUntil("kept") { ingest.log.contains("tokens.kept") }
    #expect(try put("c.tar", "first-token-of-all", "film").status == 201)
    try write("all third-token-of-all\n")
    ingest.signal(SIGHUP)
    try spool.waitUntil("reloaded") { ingest.log.contains("tokens.reloaded") }
    #expect(try put("e.tar", "first-token-of-all", "film").status == 401)
    #expect(try put("e.tar", "third-token-of-all", "film").status == 201)
    #expect(!ingest.log.contains("token-of-all") && ingest.log.contains("ingest.refused"))
  }

  @Test func fullQueueAndLittleSpaceAskToRepeatLater() throws {
    let full = try RunningIngest(["--spool", spool.path, "--min-free", "9000000000000000"])
    let refusal = try full.send("PUT", "/v1/batches/a.tar", body: Self.batch("film"))
    #expect(try refusal.status == 503 && problem(refusal)["detail"] != nil && refusal.headers["retry-after"] != nil)
    #expect(try full.send("GET", "/readyz").status == 503)
    #expect(full.stop() == 0)
    // The worker starts no second batch before the event of the first one is delivered.
    let other = try TestSpool()
    let ingest = try RunningIngest(
      ["--spool", other.path, "--ingest-backlog", "1", "--notify", "http://127.0.0.1:1/", "--notify-pending", "1"])
    #expect(try ingest.send("PUT", "/v1/batches/a.tar", body: Self.batch("a")).status == 201)
    try other.waitUntil("published") { try other.names("output/a").contains("session.json") }
    let refused = try firstValue(of: "the queue is full") {
      let reply = try ingest.send("PUT", "/v1/batches/b\(Int.random(in: 0...1_000_000)).tar", body: Self.batch("b"))
      return reply.status == 201 ? nil : reply
    }
    #expect(try refused.status == 429 && problem(refused)["advice"] != nil && refused.headers["retry-after"] != nil)
    #expect(try ingest.send("GET", "/healthz").status == 200)
    #expect(try ingest.send("GET", "/readyz").status == 503)
  }

  @Test func wrongUsageNamesTheOption() throws {
    let cases = [
      (["--ingest", "0.0.0.0:0"], "--ingest-open"), (["--ingest", "0", "--drain"], "--drain"),
      (["--ingest-open"], "--ingest"), (["--ingest", "0", "--ingest-state", "x"], "--ingest-state"),
    ]
    for (options, text) in cases {
      let result = try Tool.run(EncoderWorker.path, ["--spool", spool.path] + options)
      #expect(result.status == 64 && result.errors.contains(text), "\(options): \(result.errors)")
    }
  }
}
