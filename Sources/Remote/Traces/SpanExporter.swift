// Sends finished spans to a receiver of OTLP over HTTP, from a thread of its own. Work never waits for it: spans that find no room are
// dropped, and their number is logged.

import FileSystem
import Synchronization

/// Exports spans, for several threads at once.
package final class SpanExporter: Sendable {
  /// Spans that wait, and spans in a request.
  static let (maximumWaiting, maximumSent) = (2_048, 512)
  /// Attempts of a request.
  static let attempts = 5
  /// Milliseconds for which a span waits for others, and between two remarks on lost ones.
  private static let (delayMs, remarkMs) = (2_000, 60_000)
  private static let maximumRetryAfterS = 30
  private static let maximumAnswerBytes = 64 << 10

  private struct State {
    var waiting: [SpanRecord] = []
    /// When the first of these came.
    var sinceMs = 0
    /// Lost spans that were not remarked on, and the last reason.
    var lost = 0
    var cause = ""
    var remarkedMs: Int?
    /// When the thread has to end; nil while it runs.
    var endMs: Int?

    mutating func lose(_ count: Int, _ cause: String) {
      lost += count
      self.cause = cause
    }
  }

  /// The answer to a request.
  private enum Answer {
    case accepted
    case refused(String)
    case failed(String, retryAfterS: Int?)
  }

  private let settings: TraceExportSettings
  private let pool: CurlPool
  private let warn: @Sendable (_ lost: Int, _ cause: String) -> Void
  private let state = Monitor(State())
  private let group = Mutex(ThreadGroup())

  /// Starts the thread.
  ///
  /// - Parameter warn: gets the number of lost spans, and why; about once a minute.
  /// - Throws: ``MissingLibrary``, ``ThreadError``.
  package init(_ settings: TraceExportSettings, warn: @escaping @Sendable (_ lost: Int, _ cause: String) -> Void) throws
  {
    self.settings = settings
    self.warn = warn
    pool = try CurlPool.shared()
    try group.withLock { (group) throws(ThreadError) in
      try group.start { [self] in
        while let spans = next() {
          deliver(spans)
          remark()
        }
        remark(isLast: true)
      }
    }
  }

  /// Adds finished spans.
  func add(_ spans: [SpanRecord]) {
    state.change { state in
      if state.waiting.isEmpty { state.sinceMs = MonotonicClock.milliseconds() }
      let fitting = spans.prefix(Self.maximumWaiting - state.waiting.count)
      state.waiting += fitting
      if fitting.count < spans.count { state.lose(spans.count - fitting.count, "too many spans wait") }
    }
  }

  /// Counts spans that were not kept.
  func lose(_ count: Int, because cause: String) { state.change { $0.lose(count, cause) } }

  /// Sends the spans that wait, and ends the thread.
  ///
  /// - Parameter withinMs: what is not sent then is lost. A request that hangs ends about a second later.
  package func stop(withinMs: Int = 2_000) {
    state.change { $0.endMs = MonotonicClock.milliseconds() + withinMs }
    group.withLock { $0.join() }
  }

  /// Waits for spans; returns nil at the end.
  private func next() -> [SpanRecord]? {
    state.wait { state in
      let nowMs = MonotonicClock.milliseconds()
      if state.waiting.isEmpty { return state.endMs == nil ? .wait(ms: nil) : .found(nil) }
      let restMs = state.sinceMs + Self.delayMs - nowMs
      if state.endMs == nil, state.waiting.count < Self.maximumSent, restMs > 0 { return .wait(ms: restMs) }
      let spans = Array(state.waiting.prefix(Self.maximumSent))
      state.waiting.removeFirst(spans.count)
      return .found(spans)
    }
  }

  private var isOverdue: Bool {
    state.read { $0.endMs.map { MonotonicClock.milliseconds() >= $0 } ?? false }
  }

  private func deliver(_ spans: [SpanRecord]) {
    let body = OTLPTraces.body(spans, resource: settings.resource, version: settings.version)
    for attempt in 1...Self.attempts {
      if isOverdue { return lose(spans.count, because: "the worker ends") }
      switch send(body) {
      case .accepted: return
      case .refused(let cause): return lose(spans.count, because: cause)
      case .failed(let cause, let retryAfterS):
        if attempt == Self.attempts { return lose(spans.count, because: cause) }
        let askedMs = 1_000 * min(retryAfterS ?? 0, Self.maximumRetryAfterS)
        pause(ms: max(askedMs, BackOff.pauseMs(failures: attempt)))
      }
    }
  }

  /// Waits, at most until the exporter has to end.
  private func pause(ms: Int) {
    let untilMs = MonotonicClock.milliseconds() + ms
    state.wait { state in
      let restMs = min(untilMs, state.endMs ?? .max) - MonotonicClock.milliseconds()
      return restMs > 0 ? .wait(ms: restMs) : .found(())
    }
  }

  private func send(_ body: [UInt8]) -> Answer {
    var answer: [UInt8] = []
    let cancellation = Cancellation { [self] in isOverdue }.or(afterMs: settings.timeoutMs)
    let transfer = CurlTransfer(
      sending: .bytes(body), key: settings.name, limit: Self.maximumAnswerBytes, cancellation: cancellation
    ) { piece, _ in answer += piece }
    let request = CurlRequest(
      method: .post, url: settings.url.text, headers: headers, timeoutS: (settings.timeoutMs + 999) / 1_000)
    do {
      try pool.perform(request, transfer)
    } catch {
      // The beginning of an answer is enough: the status decides.
      guard transfer.status >= 200 else {
        let cause = (error as? TransferFailure)?.cause ?? "no answer within \(settings.timeoutMs) ms"
        return .failed("\(settings.name): \(cause)".oneLine, retryAfterS: nil)
      }
    }
    let line = String(decoding: transfer.errorBody.prefix(200), as: UTF8.self).split(whereSeparator: \.isNewline).first
    let cause = "\(settings.name) answered \(transfer.status)\(line.map { ": \($0)" } ?? "")".oneLine
    switch transfer.status {
    case 200...299:
      if let refusal = OTLPTraces.refusal(in: answer) {
        lose(refusal.spans, because: "\(settings.name): \(refusal.cause.shortened(to: 200))".oneLine)
      }
      return .accepted
    case 429, 502, 503, 504:
      return .failed(cause, retryAfterS: WebhookReceiver.retryAfterS(transfer.headers, WallClock.nowMs))
    default: return .refused(cause)
    }
  }

  private var headers: [(name: String, value: String)] {
    [("Content-Type", "application/json"), ("User-Agent", "encoder-worker/\(settings.version)")] + settings.headers
  }

  /// Tells of lost spans.
  private func remark(isLast: Bool = false) {
    let nowMs = MonotonicClock.milliseconds()
    let news = state.change { state -> (Int, String)? in
      let isDue = isLast || state.remarkedMs.map { nowMs - $0 >= Self.remarkMs } ?? true
      guard state.lost > 0, isDue else { return nil }
      defer { (state.lost, state.remarkedMs) = (0, nowMs) }
      return (state.lost, state.cause)
    }
    if let (lost, cause) = news { warn(lost, cause) }
  }
}
