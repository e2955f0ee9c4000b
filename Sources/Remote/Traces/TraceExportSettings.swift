// Where spans go, as OpenTelemetry's variables say: OTEL_EXPORTER_OTLP_ENDPOINT and others.

import FileSystem
import Glibc
import Notifying

package struct TraceExportSettings: Sendable {
  private static let prefix = "OTEL_EXPORTER_OTLP_"
  /// More in the environment is a mistake.
  private static let maximumPairs = 64

  let url: HTTPAddress
  /// They may hold a secret.
  let headers: [(name: String, value: String)]
  /// Milliseconds that a request may take.
  let timeoutMs: Int
  let resource: [String: SpanRecord.Value]
  let version: String
  package let sampler: TraceSampler

  /// The receiver's address without path and query.
  package var name: String { url.name }

  /// Reads the environment.
  ///
  /// - Parameters:
  ///   - value: returns a variable.
  ///   - version: of the program.
  /// - Returns: nil if it names no receiver, or switches tracing off.
  /// - Throws: ``BadTraceSetting``, which names the variable.
  package init?(environment value: (String) -> String?, version: String) throws {
    func variable(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
    /// A variable for traces comes before the one for all signals.
    func either(_ name: String) -> (name: String, value: String)? {
      [Self.prefix + "TRACES_" + name, Self.prefix + name].compactMap { key in
        variable(key).map { (key, $0) }
      }.first
    }
    guard let endpoint = either("ENDPOINT"), variable("OTEL_SDK_DISABLED")?.lowercased() != "true",
      variable("OTEL_TRACES_EXPORTER") ?? "otlp" != "none"
    else { return nil }
    if let exporter = variable("OTEL_TRACES_EXPORTER"), exporter != "otlp" {
      throw BadTraceSetting("OTEL_TRACES_EXPORTER: there is otlp, and none")
    }
    if let (name, protocolName) = either("PROTOCOL"), protocolName != "http/json" {
      // Receivers of http/protobuf take JSON at the same address.
      guard protocolName == "http/protobuf" else {
        throw BadTraceSetting("\(name): spans are sent as http/json; name a receiver of OTLP over HTTP")
      }
    }
    // The address of all signals gets a path; the address for traces is taken as it is.
    let isWhole = endpoint.name.hasPrefix(Self.prefix + "TRACES_")
    let base = endpoint.value.hasSuffix("/") ? String(endpoint.value.dropLast()) : endpoint.value
    url = HTTPAddress(argument: isWhole ? endpoint.value : base + "/v1/traces")
    guard url.fault == nil else {
      // The message does not repeat the address: it may hold a secret.
      throw BadTraceSetting(
        "\(endpoint.name) is no http:// or https:// address of a host; put credentials into \(Self.prefix)HEADERS")
    }
    headers = try either("HEADERS").map { try Self.headers($0.value, of: $0.name) } ?? []
    timeoutMs =
      try either("TIMEOUT").map { name, text in
        guard let ms = Int(text), (1...600_000).contains(ms) else {
          throw BadTraceSetting("\(name): '\(text.prefix(40))' is no number of milliseconds from 1 to 600000")
        }
        return ms
      } ?? 10_000
    let key = "OTEL_RESOURCE_ATTRIBUTES"
    var resource = try variable(key).map { try Self.pairs($0, of: key) } ?? []
    if let service = variable("OTEL_SERVICE_NAME") { resource.append(("service.name", service)) }
    let own: [String: SpanRecord.Value] = [
      "service.name": .text("encoder-worker"), "service.version": .text(version),
      "service.instance.id": .text("\(WorkerID())"),
    ]
    self.resource = resource.reduce(into: own) { $0[$1.name] = .text($1.value) }
    self.version = version
    guard
      let sampler = TraceSampler(
        name: variable("OTEL_TRACES_SAMPLER"), argument: variable("OTEL_TRACES_SAMPLER_ARG"))
    else {
      throw BadTraceSetting(
        "OTEL_TRACES_SAMPLER: there are always_on, always_off, traceidratio and parentbased_ before these; "
          + "OTEL_TRACES_SAMPLER_ARG is a ratio from 0 to 1")
    }
    self.sampler = sampler
  }

  /// Reads the environment of this process.
  package init?(version: String) throws {
    try self.init(environment: { getenv($0).map { String(cString: $0) } }, version: version)
  }

  private static func headers(_ text: String, of name: String) throws -> [(name: String, value: String)] {
    let headers = try pairs(text, of: name)
    for header in headers {
      guard header.name.isPlain(and: "!#$%&'*+-.^_`|~"), header.value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
      else { throw BadTraceSetting("\(name) has a name or a value that no header can have") }
    }
    return headers
  }

  /// Reads `name=value,name=value`; the values are percent-encoded. No message repeats them: they may be secrets.
  private static func pairs(_ text: String, of name: String) throws -> [(name: String, value: String)] {
    let items = text.split(separator: ",").map(trimmed).filter { !$0.isEmpty }
    guard items.count <= maximumPairs, text.utf8.count <= 64 << 10 else {
      throw BadTraceSetting("\(name) has more than \(maximumPairs) values")
    }
    return try items.map { item in
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(trimmed)
      guard parts.count == 2, !parts[0].isEmpty,
        let value = PercentEncoding.decoded(parts[1]).flatMap({ String(validating: $0, as: UTF8.self) })
      else { throw BadTraceSetting("\(name) is no list NAME=VALUE,NAME=VALUE with percent-encoded values") }
      return (String(parts[0]), value)
    }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    let rest = text.drop { $0 == " " || $0 == "\t" }
    return rest.lastIndex { $0 != " " && $0 != "\t" }.map { rest[...$0] } ?? ""
  }
}

/// An invalid variable. The message repeats no secret.
package struct BadTraceSetting: Error, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}
