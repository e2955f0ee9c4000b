import Foundation
import TestSupport
import Testing

@testable import JSON

/// The overlays of `examples/kubernetes`, as `kubectl kustomize` renders them.
@Suite(.enabled(if: Overlay.canRender, "kubectl with Kustomize 5 is not there; Debian 13 has it in kubernetes-client"))
struct KubernetesTests {
  private static let overlays = [
    "spool", "queue", "queue-pod-identity", "queue-web-identity", "sqs-pod-identity", "ingest",
  ]
  private static let queues = overlays.filter { $0.hasPrefix("queue") }

  /// A fixture as an archive.
  private func batch(_ fixture: String) throws -> Data {
    try Tool.output("tar", ["-C", Fixture(fixture).path, "-cf", "-", "."])
  }

  @Test(arguments: overlays) func everyNameInAnOverlayIsDefinedInIt(_ name: String) throws {
    let overlay = try Overlay(name)
    let pod = overlay.value("Deployment", "spec.template")
    let labels = try #require(pod.at("metadata.labels").object)
    let selectors = [
      ("Deployment", "spec.selector.matchLabels"), ("PodDisruptionBudget", "spec.selector.matchLabels"),
      ("PodMonitor", "spec.selector.matchLabels"), ("NetworkPolicy", "spec.podSelector.matchLabels"),
    ]
    for (kind, path) in selectors {
      let selector = try #require(overlay.value(kind, path).object, "\(kind)")
      #expect(!selector.isEmpty && selector.allSatisfy { labels[$0] == $1 }, "\(kind)")
    }
    // The budget and the deployment do not count the pods of other kinds.
    let component = try #require(labels["app.kubernetes.io/component"])
    #expect(overlay.value("Deployment", "spec.selector.matchLabels").at("app~component") == component)
    #expect(overlay.value("CronJob", "spec.jobTemplate.spec.template.metadata.labels").at("app~component") != component)

    let ports = Dictionary(
      uniqueKeysWithValues: overlay.container.at("ports").elements.map {
        ($0.at("name").string ?? "", $0.at("containerPort"))
      })
    let settings = overlay.settings
    #expect(ports["metrics"]?.integer.map { "0.0.0.0:\($0)" } == settings["ENCODER_WORKER_LISTEN"])
    #expect(ports["ingest"]?.integer.map { "0.0.0.0:\($0)" } == settings["ENCODER_WORKER_INGEST"])
    let probed = Overlay.probes.map { overlay.container.at("\($0).httpGet.port") }
    let scraped = overlay.value("PodMonitor", "spec.podMetricsEndpoints").elements.map { $0.at("port") }
    let allowed = overlay.value("NetworkPolicy", "spec.ingress").elements.flatMap {
      $0.at("ports").elements.map { $0.at("port") }
    }
    for port in probed + scraped + allowed { #expect(port.string.map { ports[$0] != nil } == true, "\(port)") }
    for port in scraped { #expect(allowed.contains(port)) }

    for container in overlay.containers {
      for source in container.at("envFrom").elements {
        let map = source.at("configMapRef.name").string
        #expect(
          map == overlay.value("ConfigMap", "metadata.name").string
            || source.at("secretRef.name").string == "encoder-worker")
      }
      #expect(container.at("image").string == "encoder-worker:0.1.0")
    }
    #expect(pod.at("spec.serviceAccountName") == overlay.value("ServiceAccount", "metadata.name"))
    let claims = pod.at("spec.volumes").elements.compactMap { $0.at("persistentVolumeClaim.claimName").string }
    #expect(claims == [overlay.value("PersistentVolumeClaim", "metadata.name").string].compactMap { $0 })
    let mounted = Set(overlay.container.at("volumeMounts").elements.map { $0.at("name").string })
    #expect(mounted == Set(pod.at("spec.volumes").elements.map { $0.at("name").string }))
  }

  @Test(arguments: overlays) func programTakesTheSettingsOfAnOverlay(_ name: String) throws {
    let overlay = try Overlay(name)
    let environment = overlay.settings.merging(name.hasPrefix("queue") ? Overlay.secret : [:]) { $1 }
    for container in overlay.containers {
      let words = try #require(container.at("command").words).dropFirst()
      let result = try Tool.run(EncoderWorker.path, ["config"] + words, environment: environment)
      #expect(result.status == 0, "\(words): \(result.errors)")
      // A misspelt name would be missing in the table.
      let rows = result.text.split(separator: "\n")
      guard words.first == "run" else { continue }
      for setting in overlay.settings.keys where setting.hasPrefix("ENCODER_WORKER_") {
        let isEmpty = overlay.settings[setting] == ""
        #expect(rows.contains { $0.hasSuffix("environment \(setting)") } != isEmpty, "\(setting)")
      }
    }
  }

  @Test(arguments: queues) func scalerReconcilerAndWorkersAgree(_ name: String) throws {
    let overlay = try Overlay(name)
    let scaled = overlay.value("ScaledObject", "spec.scaleTargetRef.name")
    #expect(scaled == overlay.value("Deployment", "metadata.name"))
    let authentication = overlay.value("ScaledObject", "spec.triggers.0.authenticationRef.name")
    #expect(authentication == overlay.value("TriggerAuthentication", "metadata.name"))
    #expect(overlay.value("TriggerAuthentication", "spec.secretTargetRef.0.name").string == "encoder-worker")
    #expect(overlay.value("Deployment", "spec.replicas") == .null, "KEDA sets the number")
    // The stream of a queue without settings of its own.
    #expect(overlay.value("ScaledObject", "spec.triggers.0.metadata.stream").string == "encoder-worker")
    #expect(overlay.containers.count == 2)
    let settings = overlay.settings
    #expect(settings["ENCODER_WORKER_SPOOL"] == "" && settings["ENCODER_WORKER_STORE"]?.hasPrefix("s3://") == true)
    // An empty endpoint is Amazon's. Keys are in no manifest.
    #expect((settings["AWS_ENDPOINT_URL_S3"] == "") == (name != "queue"))
    #expect(!settings.keys.contains { $0.contains("KEY") || $0.contains("PASSWORD") })
  }

  @Test func overlayForSQSNeedsNoSecretAndScalesByTheWorkersQueue() throws {
    let overlay = try Overlay("sqs-pod-identity")
    let queue = try #require(overlay.settings["ENCODER_WORKER_QUEUE"]?.split(separator: "/").last)
    let region = try #require(overlay.settings["AWS_REGION"])
    let trigger = overlay.value("ScaledObject", "spec.triggers.0.metadata")
    let address = try #require(trigger.at("queueURL").string)
    #expect(address.hasPrefix("https://sqs.\(region).amazonaws.com/") && address.hasSuffix("/\(queue)"))
    #expect(trigger.at("awsRegion").string == region)
    #expect(overlay.containers.count == 2)
    for container in overlay.containers {
      let sources = container.at("envFrom").elements
      #expect(sources.count == 1 && sources[0].at("secretRef") == .null)
    }
    let ports = overlay.value("NetworkPolicy", "spec.egress").elements.flatMap { rule in
      rule.at("ports").elements.compactMap { $0.at("port").integer }
    }
    #expect(ports == [53, 53, 80, 443])
  }

  @Test func webIdentityMountsTheTokenThatTheVariableNames() throws {
    let overlay = try Overlay("queue-web-identity")
    let path = try #require(overlay.settings["AWS_WEB_IDENTITY_TOKEN_FILE"])
    #expect(overlay.settings["AWS_ROLE_ARN"]?.hasPrefix("arn:aws:iam::") == true)
    let pods = ["Deployment": "spec.template.spec", "CronJob": "spec.jobTemplate.spec.template.spec"]
    for (kind, spec) in pods {
      let volume = try #require(
        overlay.value(kind, spec + ".volumes").elements.first { $0.at("projected") != .null }, "\(kind)")
      let token = volume.at("projected.sources.0.serviceAccountToken")
      #expect(token.at("audience").string == "sts.amazonaws.com")
      let mounts = overlay.value(kind, spec + ".containers.0.volumeMounts").elements
      let mount = try #require(mounts.first { $0.at("name") == volume.at("name") }?.at("mountPath").string)
      #expect(path == "\(mount)/\(token.at("path").string ?? "")")
    }
    // EKS sets the variables of Pod Identity.
    #expect(try Overlay("queue-pod-identity").settings["AWS_WEB_IDENTITY_TOKEN_FILE"] == nil)
  }

