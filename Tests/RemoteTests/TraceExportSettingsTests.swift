import FrameBatches
import Testing

@testable import Remote

/// The variables of OpenTelemetry that say where spans go.
@Suite struct TraceExportSettingsTests {
  private static let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

  private func settings(_ environment: [String: String]) throws -> TraceExportSettings? {
    try TraceExportSettings(environment: { environment[$0] }, version: "1.2")
  }

  @Test(arguments: [
    ([endpoint: "http://collector:4318"], "http://collector:4318/v1/traces"),
    ([endpoint: "http://collector:4318/"], "http://collector:4318/v1/traces"),
    ([endpoint: "https://a/otlp"], "https://a/otlp/v1/traces"),
    ([endpoint: "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/x/"], "http://b/x/"),
    ([endpoint: "http://a", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"], "http://a/v1/traces"),
    ([endpoint: "http://a", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"], "http://a/v1/traces"),
    ([endpoint: "http://a", "OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "no"], "http://a/v1/traces"),
  ])
  func endpointGetsThePathOfTraces(environment: [String: String], url: String) throws {
    #expect(try #require(try settings(environment)).url.text == url)
  }

  static let off: [[String: String]] = [
    [:], [endpoint: ""], ["OTEL_EXPORTER_OTLP_HEADERS": "a=b"], [endpoint: "http://a", "OTEL_SDK_DISABLED": "TRUE"],
    [endpoint: "http://a", "OTEL_TRACES_EXPORTER": "none"],
  ]

  @Test(arguments: off)
  func exportIsOffWithoutAReceiver(environment: [String: String]) throws {
    #expect(try settings(environment) == nil)
  }

  @Test(arguments: [
    [endpoint: "collector:4318"], [endpoint: "ftp://a"], [endpoint: "http://user:hush@a"],
    [endpoint: "http://a/hush b"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"], ["OTEL_EXPORTER_OTLP_TIMEOUT": "0"],
    ["OTEL_EXPORTER_OTLP_TIMEOUT": "10s"], ["OTEL_TRACES_EXPORTER": "jaeger"], ["OTEL_TRACES_SAMPLER": "some"],
    ["OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1.5"],
    ["OTEL_EXPORTER_OTLP_HEADERS": "hush"], ["OTEL_EXPORTER_OTLP_HEADERS": "a=hush%0d%0aX: y"],
    ["OTEL_EXPORTER_OTLP_HEADERS": "a b=hush"], ["OTEL_EXPORTER_OTLP_HEADERS": "a=hush%"],
    ["OTEL_RESOURCE_ATTRIBUTES": "=hush"], ["OTEL_RESOURCE_ATTRIBUTES": "a=%ff"],
    ["OTEL_EXPORTER_OTLP_HEADERS": String(repeating: "a=hush,", count: 65)],
  ])
  func invalidVariableIsNamedAndNotRepeated(environment: [String: String]) throws {
    let error = #expect(throws: BadTraceSetting.self) {
      try settings([Self.endpoint: "http://a"].merging(environment) { $1 })
    }
    let text = try #require(error).description
    #expect(environment.keys.contains { text.contains($0) } && !text.contains("hush"), "\(text)")
  }

  @Test func headersResourceAndTimeoutAreRead() throws {
    let read = try #require(
      try settings([
        Self.endpoint: "http://a:1/secret-path", "OTEL_EXPORTER_OTLP_HEADERS": "x=1",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": " api-key = a%20b%3D , x-tenant=7,",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "2500", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,host.name=h%2C1",
        "OTEL_SERVICE_NAME": "replay",
      ]))
    #expect(read.name == "http://a:1")
    #expect(read.headers.map(\.name) == ["api-key", "x-tenant"] && read.headers.map(\.value) == ["a b=", "7"])
    #expect(read.timeoutMs == 2_500)
    #expect(read.resource["service.name"] == .text("replay") && read.resource["host.name"] == .text("h,1"))
    #expect(read.resource["service.version"] == .text("1.2") && read.resource["service.instance.id"] != nil)
  }

  /// Whether a trace is exported that begins here, that continues a recorded one, and that continues another one.
  struct Decision {
    let name: String?
    var argument: String?
    let alone, sampled, unsampled: Bool
  }

  static let decisions = [
    Decision(name: nil, alone: true, sampled: true, unsampled: false),
    Decision(name: "always_on", alone: true, sampled: true, unsampled: true),
    Decision(name: "always_off", alone: false, sampled: false, unsampled: false),
    Decision(name: "parentbased_always_on", alone: true, sampled: true, unsampled: false),
    Decision(name: "parentbased_always_off", alone: false, sampled: true, unsampled: false),
    Decision(name: "traceidratio", argument: "0", alone: false, sampled: false, unsampled: false),
    Decision(name: "traceidratio", argument: "1", alone: true, sampled: true, unsampled: true),
    Decision(name: "parentbased_traceidratio", argument: "0", alone: false, sampled: true, unsampled: false),
  ]

  @Test(arguments: decisions) func samplerDecides(_ decision: Decision) throws {
    let sampler = try #require(TraceSampler(name: decision.name, argument: decision.argument))
    let id = "4bf92f3577b34da6a3ce929d0e0e4736"
    func parent(_ flags: String) -> TraceParent? { TraceParent("00-\(id)-00f067aa0ba902b7-\(flags)") }
    #expect(sampler.samples(id, parent: nil) == decision.alone)
    #expect(sampler.samples(id, parent: parent("01")) == decision.sampled)
    #expect(sampler.samples(id, parent: parent("00")) == decision.unsampled)
  }

  /// A quarter of the traces, and the same ones in each program.
  @Test func ratioSamplesThatPartOfTheTraces() throws {
    let sampler = try #require(TraceSampler(name: "traceidratio", argument: "0.25"))
    func id(_ random: UInt64) -> String {
      let digits = String(random, radix: 16)
      return "4bf92f3577b34da6a3" + String(repeating: "0", count: 14 - digits.count) + digits
    }
    let (quarter, whole) = (UInt64(1) << 54, UInt64(1) << 56)
    #expect(sampler.samples(id(0), parent: nil) && sampler.samples(id(quarter - 1), parent: nil))
    #expect(!sampler.samples(id(quarter), parent: nil) && !sampler.samples(id(whole - 1), parent: nil))
  }
}
