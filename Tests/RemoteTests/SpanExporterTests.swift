import FileSystem
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Remote

private let hasJudge = FileManager.default.fileExists(
  atPath: Fixture.root.appendingPathComponent(".build/otlp/opentelemetry").path)

/// Spans that go to a receiver of OTLP. The protocol's own schema judges the bodies.
@Suite(.enabled(if: hasJudge, "the schema of OTLP is not there; scripts/setup test installs it"))
struct SpanExporterTests {
  private static let (trace, root) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")

  /// A span as the judge reads it.
  private struct Read: Decodable {
    let trace, id, parent, name, kind, status, message: String
    let start, end: UInt64
    let scope: [String]
    let resource: [String: String]
  }

  private struct ReadAttributes: Decodable {
    struct Attributes: Decodable {
      let text: String
      let whole: Int64
      let real: Double
      let flag: Bool
      let list: [String]
    }

    let attributes: Attributes
  }

  private static func span(_ name: String, id: String, parent: String? = nil, error: String? = nil) -> SpanRecord {
    let event = SpanRecord.Event(
      name: "exception", timeNs: 1_767_859_512_340_000_001, attributes: ["exception.message": .text("a \"b\"\n")])
    let draft = SpanRecord.Draft(
      id: id, parentID: parent, name: name, kind: parent == nil ? .consumer : .internal,
      startNs: 1_767_859_512_340_000_000, endNs: 1_767_859_517_340_000_003,
      attributes: [
        "text": .text("é\u{0}"), "whole": .whole(.min), "real": .real(0.25), "flag": .flag(true),
        "list": .list([.text("a"), .text("b")]),
      ], events: error == nil ? [] : [event], error: error)
    return SpanRecord(draft, traceID: trace)
  }

  private static let spans = [
    span("batch", id: root, error: "read a: no batch"), span("read", id: "00f067aa0ba902b8", parent: root),
  ]

  /// Returns what the judge reads in the bodies.
  private func judged(_ bodies: [String]) throws -> Data {
    let judge = Fixture.root.appendingPathComponent("Tests/receiver/otlp.py").path
    let result = try Tool.run(
      Tool.python, ["-B", judge], input: Data(bodies.map { $0 + "\n" }.joined().utf8))
    guard result.status == 0 else { throw Tool.Failure(result.errors) }
    return result.output
  }

  private func lines<Value: Decodable>(_ data: Data, as type: Value.Type) throws -> [Value] {
    try data.split(separator: UInt8(ascii: "\n")).map { try JSONDecoder().decode(type, from: $0) }
  }

  private func settings(_ receiver: ReceiverServer, _ others: [String: String] = [:]) throws -> TraceExportSettings {
    let own = ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:\(receiver.port)"]
    let environment = own.merging(others) { $1 }
    return try #require(try TraceExportSettings(environment: { environment[$0] }, version: "1.2"))
  }

  /// The remarks of an exporter on lost spans.
  private final class Remarks: Sendable {
    let all = Mutex<[(lost: Int, cause: String)]>([])
    var lost: Int { all.withLock { $0.reduce(0) { $0 + $1.lost } } }
    var causes: [String] { all.withLock { $0.map(\.cause) } }
  }

  private func exporter(_ settings: TraceExportSettings, _ remarks: Remarks) throws -> SpanExporter {
    try SpanExporter(settings) { lost, cause in remarks.all.withLock { $0.append((lost, cause)) } }
  }

