import Foundation
import JSON
import TestSupport
import Testing

/// The step of a producer's trace, which `batch.json` states, is in all that a worker says of the batch.
@Suite struct TraceTests {
  private static let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  private func add(_ name: String, _ image: [UInt8], metadata: String = "{}", trace: String = trace) throws {
    let draft = try spool.scratch.directory("spool/tmp/" + name)
    try spool.scratch.file("spool/tmp/\(name)/1767859512340.jpg", image)
    let json = #"{"version":1,"session":"\#(name)","metadata":\#(metadata),"traceparent":"\#(trace)"}"#
    try spool.scratch.file("spool/tmp/\(name)/batch.json", Array(json.utf8))
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/" + name)
  }

  private func metadata(_ session: String) throws -> String? {
    try SegmentManifestJSON(spool.output + "/\(session)/segment-1767859512340.json")["metadata"]?.line
  }

  @Test func traceIsInTheManifestsTheLogTheEventsAndTheRequests() throws {
    let picture = try Fixture("exact-1fps").bytes("0000.jpg")
    let receiver = try ReceiverServer()
    try add("good", picture, metadata: #"{"app":1}"#)
    try add("own", picture, metadata: #"{"traceparent":"mine"}"#)
    try add("bad", Array("no image".utf8))
    let result = try spool.drain("--notify", receiver.url, "--log-format", "json", "--log-level", "info")
    #expect(result.status == 65, "\(result.errors)")

    #expect(try metadata("good") == #"{"app":1,"traceparent":"\#(Self.trace)"}"#)
    #expect(try metadata("own") == #"{"traceparent":"mine"}"#)
    for event in ["batch.published", "batch.quarantined"] {
      let lines = result.errors.split(separator: "\n").filter { $0.contains(#""event":"\#(event)""#) }
      let isTraced = lines.allSatisfy { $0.contains(#""traceparent":"\#(Self.trace)""#) }
      #expect(!lines.isEmpty && isTraced, "\(result.errors)")
    }
    let requests = try receiver.accepted()
    #expect(requests.count == 3)
    for request in requests {
      #expect(request.headers["traceparent"] == Self.trace)
      #expect(try request.event.traceparent == Self.trace)
      #expect(try JSONSchema("docs/event.schema.json").faults(of: request.body) == [])
    }
  }

  /// The key of an event does not depend on the trace, so a receiver knows the batch again.
  @Test func batchThatComesAgainInAnotherTraceIsADuplicate() throws {
    let other = Self.trace.replacing("4bf9", with: "aaaa")
    let picture = try Fixture("exact-1fps").bytes("0000.jpg")
    var events: [BatchEventJSON] = []
    for trace in [Self.trace, other] {
      try add("good", picture, trace: trace)
      events += try spool.drain("--json").jsonLines(as: BatchEventJSON.self)
    }
    #expect(events.map(\.event) == ["batch.published", "batch.duplicate"])
    #expect(events.map(\.traceparent) == [Self.trace, other] && events[0].key == events[1].key)
    #expect(try metadata("good") == #"{"traceparent":"\#(Self.trace)"}"#)
  }

  @Test func endOfASessionHasTheTraceOfItsBatch() throws {
    let receiver = try ReceiverServer()
    for name in ["traced", "bare"] {
      try add(name, Fixture("exact-1fps").bytes("0000.jpg"), trace: name == "traced" ? Self.trace : "none")
    }
    try spool.drain()
    for name in ["traced", "bare"] { #expect(try EncoderWorker.run("end", name, "--spool", spool.path).status == 0) }
    #expect(try spool.drain("--notify", receiver.url).status == 0)
    let requests = try receiver.accepted()
    #expect(requests.count == 2)
    for request in requests {
      let trace = request.body.contains(#""session":"traced""#) ? Self.trace : nil
      #expect(try request.event.event == "session.ended" && request.event.traceparent == trace)
      #expect(request.headers["traceparent"] == trace)
      #expect(try JSONSchema("docs/event.schema.json").faults(of: request.body) == [])
    }
  }

  // MARK: a trace in the header of a request

  private static let keepsAttributes = ConditionTrait.enabled(
    if: ScratchDirectory.keepsAttributes, "the file system keeps no extended attributes")

  @Test(keepsAttributes) func traceOfARequestIsInTheManifestTheLogTheEventAndItsRequest() throws {
    let receiver = try ReceiverServer()
    let ingest = try RunningIngest([
      "--spool", spool.path, "--notify", receiver.url, "--log-format", "json", "--log-level", "debug",
    ])
    let sent = ["Traceparent": Self.trace]
    #expect(try ingest.send("PUT", "/v1/batches/a.tar", sent, body: IngestTests.batch("good")).status == 201)
    // The step that a batch states itself, and a header that is none.
    let own = Self.trace.replacing("4bf9", with: "aaaa")
    let scratch = try ScratchDirectory()
    try scratch.file("1767859512340.jpg", Fixture("exact-1fps").bytes("0000.jpg"))
    try scratch.file("batch.json", Array(#"{"version":1,"session":"own","traceparent":"\#(own)"}"#.utf8))
    let tar = try Tool.output("tar", ["-C", scratch.path, "-cf", "-"] + names(in: scratch.path))
    #expect(try ingest.send("PUT", "/v1/batches/b.tar", sent, body: tar).status == 201)
    let invalid = ["traceparent": Self.trace.uppercased()]
    #expect(try ingest.send("PUT", "/v1/batches/c.tar", invalid, body: IngestTests.batch("none")).status == 201)
    try spool.waitUntil("the receiver has all events") { try receiver.accepted().count == 3 }
    #expect(ingest.stop() == 0)

    let expected: [String: String?] = ["a.tar": Self.trace, "b.tar": own, "c.tar": nil]
    for request in try receiver.accepted() {
      let event = try request.event
      let trace = try #require(expected[event.batch])
      #expect(request.headers["traceparent"] == trace && event.traceparent == trace, "\(event.batch)")
    }
    #expect(try metadata("good") == #"{"traceparent":"\#(Self.trace)"}"#)
    #expect(try metadata("own") == #"{"traceparent":"\#(own)"}"# && metadata("none") == "{}")
    let lines = ingest.log.split(separator: "\n").filter { $0.contains(#""batch":"a.tar""#) }
    let published = lines.filter { $0.contains(#""event":"batch.published""#) }
    #expect(published.count == 1 && published.allSatisfy { $0.contains(Self.trace) }, "\(ingest.log)")
  }

  /// A worker that dies leaves the trace to the next one.
  @Test(keepsAttributes) func traceOfARequestOutlivesTheWorkerThatTookIt() throws {
    let receiver = try ReceiverServer()
    // The batch stays claimed while its event waits for an answer.
    receiver.answer(.init(hold: true))
    let ingest = try RunningIngest(["--spool", spool.path, "--notify", receiver.url])
    let body = try IngestTests.batch("good")
    #expect(try ingest.send("PUT", "/v1/batches/a.tar", ["traceparent": Self.trace], body: body).status == 201)
    try spool.waitUntil("the event has arrived") { try !receiver.log().isEmpty }
    ingest.kill()
    let events = try spool.drain("--json").jsonLines(as: BatchEventJSON.self)
    #expect(events.map(\.event) == ["batch.duplicate"] && events.map(\.traceparent) == [Self.trace])
  }

  @Test(keepsAttributes) func batchOfPicturesHasTheTraceOfItsFirstPicture() throws {
    let ingest = try RunningIngest(["--spool", spool.path])
    for frame in [1, 0] {
      let trace = frame == 0 ? Self.trace : Self.trace.replacing("4bf9", with: "aaaa")
      let reply = try ingest.send(
        "POST", "/v1/sessions/film/frames?t=\(1_767_859_512_340 + 1_000 * frame)",
        ["Content-Type": "image/jpeg", "traceparent": trace],
        body: Data(Fixture("exact-1fps").bytes(String(format: "%04d.jpg", frame))))
      #expect(reply.status == 201, "\(reply.text)")
    }
    #expect(try ingest.send("POST", "/v1/sessions/film/end").status == 202)
    try spool.waitUntil("published") { try spool.names("output/film").contains("session.json") }
    #expect(ingest.stop() == 0)
    #expect(try metadata("film") == #"{"traceparent":"\#(Self.trace)"}"#)
  }

  @Test func refusedEventIsSentAgainInItsTrace() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(status: 422))
    try add("good", Fixture("exact-1fps").bytes("0000.jpg"))
    #expect(try spool.drain("--notify", receiver.url).status == 0)
    receiver.answer()
    let retry = try Tool.run(
      EncoderWorker.path, ["quarantine", "retry", "--events", "--spool", spool.path, "--all", "--notify", receiver.url])
    #expect(retry.status == 0, "\(retry.errors)")
    #expect(try receiver.accepted().map { $0.headers["traceparent"] } == [Self.trace])
  }
}
