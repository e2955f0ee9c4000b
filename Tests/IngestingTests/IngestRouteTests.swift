import FileSystem
import Foundation
import FrameBatches
import JSON
import Logging
import Serving
import Sessions
import Synchronization
import TestSupport
import Testing
import WorkQueues

@testable import Ingesting

/// The routes without a server: each answer of the OpenAPI document comes from a request, and each request gets an answer of it.
@Suite struct IngestRouteTests {
  private struct Answer: Hashable {
    let method: String
    let path: String
    let status: Int
  }

  /// A request, and what it is to prove.
  private struct Trial {
    let method: String
    let path: String
    let status: Int
    var values: [String: String] = [:]
    var headers: [String: String] = [:]
    var body: [UInt8] = []
    var routes: IngestRoutes
  }

  private let scratch: ScratchDirectory
  private let spool: Spool

  init() throws {
    scratch = try ScratchDirectory()
    spool = try Spool(creating: scratch.path("spool"))
  }

  private func routes(
    _ change: (inout IngestSettings) -> Void = { _ in }, tokens: String? = nil, hasPictures: Bool = true,
    hook: StoreHook? = nil, isStopping: Bool = false, isDeleted: Bool = false
  ) throws -> IngestRoutes {
    var settings = IngestSettings()
    change(&settings)
    var logger = Logger(label: "ingest") { _ in SwiftLogNoOpLogHandler() }
    logger.logLevel = .critical
    let context = IngestContext(
      try SpoolIntake(spool), settings, logger: logger, isStopping: { isStopping },
      tombstone: { isDeleted ? Tombstone($0, deletedAtMs: 1_767_859_512_340, reason: "") : nil })
    var file: IngestTokens?
    if let tokens {
      let path = try scratch.file("tokens", Array(tokens.utf8))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      file = try IngestTokens(file: path)
    }
    let pictures =
      hasPictures ? try PictureIntake(spool, input: InputOptions(), limits: Limits(), logger: logger) : nil
    return IngestRoutes(
      context, pictures: pictures, hook: hook, tokens: file, version: "0", endSession: { _ in .unknown },
      trouble: { isStopping ? "stopping" : nil })
  }

  private static let notification = Array(
    """
    {"Records": [{"eventSource": "minio:s3", "eventName": "s3:ObjectCreated:Put",
      "s3": {"bucket": {"name": "replay"}, "object": {"key": "prod%2Fincoming%2Fa+b.tar"}}},
     {"eventName": "s3:ObjectCreated:Put",
      "s3": {"bucket": {"name": "replay"}, "object": {"key": "prod/output/s/session.json"}}},
     {"eventName": "s3:ObjectRemoved:Delete",
      "s3": {"bucket": {"name": "replay"}, "object": {"key": "prod/incoming/c.tar"}}}]}
    """.utf8)

  /// Routes of a worker with a store and a queue.
  private func hooked(
    _ change: (inout IngestSettings) -> Void = { _ in }, names: MemoryNames = MemoryNames(), isStopping: Bool = false
  ) throws -> IngestRoutes {
    let hook = StoreHook(ObjectPlace(bucket: "replay", prefix: "prod/"), queueingIn: names)
    return try routes(change, hook: hook, isStopping: isStopping)
  }

