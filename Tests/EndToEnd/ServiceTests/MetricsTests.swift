import Foundation
import Logging
import SegmentEncoder
import TestSupport
import Testing

/// Metrics and health checks of a worker and a server.
@Suite struct MetricsTests {
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  /// Returns the metrics' values by name and labels.
  private func scrape(_ server: RunningServer) throws -> [String: Double] {
    let text = try server.get("/metrics").text
    let judged = try Tool.run("promtool", ["check", "metrics"], input: Data(text.utf8))
    #expect(judged.status == 0 && judged.errors.isEmpty, "\(judged.errors)")
    let pairs = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
      line.lastIndex(of: " ").flatMap { end in
        Double(line[line.index(after: end)...]).map { (String(line[..<end]), $0) }
      }
    }
    return Dictionary(pairs) { first, _ in first }
  }

  @Test func workerMetricsCountBatchesFramesAndBytes() throws {
    let server = try RunningServer(["run", "--spool", spool.path, "--keep-batches"])
    #expect(try server.get("/healthz").status == 200 && server.get("/readyz").status == 200)
    try spool.add("exact-1fps")
    try spool.add("corrupt-frames")
    try spool.add(file: "bad", [1, 2, 3])
    try spool.addSmall("still@1", startMs: 1_767_859_512_340, frames: [3, 3, 3])
    try spool.waitUntil("batches done") { try spool.names("quarantine").count == 2 && spool.names("done").count == 3 }
    try spool.add("exact-1fps", as: "again")
    try spool.waitUntil("the worker found the duplicate") { try spool.names("done").count == 4 }
    // The worker counts a batch after it has moved it away.
    try spool.waitUntil("the metrics count the duplicate") {
      try scrape(server)["encoder_worker_batches_total{outcome=\"duplicate\"}"] == 1
    }
    let metrics = try scrape(server)
    func value(_ name: String) -> Double? { metrics["encoder_worker_" + name] }
    #expect(value("batches_total{outcome=\"published\"}") == 3)
    #expect(value("batches_total{outcome=\"quarantined\"}") == 1)
    #expect(value("batches{state=\"quarantined\"}") == 1 && value("batches{state=\"done\"}") == 4)
    #expect(value("batches{state=\"waiting\"}") == 0 && value("batches{state=\"claimed\"}") == 0)
    #expect(value("frames_total") == 12 + 3 + 3 && value("frames_refused_total") == 3)
    #expect(value("frames_unchanged_total") == 2)
    #expect(
      value("captures_total") != nil && value("captures_missing_total") != nil && value("captures_late_total") != nil)
    #expect(value("batch_duration_seconds_count") == 4 && value("batch_duration_seconds_bucket{le=\"+Inf\"}") == 4)
    // Four batches were read, three were encoded, and nobody gets their events.
    func stage(_ name: String) -> Double? { value("stage_duration_seconds_count{stage=\"\(name)\"}") }
    for name in ["fetch", "read", "decode", "encode", "publish", "views"] { #expect(stage(name) == 4, "\(name)") }
    #expect(stage("notify") == 0 && value("stage_duration_seconds_bucket{stage=\"encode\",le=\"+Inf\"}") == 4)
    #expect(value("stage_duration_seconds_sum{stage=\"encode\"}").map { $0 > 0 } == true)
    // A duplicate is no news, and the captures of fixtures are older than a day.
    #expect(value("arrival_to_published_seconds_count") == 3 && value("capture_to_published_seconds_count") == 0)
    #expect((value("output_free_bytes") ?? 0) > 0 && value("workers") == 1 && value("ready") == 1)
    #expect(value("rescues_total") == 0 && value("failures_total") == 0)
    let videos = try names(in: spool.output).flatMap { session in
      try names(in: spool.output + "/" + session).filter { $0.hasSuffix(".mp4") }.map {
        try Data(contentsOf: URL(fileURLWithPath: "\(spool.output)/\(session)/\($0)")).count
      }
    }
    #expect(value("bytes_total") == Double(videos.reduce(0, +)))
    #expect(server.stop() == 0)
  }

  @Test func captureOfNowCountsUntilItsPublication() throws {
    let server = try RunningServer(["run", "--spool", spool.path])
    try spool.addSmall("live@1", startMs: Int64(Date().timeIntervalSince1970 * 1_000) - 60_000)
    try spool.waitUntil("the batch is counted") {
      try scrape(server)["encoder_worker_capture_to_published_seconds_count"] == 1
    }
    let metrics = try scrape(server)
    #expect((metrics["encoder_worker_capture_to_published_seconds_sum"] ?? 0) >= 59)
    #expect(metrics["encoder_worker_capture_to_published_seconds_bucket{le=\"30.0\"}"] == 0)
  }

  @Test func embeddedWorkerCountsUnderTheNamesOfMetrics() async throws {
    let server = try RunningServer(["run", "--spool", spool.path])
    let other = try TestSpool()
    let counted = CountedMetrics()
    let worker = try SpoolWorker(
      spool: other.path, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, metrics: counted)
    async let run: Void = worker.run()
    for spool in [spool, other] {
      try spool.add("corrupt-frames")
      try spool.add(file: "bad", [1, 2, 3])
      try spool.addSmall("still@1", startMs: 1_767_859_512_340, frames: [3, 3, 3])
    }
    try await eventually("both workers have counted all batches") {
      let metrics = try scrape(server)
      return ["published": 2, "quarantined": 1].allSatisfy { outcome, count in
        metrics["encoder_worker_batches_total{outcome=\"\(outcome)\"}"] == Double(count)
          && counted.batches(outcome) == count
      }
    }
    await worker.stop()
    try await run
    let metrics = try scrape(server)
    // An embedded worker sends no notifications.
    let counters = metrics.filter {
      $0.key.contains(/^encoder_worker_.*_total/) && !$0.key.hasPrefix("encoder_worker_notifications_total")
    }
    #expect(counters == counted.counters.mapValues(Double.init))
    // Fixtures are older than a day, so no capture counts.
    #expect(
      Set(counted.durations.keys) == [
        "encoder_worker_batch_duration_seconds", "encoder_worker_arrival_to_published_seconds",
      ])
    for (name, count) in counted.durations { #expect(metrics[name + "_count"] == Double(count)) }
  }

  @Test func workerWithoutFreeSpaceIsAliveButNotReady() throws {
    let server = try RunningServer(["run", "--spool", spool.path, "--min-free", "\(Int.max)"])
    try spool.waitUntil("the worker has checked the free space") { try server.get("/readyz").status == 503 }
    #expect(try server.get("/readyz").text.contains("free space"))
    #expect(try server.get("/healthz").status == 200)
    #expect(try scrape(server)["encoder_worker_ready"] == 0)
  }

  @Test func workerThatCannotListenLeavesNoFiles() throws {
    try spool.add("exact-1fps")
    let other = try RunningServer(["run", "--spool", spool.path])
    let before = try (spool.names("claimed"), spool.names("output/.staging"))
    let result = try EncoderWorker.run("run", "--spool", spool.path, "--listen", "127.0.0.1:\(other.port)")
    #expect(result.status == 75 && result.errors.contains("\(other.port)"), "\(result.errors)")
    #expect(try (spool.names("claimed"), spool.names("output/.staging")) == before)
  }

  @Test func claimOfADeadWorkerIsCountedAsRescued() throws {
    let dead = "\(ProcessInfo.processInfo.hostName)~99999999~dead1"
    _ = try spool.scratch.directory("spool/claimed/\(dead)/7.1.0")
    try FileManager.default.copyItem(
      atPath: Fixture("exact-1fps").path, toPath: spool.path + "/claimed/\(dead)/7.1.0/exact-1fps")
    let server = try RunningServer(["run", "--spool", spool.path])
    try spool.waitUntil("the batch is published") {
      try scrape(server)["encoder_worker_batches_total{outcome=\"published\"}"] == 1
    }
    #expect(try scrape(server)["encoder_worker_rescues_total"] == 1)
  }

  /// Prometheus fires each alert on its cause, and none when all is well. Each metric of a rule is one that a worker has.
  @Test func alertRulesFire() throws {
    let judged = try Tool.run("promtool", ["test", "rules", "packaging/prometheus-alerts.test.yaml"])
    #expect(judged.status == 0, "\(judged.text) \(judged.errors)")
    let rules = try String(contentsOfFile: "packaging/prometheus-alerts.yaml", encoding: .utf8)
    let known = try String(contentsOfFile: "docs/metrics.md", encoding: .utf8)
    for metric in Set(rules.matches(of: /encoder_worker_[a-z_]+/).map { String($0.output) }) {
      // The parts of a histogram have its name with an ending.
      let name = metric.replacing(/_bucket$/, with: "")
      #expect(known.contains("`\(name)`"), "\(metric)")
    }
    let tests = try String(contentsOfFile: "packaging/prometheus-alerts.test.yaml", encoding: .utf8)
    for alert in rules.matches(of: /alert: ([A-Za-z]+)/).map({ String($0.output.1) }) {
      #expect(tests.matches(of: /exp_labels/).count >= 11 && tests.contains("alertname: \(alert)"), "\(alert)")
    }
  }

  @Test func serverMetricsCountResponses() throws {
    try spool.add("exact-1fps")
    try spool.drain()
    let server = try RunningServer(["serve", spool.output])
    for _ in 0..<3 { _ = try server.get("/sessions.json") }
    _ = try server.get("/nothing")
    let metrics = try scrape(server)
    #expect(metrics["encoder_worker_http_requests_total{status=\"200\"}"] == 3)
    #expect(metrics["encoder_worker_http_requests_total{status=\"404\"}"] == 1)
    #expect(metrics["encoder_worker_sessions"] == 1)
    #expect(try server.get("/healthz").status == 200 && server.get("/readyz").status == 200)
  }
}
