// The routes of `run --listen`: whether the worker lives, whether it can work, and its metrics.

import FileSystem
import Notifying
import SegmentEncoder
import Synchronization
import WorkQueues

package final class HealthRoutes: Sendable {
  /// Seconds without a heartbeat of the main loop after which the worker is unhealthy.
  private static let timeoutS = 60

  private let worker: Worker
  private let trouble: @Sendable () -> String?
  private let shutdown: ShutdownState
  private let version: String
  private let requests: @Sendable () -> [String: Int]
  /// The last status, with its time in monotonic milliseconds. A spool is scanned once a second at most.
  private let status = Mutex<(at: Int, status: QueueStatus)?>(nil)

  /// - Parameters:
  ///   - version: of the program, for metrics.
  ///   - requests: the number of requests to a store, by their kind; none without a store.
  ///   - trouble: the reason why no batch is started; nil if batches are started.
  package init(
    _ worker: Worker, _ shutdown: ShutdownState, version: String,
    requests: @escaping @Sendable () -> [String: Int] = { [:] }, trouble: @escaping @Sendable () -> String?
  ) {
    self.requests = requests
    self.worker = worker
    self.shutdown = shutdown
    self.version = version
    self.trouble = trouble
  }

  package func answer(_ request: HTTPRequest) -> HTTPResponse {
    switch request.path {
    case "/healthz": return .state(illness)
    case "/readyz": return .state(trouble(), remark: worker.notifier?.remark)
    case "/metrics": return HTTPResponse(.metrics, Array(metrics().utf8))
    case "/": return HTTPResponse(.text, Array("encoder-worker: /metrics, /healthz, /readyz\n".utf8))
    default: return .failure(404, "nothing is at \(request.path)")
    }
  }

  /// The reason for a restart; nil if the worker is healthy.
  private var illness: String? {
    if shutdown.silentS >= Self.timeoutS { return "main loop unresponsive for \(shutdown.silentS) s" }
    let stuck = worker.jobs.stuck
    return stuck.isEmpty ? nil : stuck.map { "\($0)" }.joined(separator: "\n")
  }

  private func current() throws -> QueueStatus {
    try status.withLock { known in
      let now = MonotonicClock.milliseconds()
      if let known, now - known.at < 1_000 { return known.status }
      let status = try worker.queue.status(output: worker.store.staging.output)
      known = (now, status)
      return status
    }
  }

  private func metrics() -> String {
    var text = MetricsText()
    text.gauge("encoder_worker_ready", "1 while new batches are started, else 0.", trouble() == nil ? 1 : 0)
    text.gauge(
      "encoder_worker_batches_stuck", "Batches in work that are beyond their deadline.", worker.jobs.stuck.count)
    let counts = worker.meter.now
    for counter in WorkerCounter.all {
      text.metric(
        counter.name, counter.help, "counter", by: counter.hasOutcomes ? "outcome" : "",
        counter.values.map { ($0.outcome, "\(counts[keyPath: $0.count])") })
    }
    write(durationsOf: counts, to: &text)
    if let screens = worker.screens?.counts {
      text.gauge("encoder_worker_frozen_screens", "Sessions whose screen has not changed for --frozen.", screens.frozen)
      text.gauge("encoder_worker_blank_screens", "Frozen screens that show one colour.", screens.blank)
    }
    write(worker.notifier?.counts ?? NotificationCounts(), to: &text)
    let ends = worker.owedEnds
    text.gauge(
      "encoder_worker_session_ends_owed", "Ends of sessions that wait for batches, or failed.", ends.count)
    text.gauge(
      "encoder_worker_oldest_session_end_age_seconds", "Age of the oldest of them; 0 if there is none.",
      ends.oldestMs / 1_000)
    if let uploads = worker.uploads?.counts { write(uploads, to: &text) }
    let requests = requests()
    if !requests.isEmpty {
      text.metric(
        "encoder_worker_store_requests_total", "Requests to the object store, by kind, also repeated ones.", "counter",
        by: "kind", requests.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value)") })
    }
    text.process(version: version)
    // If the disk fails, the other metrics remain.
    switch try? current() {
    case .spool(let status): write(status, to: &text)
    case .counts(let waiting, let claimed):
      write([("waiting", waiting), ("claimed", claimed)], to: &text)
      if let free = try? worker.store.staging.freeBytes() { write(freeBytes: free, to: &text) }
    case nil: break
    }
    return text.text
  }

  private func write(durationsOf counts: WorkerMeter.Counts, to text: inout MetricsText) {
    text.histogram(WorkerMeter.duration, "Time from a batch's claim to its publication.", counts.durations)
    text.histogram(
      WorkerMeter.stageDuration, "Time of a batch in each stage.", by: "stage",
      WorkStage.allCases.compactMap { stage in counts.stages[stage].map { (of: stage.rawValue, durations: $0) } })
    text.histogram(
      WorkerMeter.arrivalToPublished, "Time from a batch's arrival to its publication.", counts.arrivals)
    text.histogram(
      WorkerMeter.captureToPublished, "Time from a session's last capture in a batch to its publication.",
      counts.lateness)
  }

  private func write(_ events: NotificationCounts, to text: inout MetricsText) {
    text.metric(
      "encoder_worker_notifications_total",
      "Attempts to deliver an event to --notify, by outcome; a failed one is repeated.", "counter", by: "outcome",
      [("sent", "\(events.sent)"), ("failed", "\(events.failed)"), ("refused", "\(events.refused)")])
    text.gauge(
      "encoder_worker_notifications_pending", "Batches that wait for the delivery of their events.", events.pending)
  }

  private func write(_ uploads: UploadPasses.Counts, to text: inout MetricsText) {
    text.metric(
      "encoder_worker_sessions_uploaded_total", "Sessions that this worker has brought into the store as a whole.",
      "counter", by: "", [("", "\(uploads.sessions)")])
    text.metric(
      "encoder_worker_uploaded_bytes_total", "Bytes of the segments that it has brought into the store.", "counter",
      by: "", [("", "\(uploads.bytes)")])
    guard let state = uploads.state else { return }
    text.gauge("encoder_worker_upload_sessions", "Sessions that wait for the store.", state.sessions)
    text.gauge("encoder_worker_upload_bytes", "Bytes of their segments.", state.bytes)
    let ageMs = state.sinceMs.map { max(0, WallClock.nowMs - $0) } ?? 0
    text.gauge(
      "encoder_worker_upload_oldest_age_seconds", "Age of the oldest of them; 0 if there is none.",
      Int(ageMs / 1_000))
    text.gauge(
      "encoder_worker_upload_deletions", "Deletions that the store does not know yet.", state.deletions)
  }

  private func write(_ status: SpoolStatus, to text: inout MetricsText) {
    let states = [
      ("waiting", status.waiting), ("claimed", status.claimed), ("quarantined", status.quarantined),
      ("done", status.kept),
    ]
    write(states.map { ($0, $1.count) }, to: &text)
    text.gauge("encoder_worker_batches_retried", "Claimed batches that failed before.", status.retrying)
    text.metric(
      "encoder_worker_oldest_batch_age_seconds", "Age of the oldest batch; 0 if there is none.", "gauge", by: "state",
      states.map { ($0, "\(Double($1.oldestMs ?? 0) / 1_000)") })
    text.gauge(
      "encoder_worker_workers", "Workers of this spool that are alive, or may be.",
      status.workers.count { $0.life != .dead })
    write(freeBytes: status.freeBytes, to: &text)
  }

  private func write(_ batches: [(state: String, count: Int)], to text: inout MetricsText) {
    text.metric(
      "encoder_worker_batches", "Batches in the spool, by state; done with --keep-batches only.", "gauge", by: "state",
      batches.map { ($0.state, "\($0.count)") })
  }

  private func write(freeBytes: Int, to text: inout MetricsText) {
    text.gauge("encoder_worker_output_free_bytes", "Free bytes on the output's file system.", freeBytes)
  }
}

extension HTTPResponse {
  /// The answer to a health check: 200 without trouble, else 503.
  ///
  /// - Parameter remark: told to people while there is no trouble.
  fileprivate static func state(_ trouble: String?, remark: String? = nil) -> HTTPResponse {
    let text = [trouble ?? "ok", trouble == nil ? remark : nil].compactMap { $0 }.joined(separator: "\n")
    return HTTPResponse(.text, Array((text + "\n").utf8), status: trouble == nil ? 200 : 503)
  }
}
