import Foundation
import TestSupport
import Testing

@testable import JSON
@testable import Remote

/// The Deployment of `examples/kubernetes`, and what belongs to it.
@Suite struct KubernetesTests {
  /// The documents of the manifest by kind.
  private let documents: [String: JSONValue]

  init() throws {
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"
    let path = Fixture.root.appendingPathComponent("examples/kubernetes/worker.yaml").path
    let text = try Tool.output(Tool.python, ["-c", script, path])
    let all = try #require(try JSONParser.parse(Array(text)).array)
    documents = Dictionary(uniqueKeysWithValues: all.map { ($0.at("kind").string ?? "", $0) })
  }

  private func value(_ kind: String, _ path: String) -> JSONValue { (documents[kind] ?? .null).at(path) }

  private var container: JSONValue { value("Deployment", "spec.template.spec.containers.0") }

  private func words(_ path: String) throws -> [String] {
    try #require(container.at(path).array).compactMap(\.string)
  }

  @Test func everyDocumentNamesTheDeploymentsPodsAndPorts() throws {
    let labels = value("Deployment", "spec.template.metadata.labels")
    #expect(labels.object?.isEmpty == false)
    let selectors = [
      ("Deployment", "spec.selector.matchLabels"), ("PodDisruptionBudget", "spec.selector.matchLabels"),
      ("PodMonitor", "spec.selector.matchLabels"), ("NetworkPolicy", "spec.podSelector.matchLabels"),
    ]
    for (kind, path) in selectors { #expect(value(kind, path) == labels, "\(kind)") }
    let name = value("Deployment", "metadata.name")
    #expect(value("ScaledObject", "spec.scaleTargetRef.name") == name)
    let account = value("Deployment", "spec.template.spec.serviceAccountName")
    #expect(account == value("ServiceAccount", "metadata.name"))
    let authentication = value("ScaledObject", "spec.triggers.0.authenticationRef.name")
    #expect(authentication == value("TriggerAuthentication", "metadata.name"))
    let secret = container.at("envFrom.0.secretRef.name")
    #expect(secret.string != nil && value("TriggerAuthentication", "spec.secretTargetRef.0.name") == secret)

    let port = container.at("ports.0.name")
    #expect(value("PodMonitor", "spec.podMetricsEndpoints.0.port") == port)
    #expect(value("NetworkPolicy", "spec.ingress.0.ports.0.port") == port)
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
      #expect(container.at("\(probe).httpGet.port") == port, "\(probe)")
    }
    let number = try #require(container.at("ports.0.containerPort").integer)
    #expect(try words("args").contains("--listen=0.0.0.0:\(number)"))
    #expect(value("Deployment", "spec.replicas") == .null, "KEDA sets the number")
    // The names of a queue without settings of its own.
    let stream = try RedisURL("redis://redis").stream
    #expect(value("ScaledObject", "spec.triggers.0.metadata.stream").string == stream)
  }

  /// Runs the container's command with the variables that the manifest's head lists, and asks what the probes ask.
  @Test(
    .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
    .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
  func commandOfTheDeploymentWorksAnswersItsProbesAndEmptiesTheStream() throws {
    let (queue, store, scratch) = (try QueueServer(), try StoreServer.shared.get(), try ScratchDirectory())
    let location = "s3://\(StoreServer.bucket)/\(UUID().uuidString)"
    var environment = store.environment
    environment["ENCODER_WORKER_QUEUE"] = queue.url
    environment["ENCODER_WORKER_STORE"] = location
    environment["REDIS_PASSWORD"] = "any"
    environment["TMPDIR"] = scratch.path("")
    // The image's own variables, then those of the manifest.
    environment["ENCODER_WORKER_SPOOL"] = "/spool"
    for variable in container.at("env").array ?? [] {
      environment[try #require(variable.at("name").string)] = variable.at("value").string
    }
    #expect(try words("command").first == "/usr/bin/encoder-worker")
    let arguments = try words("command").dropFirst() + words("args").filter { !$0.hasPrefix("--listen=") }
    let server = try RunningServer(Array(arguments), environment: environment, listening: "0.0.0.0:0")

    let shots = try (0..<2).map { number in
      let shot = scratch.path("\(1_767_859_512_340 + number * 1_000).jpg")
      try FileManager.default.copyItem(atPath: Fixture("exact-1fps").path + "/000\(number).jpg", toPath: shot)
      return shot
    }
    let words = ["enqueue", "--queue", queue.url, "--store", location, "--session", "walk"] + shots
    #expect(try Tool.run(EncoderWorker.path, words, environment: store.environment).status == 0)
    let client = try S3Client(S3Location(location), S3Settings { store.environment[$0] })
    try waitUntil("the batch is published") { try client.get("output/walk/hls/session.m3u8", limit: 1 << 20) != nil }
    // The scaler counts these: no entry remains when no batch waits or is in work.
    try waitUntil("the stream is empty") { try queue.command("XLEN", "encoder-worker") == ["0"] }

    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
      let path = try #require(container.at("\(probe).httpGet.path").string)
      // A kubelet asks for the pod's address.
      #expect(try server.get(path, ["Host": "10.244.1.7:9090"]).status == 200, "\(probe)")
    }
    let metrics = try #require(value("PodMonitor", "spec.podMetricsEndpoints.0.path").string)
    #expect(try server.get(metrics, ["Host": "10.244.1.7:9090"]).text.contains("encoder_worker_batches_total"))
    queue.kill()
    try waitUntil("the worker is not ready without Redis") {
      try server.get("/readyz", ["Host": "10.244.1.7:9090"]).status == 503
    }
    #expect(try server.get("/healthz", ["Host": "10.244.1.7:9090"]).status == 200)
    #expect(server.stop() == 0)
  }
}

extension JSONValue {
  /// The value at a path of keys and indices: `spec.containers.0`; null if there is none.
  fileprivate func at(_ path: String) -> JSONValue {
    path.split(separator: ".").reduce(self) { value, step in
      if let index = Int(step), let array = value.array { return index < array.count ? array[index] : .null }
      return value.object?[String(step)] ?? .null
    }
  }
}
