import FileSystem
import Foundation
import FrameBatches
import Logging
import Serving
import TestSupport
import Testing
import WorkQueues

@testable import Ingesting

/// Producers with tokens: each has names and a share of its own. And what the clocks of their devices, and web pages, may do.
@Suite struct ProducerTests {
  private static let (one, two) = ("0123456789abcdef-one", "0123456789abcdef-two")
  private let scratch: ScratchDirectory
  private let spool: Spool
  private let objects = MemoryObjects()
  private let names = MemoryNames()

  init() throws {
    scratch = try ScratchDirectory()
    spool = try Spool(creating: scratch.path("spool"))
  }

  private func routes(
    isStored: Bool = false, hasTokens: Bool = true, origins: [String] = [],
    _ change: (inout IngestSettings) -> Void = { _ in }
  ) throws -> IngestRoutes {
    var settings = IngestSettings()
    change(&settings)
    let logger = Logger(label: "ingest") { _ in SwiftLogNoOpLogHandler() }
    let intake: any BatchIntake =
      isStored
      ? ObjectIntake(ObjectBatchRepository(objects, name: "s3://test/"), names) { [spool] in spool.temporary }
      : try SpoolIntake(spool)
    let tokens = try scratch.file("tokens", Array("one \(Self.one)\ntwo \(Self.two)\n".utf8))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: tokens)
    let pictures = try PictureIntake(spool, input: InputOptions(), limits: Limits(), logger: logger)
    return IngestRoutes(
      IngestContext(intake, settings, logger: logger), pictures: pictures,
      tokens: hasTokens ? try IngestTokens(file: tokens) : nil, origins: PageOrigins(origins), version: "0",
      endSession: { _ in .ending }, trouble: { nil })
  }

  private func send(
    _ method: String, _ path: String, _ token: String? = one, _ headers: [String: String] = [:],
    _ arguments: [String: String] = [:], body: [UInt8] = [], to routes: IngestRoutes
  ) -> HTTPResponse {
    var fields = ["Content-Length": "\(body.count)"].merging(headers) { $1 }
    if let token { fields["Authorization"] = "Bearer \(token)" }
    let request = HTTPRequest(
      method: method, path: path, header: { [fields] in fields[$0] }, argument: { arguments[$0] })
    switch routes.admit(request) {
    case .answer(let answer): return answer
    case .receive(let receiver):
      return body.withUnsafeBytes { receiver.take($0) } ?? receiver.finish()
    }
  }

  private static func batch(_ number: Int = 0, atMs: Int64 = 1_767_859_512_340) throws -> [UInt8] {
    try Archive.tar([("\(atMs).jpg", Fixture("exact-1fps").bytes(String(format: "%04d.jpg", number)))])
  }

  private func text(_ response: HTTPResponse) -> String {
    if case .bytes(let bytes) = response.body { String(decoding: bytes, as: UTF8.self) } else { "" }
  }

  // MARK: - Names

  @Test(arguments: [false, true]) func devicesMayCallTheirBatchesAlike(isStored: Bool) throws {
    let routes = try routes(isStored: isStored)
    func put(_ token: String, _ number: Int) throws -> Int {
      send("PUT", "/v1/batches/0001.tar", token, body: try Self.batch(number), to: routes).status
    }
    #expect(try put(Self.one, 0) == 201 && put(Self.two, 5) == 201)
    #expect(try put(Self.one, 0) == 200 && put(Self.two, 5) == 200)
    #expect(try put(Self.one, 5) == 409 && put(Self.two, 0) == 409)
    let waiting = isStored ? names.waitingCount() : try spool.waiting().count
    #expect(waiting == 2)
    if !isStored { #expect(try spool.waiting().map(\.name) == ["~one~~0001.tar", "~two~~0001.tar"]) }
    #expect(send("PUT", "/v1/batches/own.tar", Self.one, body: try Self.batch(), to: routes).status == 201)
    // Nobody reads another's receipt.
    #expect(send("GET", "/v1/batches/own.tar", Self.one, to: routes).status == 200)
    #expect(send("GET", "/v1/batches/own.tar", Self.two, to: routes).status == 404)
  }

  // MARK: - Shares

  @Test func oneProducerCannotTakeAllOfALimit() throws {
    let (one, two) = (Producer(name: "one", prefix: ""), Producer(name: "two", prefix: ""))
    for limit in [1, 2, 3, 8, 384, 1_000] {
      var held = HeldShares()
      func take(_ producer: Producer?) -> Bool {
        guard FairShare.allows(producer, own: held[producer], all: held.all, limit: limit) else { return false }
        held.add(1, of: producer)
        return true
      }
      while take(one) {}
      #expect(limit < 4 || held[one] < limit && take(two), "\(limit)")
      while take(two) {}
      #expect(limit < 4 || take(Producer(name: "three", prefix: "")), "\(limit)")
      #expect(held.all <= limit)
    }
    // Alone, or without tokens, it has all.
    var alone = one
    alone.isAlone = true
    for producer in [alone, nil] {
      #expect((0..<8).allSatisfy { FairShare.allows(producer, own: $0, all: $0, limit: 8) })
      #expect(!FairShare.allows(producer, own: 8, all: 8, limit: 8))
    }
  }

  @Test func waitingBatchesOfOneProducerLeaveRoomForOthers() throws {
    let routes = try routes { $0.backlog = 8 }
    for number in 0..<9 {
      try Data("x".utf8).write(to: URL(fileURLWithPath: spool.incoming + "/~one~~\(number)"))
      if number == 6 {
        #expect(send("PUT", "/v1/batches/a.tar", Self.one, body: try Self.batch(), to: routes).status == 429)
        #expect(send("PUT", "/v1/batches/a.tar", Self.two, body: try Self.batch(), to: routes).status == 201)
      }
    }
  }

  // MARK: - Clocks

  @Test(arguments: [false, true]) func wrongClockOfABatchIsCorrectedAlike(isStored: Bool) throws {
    let routes = try routes(isStored: isStored)
    let dayMs: Int64 = 86_400_000
    var offsets: [Int64] = []
    for (number, delayMs) in [Int64(0), 5_000, -20_000].enumerated() {
      let sentMs = WallClock.nowMs - dayMs - delayMs
      let batch = try Self.batch(number, atMs: sentMs - 3_000 + Int64(number) * 1_000)
      let answer = send(
        "PUT", "/v1/batches/film@\(number).tar", Self.one, [:], ["sent": "\(sentMs)"], body: batch, to: routes)
      #expect(answer.status == 201, "\(text(answer))")
      let name = isStored ? try #require(names.next()?.name) : try #require(spool.waiting().last?.name)
      offsets.append(DeliveredName(reading: name).clockOffsetMs)
      #expect(text(answer).contains("\"clockOffsetMs\":\(offsets[number])"))
      if !isStored {
        let read = try BatchReader(reading: spool.incoming + "/" + name).batch
        #expect(abs(read.frames[0].timeMs - WallClock.nowMs) < 60_000 && read.clockOffsetMs == offsets[number])
        #expect(read.session.description == "film")
      }
      // It is known, whatever the delay.
      let again = send(
        "PUT", "/v1/batches/film@\(number).tar", Self.one, [:], ["sent": "\(sentMs - 90_000)"], body: batch, to: routes)
      #expect(again.status == 200)
    }
    // Requests take their time: that moves no batch against the one before.
    #expect(Set(offsets).count == 1 && abs(offsets[0] - dayMs) < 60_000)
  }

  /// A store may answer with any number.
  @Test(arguments: [Int64.min, Int64.max, -1]) func strangeCorrectionInAStoreDoesNoHarm(kept: Int64) throws {
    objects["ingested/clock/film"] = Array(#"{"clockOffsetMs": \#(kept), "atMs": \#(kept)}"#.utf8)
    let intake = ObjectIntake(ObjectBatchRepository(objects, name: "s3://test/"), names) { [spool] in spool.temporary }
    let session = try #require(SessionID("film"))
    for _ in 0..<2 { #expect(try intake.clockOffsetMs(of: session, near: 3_600_000) == 3_600_000) }
  }

  @Test func rightClockChangesNothingAndAFarCaptureIsNamed() throws {
    let routes = try routes { $0.retainMs = 1_000_000 }
    func put(_ name: String, _ atMs: Int64, sentMs: Int64?) throws -> HTTPResponse {
      send(
        "PUT", "/v1/batches/\(name)", Self.one, [:], sentMs.map { ["sent": "\($0)"] } ?? [:],
        body: try Self.batch(atMs: atMs), to: routes)
    }
    let nowMs = WallClock.nowMs
    let right = try put("a.tar", nowMs, sentMs: nowMs - 30_000)
    #expect(right.status == 201 && !text(right).contains("clockOffsetMs"))
    #expect(try spool.waiting().map(\.name) == ["~one~~a.tar"])
    for (name, atMs) in [("b.tar", nowMs + 3 * 86_400_000), ("c.tar", nowMs - 2_000_000)] {
      let far = try put(name, atMs, sentMs: nil)
      #expect(far.status == 201 && far.headers.contains { $0.name == "Warning" })
    }
    #expect(!right.headers.contains { $0.name == "Warning" })
    #expect(try put("d.tar", nowMs, sentMs: -1).status == 400)
  }

  // MARK: - Pages

  @Test func pageOfANamedOriginMaySendAndReadAnswers() throws {
    let page = "https://app.example"
    for hasTokens in [false, true] {
      let routes = try routes(hasTokens: hasTokens, origins: [page])
      let token = hasTokens ? Self.one : nil
      let ask = ["Origin": page, "Access-Control-Request-Method": "PUT"]
      let preflight = send("OPTIONS", "/v1/batches/a.tar", nil, ask, to: routes)
      #expect(preflight.status == 204)
      let headers = Dictionary(preflight.headers.map { ($0.name, $0.value) }) { one, _ in one }
      #expect(headers["Access-Control-Allow-Origin"] == page && headers["Vary"] == "Origin")
      #expect(headers["Access-Control-Allow-Methods"]?.contains("PUT") == true)
      #expect(headers["Access-Control-Allow-Headers"]?.contains("Authorization") == true)
      for (status, body) in [(201, try Self.batch()), (422, [1, 2, 3])] {
        let answer = send(
          "PUT", "/v1/batches/\(status).tar", token, ["Origin": page], body: body, to: routes)
        #expect(answer.status == status)
        #expect(answer.headers.contains { $0.name == "Access-Control-Allow-Origin" && $0.value == page })
      }
      for other in ["https://app.example.org", "https://app.example:8443", "http://app.example", "null", "*"] {
        let refused = send("OPTIONS", "/v1/batches/a.tar", nil, ["Origin": other], to: routes)
        #expect(refused.status == 403 && !refused.headers.contains { $0.name.hasPrefix("Access-Control") })
      }
    }
  }

  @Test func originsAreWrittenAsBrowsersWriteThem() {
    for text in ["https://app.example", "http://localhost:8080", "http://[::1]:80"] {
      #expect(PageOrigins.fault(of: text) == nil, "\(text)")
    }
    for text in ["*", "null", "app.example", "https://app.example/", "https://App.example", "https://a.example/x", ""] {
      #expect(PageOrigins.fault(of: text) != nil, "\(text)")
    }
  }

  /// curl states this type unasked. A page of any site can send it without a preflight.
  @Test func bodyOfAFormIsTakenWithATokenOnly() throws {
    let type = ["Content-Type": "application/x-www-form-urlencoded"]
    let picture = try Fixture("exact-1fps").bytes("0000.jpg")
    for (hasTokens, status) in [(true, 201), (false, 415)] {
      let routes = try routes(hasTokens: hasTokens)
      let token = hasTokens ? Self.one : nil
      #expect(send("PUT", "/v1/batches/f.tar", token, type, body: try Self.batch(), to: routes).status == status)
      let frame = send(
        "POST", "/v1/sessions/film/frames", token, type, ["t": "1767859512340"], body: picture, to: routes)
      #expect(frame.status == status)
    }
  }
}