  @Test func notificationOfAStoreQueuesItsBatches() throws {
    let names = MemoryNames()
    let routes = try hooked(names: names)
    for _ in 0..<2 {
      let answer = answer(
        Trial(method: "POST", path: "/hooks/s3", status: 200, body: Self.notification, routes: routes))
      guard case .bytes(let bytes) = answer.body else { return #expect(Bool(false), "no bytes") }
      let members = try JSONParser.parse(bytes).object
      #expect(answer.status == 200 && members?["queued"]?.integer == 1 && members?["ignored"]?.integer == 1)
    }
    #expect(names.waitingCount() == 1 && names.next()?.name == "a b.tar")
    let other = answer(Trial(method: "PUT", path: "/hooks/s3", status: 405, routes: routes))
    #expect(other.status == 405 && other.headers.contains { $0.name == "Allow" && $0.value == "POST" })
  }

  private func answer(_ trial: Trial) -> HTTPResponse {
    var path = trial.path
    for (name, value) in trial.values { path = path.replacing("{\(name)}", with: value) }
    var headers = ["Content-Length": "\(trial.body.count)"].merging(trial.headers) { $1 }
    if headers["Content-Length"] == "" { headers["Content-Length"] = nil }
    let request = HTTPRequest(
      method: trial.method, path: path, header: { headers[$0] }, argument: { trial.values[$0] })
    switch trial.routes.admit(request) {
    case .answer(let answer): return answer
    case .receive(let receiver):
      for start in stride(from: 0, to: trial.body.count, by: 1_000) {
        let part = trial.body[start..<min(start + 1_000, trial.body.count)]
        if let early = part.withUnsafeBytes({ receiver.take($0) }) { return early }
      }
      return receiver.finish()
    }
  }

  /// The disk fills while a body comes that has not announced its size.
  @Test func bodyEndsWhenTheDiskHasTooLittleRoom() throws {
    let free = Mutex(1 << 30)
    let routes = try routes {
      $0.freeSpace = FreeSpace(minimum: 900 << 20)
      $0.freeSpace.freeBytes = { _ in
        free.withLock { free in
          defer { free -= 50 << 20 }
          return free
        }
      }
    }
    let taken = Mutex(0)
    let request = HTTPRequest(
      method: "PUT", path: "/v1/batches/a.tar", header: { $0 == "Transfer-Encoding" ? "chunked" : nil },
      argument: { _ in nil })
    guard case .receive(let receiver) = routes.admit(request) else { return #expect(Bool(false), "not admitted") }
    let piece = [UInt8](repeating: 7, count: 64 << 10)
    var answer: HTTPResponse?
    while answer == nil, taken.withLock({ $0 }) < 64 << 20 {
      answer = piece.withUnsafeBytes { receiver.take($0) }
      taken.withLock { $0 += piece.count }
    }
    #expect(answer?.status == 503 && taken.withLock { $0 } <= 3 << 20)
    #expect(try names(in: spool.temporary).isEmpty && names(in: spool.incoming).isEmpty)
  }

  private func trials() throws -> [Trial] {
    let open = try routes()
    let full = try routes { $0.backlog = 0 }
    let small = try routes { ($0.limits.unpackedBytes, $0.limits.fileBytes) = (10, 10) }
    let low = try routes { $0.freeSpace = FreeSpace(minimum: .max / 2) }
    let closed = try routes(tokens: "kiosk 0123456789abcdef kiosk-\n")
    let picture = try Fixture("exact-1fps").bytes("0000.jpg")
    let batch = try Archive.tar(
      [("1767859512340.jpg", picture), ("batch.json", Array(#"{"version":1,"session":"film"}"#.utf8))])
    let other = try Archive.tar([("1767859512340.jpg", picture)])
    let deleted = try routes(isDeleted: true)
    let token = ["Authorization": "Bearer 0123456789abcdef"]
    let (batches, frames, end) = ("/v1/batches/{name}", "/v1/sessions/{id}/frames", "/v1/sessions/{id}/end")
    func put(
      _ status: Int, _ name: String, _ headers: [String: String], _ body: [UInt8], _ routes: IngestRoutes
    ) -> Trial {
      Trial(
        method: "PUT", path: batches, status: status, values: ["name": name], headers: headers, body: body,
        routes: routes)
    }
    func post(
      _ status: Int, _ body: [UInt8], _ routes: IngestRoutes, t: String = "1767859512340",
      headers: [String: String] = [:]
    ) -> Trial {
      Trial(
        method: "POST", path: frames, status: status, values: ["id": "s", "t": t],
        headers: ["Content-Type": "image/jpeg"].merging(headers) { $1 }, body: body, routes: routes)
    }
    let line = Array(#"{"timeMs":1767859512840,"text":"Add to cart"}"#.utf8)
    func label(
      _ status: Int, _ body: [UInt8], _ routes: IngestRoutes, headers: [String: String] = [:], sent: String? = nil
    ) -> Trial {
      Trial(
        method: "POST", path: "/v1/sessions/{id}/labels", status: status,
        values: ["id": "s"].merging(sent.map { ["sent": $0] } ?? [:]) { $1 }, headers: headers, body: body,
        routes: routes)
    }
    let key = ["Idempotency-Key": "one"]
    func bare(
      _ method: String, _ path: String, _ status: Int, _ routes: IngestRoutes, value: String = "s",
      headers: [String: String] = [:]
    ) -> Trial {
      Trial(
        method: method, path: path, status: status, values: ["name": value, "id": value], headers: headers,
        routes: routes)
    }
    let noted = try hooked()
    func hook(
      _ status: Int, _ body: [UInt8] = Self.notification, with routes: IngestRoutes? = nil,
      headers: [String: String] = [:]
    ) -> Trial {
      Trial(
        method: "POST", path: "/hooks/s3", status: status, headers: headers, body: body, routes: routes ?? noted)
    }
    return [
      put(201, "a.tar", [:], batch, open), put(200, "a.tar", [:], batch, open), put(409, "a.tar", [:], other, open),
      put(400, ".a", [:], batch, open), put(401, "new", [:], batch, closed), put(403, "new", token, batch, closed),
      put(410, "deleted", [:], batch, deleted), post(410, picture, deleted), bare("POST", end, 410, deleted),
      put(411, "new", ["Content-Length": ""], batch, open), put(413, "new", [:], batch, small),
      put(415, "new", ["Content-Type": "image/png"], batch, open),
      put(422, "new", [:], [1, 2, 3], open), put(429, "new", [:], batch, full), put(503, "new", [:], batch, low),
      bare("GET", batches, 200, open, value: "a.tar"), bare("GET", batches, 400, open, value: ".a"),
      bare("GET", batches, 404, open, value: "b"),
      bare("GET", batches, 401, closed), bare("GET", batches, 403, open, headers: ["Origin": "http://a.example"]),
      post(201, picture, open), post(200, picture, open), post(409, try Fixture("exact-1fps").bytes("0005.jpg"), open),
      post(400, picture, open, t: "now"), post(401, picture, closed), post(403, picture, closed, headers: token),
      post(411, picture, open, headers: ["Content-Length": ""]), post(413, picture, small),
      post(415, picture, open, headers: ["Content-Type": "text/plain"]), post(422, Array(picture.dropLast(2)), open),
      post(429, picture, full), post(501, picture, try routes(hasPictures: false)), post(503, picture, low),
      label(201, line, open, headers: key), label(200, line, open, headers: key),
      label(409, line + line.map { $0 == 0x41 ? 0x42 : $0 }, open, headers: key),
      label(400, line, open, sent: "now"), label(401, line, closed), label(403, line, closed, headers: token),
      label(410, line, deleted), label(411, line, open, headers: ["Content-Length": ""]),
      label(413, [UInt8](repeating: 32, count: 9 << 20), open),
      label(415, line, open, headers: ["Content-Encoding": "gzip"]), label(422, [], open),
      label(422, line + [10, 7], open), label(429, line, full), label(503, line, low),
      bare("POST", end, 202, open), bare("POST", end, 400, open, value: ".s"), bare("POST", end, 401, closed),
      bare("POST", end, 403, closed, headers: token),
      bare("POST", end, 503, try routes(isStopping: true)),
      hook(200), hook(400, Array("{}".utf8)), hook(401, with: closed), hook(403, with: closed, headers: token),
      hook(411, headers: ["Content-Length": ""]), hook(413, [UInt8](repeating: 32, count: 1 << 20) + Self.notification),
      hook(415, headers: ["Content-Encoding": "gzip"]), hook(429, with: try hooked { $0.bodies = 0 }),
      hook(501, with: open), hook(503, with: try hooked(isStopping: true)),
      bare("GET", "/healthz", 200, open), bare("GET", "/readyz", 200, open),
      bare("GET", "/readyz", 503, try routes(isStopping: true)), bare("GET", "/metrics", 200, open),
      bare("GET", "/v1/openapi.json", 200, open),
    ]
  }

  @Test func documentListsEveryAnswerAndNoOther() throws {
    var answers: Set<Answer> = []
    for trial in try trials() {
      let answer = answer(trial)
      #expect(answer.status == trial.status, "\(trial.method) \(trial.path) \(trial.headers) \(trial.values)")
      answers.insert(Answer(method: trial.method.lowercased(), path: trial.path, status: answer.status))
    }
    let failed = answer(
      Trial(
        method: "GET", path: "/v1/batches/{name}", status: 503, values: ["name": "a.tar"], routes: try failingRoutes()))
    #expect(failed.status == 503 && failed.headers.contains { $0.name == "Retry-After" })
    answers.insert(Answer(method: "get", path: "/v1/batches/{name}", status: failed.status))

    let document = try JSONParser.parse(OpenAPIDocument.bytes)
    #expect(document.object?["openapi"]?.string == "3.1.0")
    var listed: Set<Answer> = []
    for (path, item) in try #require(document.object?["paths"]?.object) {
      for (method, operation) in try #require(item.object) where method != "parameters" {
        for status in try #require(operation.object?["responses"]?.object).keys where status != "default" {
          listed.insert(Answer(method: method, path: path, status: try #require(Int(status))))
        }
      }
    }
    #expect(answers == listed)
  }

  /// Routes of a worker whose disk fails.
  private func failingRoutes() throws -> IngestRoutes {
    let logger = Logger(label: "ingest") { _ in SwiftLogNoOpLogHandler() }
    return IngestRoutes(
      IngestContext(FailingIntake(drafts: spool.temporary), IngestSettings(), logger: logger), pictures: nil,
      tokens: nil,
      version: "0", endSession: { _ in .unknown }, trouble: { nil })
  }

  private func members(_ answer: HTTPResponse) throws -> [String: JSONValue] {
    guard case .bytes(let bytes) = answer.body else { return [:] }
    return try JSONParser.parse(bytes).object ?? [:]
  }

  @Test func endOfAnUnknownSessionHasNotEnded() throws {
    let trial = Trial(
      method: "POST", path: "/v1/sessions/nobody/end", status: 202, routes: try routes())
    let told = try members(answer(trial))
    #expect(told["state"]?.string == "unknown" && told["ended"]?.bool == false)
  }

  @Test func pictureWithoutATypeIsToldWhichHeaderIsMissing() throws {
    let trial = Trial(
      method: "POST", path: "/v1/sessions/s/frames", status: 415, values: ["t": "1767859512340"], body: [1],
      routes: try routes())
    let told = try members(answer(trial))
    #expect(told["detail"]?.string == "the header Content-Type is missing")
    #expect(told["advice"]?.string?.contains("image/png") == true)
  }

  @Test func refusalsAreCountedByStatusAndProducer() throws {
    let routes = try routes(tokens: "ki\"osk 0123456789abcdef kiosk-\n")
    let token = ["Authorization": "Bearer 0123456789abcdef"]
    for (headers, times) in [([:], 2), (token, 1)] {
      for _ in 0..<times {
        _ = answer(
          Trial(
            method: "POST", path: "/v1/sessions/other/end", status: 0, headers: headers, routes: routes))
      }
    }
    let metrics = answer(Trial(method: "GET", path: "/metrics", status: 200, routes: routes))
    guard case .bytes(let bytes) = metrics.body else { return #expect(Bool(false), "no bytes") }
    let text = String(decoding: bytes, as: UTF8.self)
    let name = "encoder_worker_ingest_refusals_total"
    #expect(text.contains("\(name){status=\"401\",producer=\"\"} 2\n"), "\(text)")
    #expect(text.contains("\(name){status=\"403\",producer=\"ki\\\"osk\"} 1\n"), "\(text)")
  }

  @Test func otherMethodsAndPathsAreRefused() throws {
    let routes = try routes()
    for (method, path, status) in [
      ("DELETE", "/v1/batches/a", 405), ("GET", "/v1/sessions/s/frames", 405), ("POST", "/metrics", 405),
      ("GET", "/v1", 404), ("PUT", "/v1/batches/a/b", 404), ("GET", "/v2/batches/a", 404),
    ] {
      let answer = answer(Trial(method: method, path: path, status: status, routes: routes))
      #expect(answer.status == status && answer.headers.contains { $0.name == "Allow" } == (status == 405), "\(path)")
    }
  }

  @Test func twoContentsOfANameAtOnceHaveOneWinner() throws {
    let intake = try SpoolIntake(spool)
    let outcomes = Mutex<[String: IntakeOutcome]>([:])
    let group = ThreadGroup()
    for number in 0..<8 {
      let text = "content \(number % 4)"
      let draft = scratch.path("draft \(number)")
      try Data(text.utf8).write(to: URL(fileURLWithPath: draft))
      try group.start {
        let outcome = try? intake.take(
          draft, as: DeliveredName("one", of: nil), digest: SHA256.hex(of: Array(text.utf8)))
        outcomes.withLock { $0["\(number)"] = outcome }
      }
    }
    group.join()
    let all = outcomes.withLock { $0 }
    #expect(all.count == 8 && all.values.filter { $0 == .taken }.count == 1)
    #expect(all.values.filter { $0 == .known }.count == 1 && all.values.filter { $0 == .conflict }.count == 6)
    let winner = try #require(all.first { $0.value == .taken }?.key)
    let bytes = try String(contentsOfFile: spool.incoming + "/one", encoding: .utf8)
    #expect(try bytes == "content \(#require(Int(winner)) % 4)")
  }

  /// A crash after the rename and before the receipt.
  @Test func batchWithoutAReceiptIsRecognised() throws {
    let intake = try SpoolIntake(spool)
    try Data("same".utf8).write(to: URL(fileURLWithPath: spool.incoming + "/one"))
    func take(_ text: String) throws -> IntakeOutcome {
      try intake.take(
        scratch.file("draft", Array(text.utf8)), as: DeliveredName("one", of: nil),
        digest: SHA256.hex(of: Array(text.utf8)))
    }
    #expect(try take("other") == .conflict && intake.receipt(of: DeliveredName("one", of: nil)) == nil)
    #expect(try take("same") == .taken && take("same") == .known)
  }
}

/// A place whose disk fails.
private struct FailingIntake: BatchIntake {
  let drafts: String

  var keepsTracesInFiles: Bool { true }
  func take(
    _ path: String, as name: DeliveredName, digest: String, traceParent: TraceParent?
  ) throws -> IntakeOutcome {
    throw DiskError("open", path, code: EIO)
  }
  func receipt(of name: DeliveredName) throws -> ReceiptLog.Entry? { throw DiskError("open", name.text, code: EIO) }
  func clockOffsetMs(of session: SessionID, near offsetMs: Int64) throws -> Int64 { 0 }
  func waitingCounts() throws -> (all: Int, byProducer: [String: Int]) { (0, [:]) }
  func sweep(_ number: Int) throws {}
}
