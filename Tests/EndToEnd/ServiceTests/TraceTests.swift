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

  @Test func refusedEventIsSentAgainInItsTrace() throws {
    let receiver = try ReceiverServer()
    receiver.answer(.init(status: 422))
    try add("good", Fixture("exact-1fps").bytes("0000.jpg"))
    #expect(try spool.drain("--notify", receiver.url).status == 0)
    receiver.answer()
    let retry = try Tool.run(
      EncoderWorker.path, ["notify", "retry", "--spool", spool.path, "--all", "--notify", receiver.url])
    #expect(retry.status == 0, "\(retry.errors)")
    #expect(try receiver.accepted().map { $0.headers["traceparent"] } == [Self.trace])
  }
}