  @Test func bodyIsThatOfTheProtocol() throws {
    let body = OTLPTraces.body(Self.spans, resource: ["service.name": .text("replay")], version: "1.2")
    let text = String(decoding: body, as: UTF8.self)
    let data = try judged([text])
    let read = try lines(data, as: Read.self)
    #expect(read.map(\.name).sorted() == ["batch", "read"])
    let batch = try #require(read.first { $0.name == "batch" })
    #expect(batch.trace == Self.trace && batch.id == Self.root && batch.parent == "")
    #expect(batch.kind == "SPAN_KIND_CONSUMER" && batch.status == "STATUS_CODE_ERROR")
    #expect(batch.message == "read a: no batch" && batch.start == 1_767_859_512_340_000_000)
    #expect(batch.end == 1_767_859_517_340_000_003 && batch.scope == ["encoder-worker", "1.2"])
    #expect(batch.resource == ["service.name": "replay"])
    let child = try #require(read.first { $0.name == "read" })
    #expect(child.parent == Self.root && child.kind == "SPAN_KIND_INTERNAL" && child.status == "STATUS_CODE_UNSET")
    let attributes = try lines(data, as: ReadAttributes.self)[0].attributes
    #expect(attributes.text == "é\u{0}" && attributes.whole == .min && attributes.real == 0.25)
    #expect(attributes.flag && attributes.list == ["a", "b"])
    #expect(throws: Tool.Failure.self) { try judged([text.replacing("\"traceId\"", with: "\"traceID\"")]) }
  }

  @Test func spansArriveAfterRetriesWithTheHeaders() throws {
    let (receiver, remarks) = (try ReceiverServer(), Remarks())
    receiver.answer(.init(status: 503))
    let exporter = try exporter(settings(receiver, ["OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b"]), remarks)
    exporter.add(Self.spans)
    try waitUntil("the receiver has refused a request") { try receiver.log().contains { $0.status == 503 } }
    receiver.answer(.init(status: 200, body: "{}"))
    try waitUntil("the receiver has the spans") { try receiver.accepted().count == 1 }
    let request = try #require(try receiver.accepted().first)
    #expect(request.path == "/v1/traces" && request.headers["content-type"] == "application/json")
    #expect(request.headers["api-key"] == "a b" && request.headers["user-agent"] == "encoder-worker/1.2")
    #expect(try lines(judged([request.body]), as: Read.self).count == 2)
    exporter.stop()
    #expect(remarks.lost == 0, "\(remarks.causes)")
  }

  /// Spans wait for others; the end does not wait.
  @Test func endSendsTheSpansThatWait() throws {
    let (receiver, remarks) = (try ReceiverServer(), Remarks())
    receiver.answer(.init(status: 200))
    let exporter = try exporter(settings(receiver), remarks)
    for _ in 0..<3 { exporter.add(Self.spans) }
    exporter.stop(withinMs: 60_000)
    let bodies = try receiver.accepted().map(\.body)
    #expect(try lines(judged(bodies), as: Read.self).count == 6)
    #expect(remarks.lost == 0, "\(remarks.causes)")
  }

  @Test(arguments: [
    (400, "no\nthanks", 0, "answered 400: no"),
    (200, #"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}"#, 0, "too old"),
    (200, #"{"partialSuccess":{}}"#, 0, ""), (200, "", 1 << 20, ""),
  ])
  func refusedSpansAreCountedOnce(status: Int, body: String, bytes: Int, cause: String) throws {
    let (receiver, remarks) = (try ReceiverServer(), Remarks())
    receiver.answer(.init(status: status, body: body, bytes: bytes))
    let exporter = try exporter(settings(receiver), remarks)
    exporter.add(Self.spans)
    exporter.stop(withinMs: 60_000)
    #expect(remarks.lost == (cause.isEmpty ? 0 : 2), "\(remarks.causes)")
    #expect(remarks.causes.allSatisfy { $0.contains(cause) }, "\(remarks.causes)")
    #expect(try receiver.log().filter { $0.status > 0 }.count == 1)
  }

  /// A receiver that hangs holds nobody up: what does not fit is dropped, and the end comes.
  @Test func spansBeyondTheRoomAreDropped() throws {
    let (receiver, remarks) = (try ReceiverServer(), Remarks())
    receiver.answer(.init(hold: true))
    let exporter = try exporter(settings(receiver), remarks)
    let full = SpanExporter.maximumWaiting / 2
    for _ in 0..<full { exporter.add(Self.spans) }
    try waitUntil("a request hangs") { try receiver.log().count == 1 }
    for _ in 0..<full { exporter.add(Self.spans) }
    exporter.stop(withinMs: 0)
    // Those that are sent, those that wait, and those that found no room.
    #expect(remarks.lost == 4 * full, "\(remarks.causes)")
  }
}
