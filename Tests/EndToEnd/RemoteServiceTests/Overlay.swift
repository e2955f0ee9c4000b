import Foundation
import TestSupport
import Testing

@testable import JSON

/// A rendered overlay of `examples/kubernetes`.
struct Overlay {
  static let probes = ["startupProbe", "livenessProbe", "readinessProbe"]
  /// The variables that the manifests expect in the secret.
  static let secret = [
    "ENCODER_WORKER_QUEUE": "redis://:any@redis:6379", "REDIS_PASSWORD": "any", "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "any",
  ]
  /// Whether there is a kubectl whose Kustomize knows components.
  static let canRender = (try? render("spool")) != nil

  /// The documents by kind.
  private let documents: [String: JSONValue]

  init(_ name: String) throws {
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))"
    let text = try Tool.run(Tool.python, ["-c", script], input: Self.render(name))
    let all = try #require(try JSONParser.parse(Array(text.output)).array, "\(text.errors)")
    documents = Dictionary(all.map { ($0.at("kind").string ?? "", $0) }) { first, _ in first }
    #expect(documents.count == all.count, "two documents of a kind")
  }

  private static func render(_ name: String) throws -> Data {
    let place = Fixture.root.appendingPathComponent("examples/kubernetes/overlays/" + name).path
    return try Tool.output("kubectl", ["kustomize", place])
  }

  func value(_ kind: String, _ path: String) -> JSONValue { (documents[kind] ?? .null).at(path) }

  /// The worker's container.
  var container: JSONValue { value("Deployment", "spec.template.spec.containers.0") }

  /// All containers, the worker's first.
  var containers: [JSONValue] {
    [container, value("CronJob", "spec.jobTemplate.spec.template.spec.containers.0")].filter { $0 != .null }
  }

  /// The variables of the ConfigMap.
  var settings: [String: String] { (value("ConfigMap", "data").object ?? [:]).compactMapValues(\.string) }
}

extension JSONValue {
  /// The value at a path of keys and indices: `spec.containers.0`; null if there is none. `app~` is `app.kubernetes.io/`.
  func at(_ path: String) -> JSONValue {
    path.split(separator: ".").reduce(self) { value, step in
      if let index = Int(step), let array = value.array { return index < array.count ? array[index] : .null }
      return value.object?[String(step).replacing("app~", with: "app.kubernetes.io/")] ?? .null
    }
  }

  /// The elements of a list; none for another value.
  var elements: [JSONValue] { array ?? [] }

  /// A list of texts.
  var words: [String]? { array?.compactMap(\.string) }
}
