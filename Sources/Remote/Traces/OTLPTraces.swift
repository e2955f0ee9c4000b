// Spans as JSON of the OpenTelemetry protocol (OTLP 1.x, ExportTraceServiceRequest). IDs are hexadecimal there, and 64-bit integers are
// texts.

import JSON

enum OTLPTraces {
  /// Returns the body of an export.
  ///
  /// - Parameter resource: the attributes of the program that made the spans.
  static func body(_ spans: [SpanRecord], resource: [String: SpanRecord.Value], version: String) -> [UInt8] {
    let scope: JSONValue = .object(["name": .string("encoder-worker"), "version": .string(version)])
    let scopeSpans: JSONValue = .object(["scope": scope, "spans": .array(spans.map(json))])
    return JSONValue.object([
      "resourceSpans": .array([
        .object(["resource": .object(["attributes": json(resource)]), "scopeSpans": .array([scopeSpans])])
      ])
    ]).bytes()
  }

  /// Returns the number of spans that a receiver has refused in an answer of success, and why; nil if it has refused none.
  static func refusal(in answer: [UInt8]) -> (spans: Int, cause: String)? {
    guard let partial = try? JSONParser.parse(answer).object?["partialSuccess"]?.object else { return nil }
    let count = partial["rejectedSpans"].flatMap { $0.integer ?? $0.string.flatMap { Int64($0) } } ?? 0
    return count > 0 ? (Int(clamping: count), partial["errorMessage"]?.string ?? "no message") : nil
  }

  private static func json(_ record: SpanRecord) -> JSONValue {
    let span = record.span
    var members: [String: JSONValue] = [
      "traceId": .string(record.traceID), "spanId": .string(span.id), "name": .string(span.name),
      "kind": .number(span.kind.rawValue), "startTimeUnixNano": .string("\(span.startNs)"),
      "endTimeUnixNano": .string("\(span.endNs)"), "attributes": json(span.attributes),
    ]
    members["parentSpanId"] = span.parentID.map { .string($0) }
    if !span.events.isEmpty { members["events"] = .array(span.events.map(json)) }
    // 2 is an error; without a status, it is unset.
    members["status"] = span.error.map { .object(["code": .number(2), "message": .string($0)]) }
    return .object(members)
  }

  private static func json(_ event: SpanRecord.Event) -> JSONValue {
    .object([
      "name": .string(event.name), "timeUnixNano": .string("\(event.timeNs)"), "attributes": json(event.attributes),
    ])
  }

  private static func json(_ attributes: [String: SpanRecord.Value]) -> JSONValue {
    .array(
      attributes.sorted { $0.key < $1.key }.map { .object(["key": .string($0.key), "value": json($0.value)]) })
  }

  private static func json(_ value: SpanRecord.Value) -> JSONValue {
    switch value {
    case .text(let text): .object(["stringValue": .string(text)])
    case .whole(let number): .object(["intValue": .string("\(number)")])
    // JSON has no other numbers; protobuf's JSON has these as texts.
    case .real(let number): .object(["doubleValue": number.isFinite ? .number("\(number)") : .string(name(of: number))])
    case .flag(let flag): .object(["boolValue": .bool(flag)])
    case .list(let values): .object(["arrayValue": .object(["values": .array(values.map(json))])])
    }
  }

  private static func name(of number: Double) -> String {
    number.isNaN ? "NaN" : number > 0 ? "Infinity" : "-Infinity"
  }
}