  /// Runs the containers' commands with the settings of the overlay, and asks what the probes ask.
  @Test(
    .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
    .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
  func workerOfTheQueueAnswersItsProbesAndEmptiesTheStream() throws {
    let overlay = try Overlay("queue")
    let (queue, store, scratch) = (try QueueServer(), try StoreServer.shared.get(), try ScratchDirectory())
    let prefix = UUID().uuidString
    let location = "s3://\(StoreServer.bucket)/\(prefix)"
    // The image's own variable, then those of the manifests, then the addresses of this test's servers.
    var environment = ["ENCODER_WORKER_SPOOL": "/spool"].merging(overlay.settings) { $1 }
    environment.merge(store.environment) { $1 }
    environment.merge([
      "ENCODER_WORKER_QUEUE": queue.url, "ENCODER_WORKER_STORE": location, "ENCODER_WORKER_LISTEN": "",
      "REDIS_PASSWORD": "any", "TMPDIR": scratch.path(""),
    ]) { $1 }
    let words = try #require(overlay.container.at("command").words)
    #expect(words.first == "/usr/bin/encoder-worker")
    let server = try RunningServer(Array(words.dropFirst()), environment: environment, listening: "0.0.0.0:0")

    let shots = try (0..<2).map { number in
      let shot = scratch.path("\(1_767_859_512_340 + number * 1_000).jpg")
      try FileManager.default.copyItem(atPath: Fixture("exact-1fps").path + "/000\(number).jpg", toPath: shot)
      return shot
    }
    let producer = ["enqueue", "--queue", queue.url, "--store", location, "--session", "walk"] + shots
    #expect(try Tool.run(EncoderWorker.path, producer, environment: store.environment).status == 0)
    try waitUntil("the batch is published") { try store.object("\(prefix)/output/walk/hls/session.m3u8") != nil }
    // The scaler counts these: no entry remains when no batch waits or is in work.
    try waitUntil("the stream is empty") { try queue.command("XLEN", "encoder-worker") == ["0"] }
    // A producer that only writes objects waits for the CronJob.
    try store.put("\(prefix)/incoming/gap.tar", try batch("gap"))
    let reconcile = try #require(overlay.containers.last?.at("command").words).dropFirst()
    let reconciled = try Tool.run(EncoderWorker.path, Array(reconcile), environment: environment)
    #expect(reconciled.status == 0, "\(reconciled.errors)")
    try waitUntil("that batch is published") { try store.object("\(prefix)/output/gap/hls/session.m3u8") != nil }

    let pod = ["Host": "10.244.1.7:9090"]  // A kubelet asks for the pod's address.
    for probe in Overlay.probes {
      let path = try #require(overlay.container.at("\(probe).httpGet.path").string)
      #expect(try server.get(path, pod).status == 200, "\(probe)")
    }
    let metrics = try #require(overlay.value("PodMonitor", "spec.podMetricsEndpoints.0.path").string)
    #expect(try server.get(metrics, pod).text.contains("encoder_worker_batches_total"))
    queue.kill()
    try waitUntil("the worker is not ready without Redis") { try server.get("/readyz", pod).status == 503 }
    #expect(try server.get("/healthz", pod).status == 200)
    #expect(server.stop() == 0)
  }

  @Test func workerOfTheIngestTakesABatchThroughTheHostOfTheIngress() throws {
    let overlay = try Overlay("ingest")
    let spool = try TestSpool()
    let tokens = try spool.scratch.file("tokens", Array("app 0123456789abcdef\n".utf8))
    // The mode of the mounted secret.
    let volume = try #require(
      overlay.value("Deployment", "spec.template.spec.volumes").elements.first { $0.at("secret") != .null })
    let mode = try #require(volume.at("secret.defaultMode").integer)
    try FileManager.default.setAttributes([.posixPermissions: Int(mode)], ofItemAtPath: tokens)
    var environment = overlay.settings
    let mounts = overlay.container.at("volumeMounts").elements
    let mount = try #require(mounts.first { $0.at("name") == volume.at("name") }?.at("mountPath").string)
    #expect(environment["ENCODER_WORKER_INGEST_TOKENS"] == "\(mount)/tokens")
    environment.merge([
      "ENCODER_WORKER_SPOOL": spool.path, "ENCODER_WORKER_INGEST": "", "ENCODER_WORKER_LISTEN": "",
      "ENCODER_WORKER_INGEST_TOKENS": tokens, "ENCODER_WORKER_LOG_FORMAT": "text",
    ]) { $1 }
    let ingest = try RunningIngest([], environment: environment)

    let rule = overlay.value("Ingress", "spec.rules.0")
    let host = try #require(rule.at("host").string)
    #expect(rule.at("http.paths.0.backend.service.name") == overlay.value("Service", "metadata.name"))
    #expect(rule.at("http.paths.0.backend.service.port.name") == overlay.value("Service", "spec.ports.0.name"))
    #expect(overlay.value("Service", "spec.ports.0.targetPort").string == "ingest")
    let path = try #require(rule.at("http.paths.0.path").string)
    let archive = try batch("gap")
    let headers = ["Host": host, "Authorization": "Bearer 0123456789abcdef"]
    #expect(try ingest.send("PUT", path + "batches/gap.tar", headers, body: archive).status == 201)
    #expect(try ingest.send("PUT", path + "batches/gap.tar", ["Host": host], body: archive).status == 401)
    try spool.waitUntil("published") { try spool.names("output/gap/hls").contains("session.m3u8") }
    let ready = overlay.container.at("readinessProbe.httpGet")
    #expect(ready.at("port").string == "ingest")
    for path in [try #require(ready.at("path").string), "/metrics"] {
      #expect(try ingest.send("GET", path, ["Host": "10.244.1.7:8480"]).status == 200, "\(path)")
    }
    #expect(ingest.stop() == 0)
  }
}
