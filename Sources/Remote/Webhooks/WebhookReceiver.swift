import CLinux
import FileSystem
import FrameBatches
import Glibc
import Notifying
import Sessions

/// A receiver of events at an HTTP address. Each event is a POST.
package struct WebhookReceiver: EventReceiver {
  /// Seconds that a delivery may take, with its answer.
  private static let timeoutS = 15
  /// Maximum bytes of an answer. More does not matter: the status decides.
  private static let maximumAnswerBytes = 64 << 10

  private let url: HTTPAddress
  /// Nil without a secret.
  private let signer: WebhookSigner?
  private let userAgent: String
  private let pool: CurlPool

  /// - Throws: ``Failure``.
  package init(_ url: HTTPAddress, _ signer: WebhookSigner?, userAgent: String) throws {
    self.url = url
    self.signer = signer
    self.userAgent = userAgent
    pool = try CurlPool.shared()
  }

  package var name: String { url.name }

  package func send(
    key: String, event: String, traceParent: TraceParent?, cancellation: Cancellation
  ) -> Delivery {
    let body = Array(event.utf8)
    let transfer = CurlTransfer(
      sending: .bytes(body), key: name, limit: Self.maximumAnswerBytes,
      cancellation: cancellation.or(afterMs: 1_000 * Self.timeoutS), sink: { _, _ in })
    let request = CurlRequest(
      method: .post, url: url.text, headers: headers(key, body, traceParent, timeS: WallClock.nowMs / 1_000),
      timeoutS: Self.timeoutS)
    do {
      try pool.perform(request, transfer)
    } catch {
      // The beginning of an answer is enough: the status decides.
      if transfer.status < 200 {
        if cancellation.isRequested { return .cancelled }
        let cause = (error as? TransferFailure)?.cause ?? "no answer within \(Self.timeoutS) s"
        return .failed(cause: cause.oneLine, retryAfterS: nil)
      }
    }
    return Self.delivery(transfer.status, transfer.headers, transfer.errorBody, nowMs: WallClock.nowMs)
  }

  private func headers(
    _ key: String, _ body: [UInt8], _ traceParent: TraceParent?, timeS: Int64
  ) -> [(name: String, value: String)] {
    var headers = [
      ("Content-Type", "application/json"), ("User-Agent", userAgent),
      ("Idempotency-Key", key), ("webhook-id", key), ("webhook-timestamp", "\(timeS)"),
    ]
    if let signer { headers.append(("webhook-signature", signer.signature(id: key, timeS: timeS, body: body))) }
    if let traceParent { headers.append((TraceParent.key, traceParent.description)) }
    return headers
  }

  /// Returns the meaning of an answer.
  ///
  /// - Parameters:
  ///   - body: the beginning of the answer's body.
  ///   - nowMs: in unix milliseconds.
  static func delivery(_ status: Int, _ headers: [String: String], _ body: [UInt8], nowMs: Int64) -> Delivery {
    let lines = String(decoding: body.prefix(200), as: UTF8.self).split(whereSeparator: \.isNewline)
    let cause = "answered \(status)" + (lines.first.map { ": \($0)" } ?? "").oneLine
    switch status {
    case 200...299: return .accepted
    case 300...399:
      let target = headers["location"].map { " to \($0.prefix(200))" } ?? ""
      let advice = "redirects are not followed: name the final address with --notify"
      return .refused(cause: "answered \(status), a redirect\(target); \(advice)".oneLine)
    case 408, 429: return .failed(cause: cause, retryAfterS: retryAfterS(headers, nowMs))
    case 400...499: return .refused(cause: "\(cause); mend the cause, then run: quarantine retry --events")
    default: return .failed(cause: cause, retryAfterS: retryAfterS(headers, nowMs))
    }
  }

  /// The seconds of a Retry-After header, which has seconds or a time.
  static func retryAfterS(_ headers: [String: String], _ nowMs: Int64) -> Int? {
    guard let text = headers["retry-after"], text.utf8.count < 64 else { return nil }
    if let seconds = Int(text) { return max(0, seconds) }
    let time = Int64(clinux_http_time(text))
    return time > 0 ? Int(clamping: max(0, time - nowMs / 1_000)) : nil
  }
}
