import CLinux
import FileSystem
import FrameBatches
import JSON
import Serving

extension HTTPRequest {
  /// The type of the body without parameters, in lower case; nil if none is stated.
  var mediaType: String? {
    header("Content-Type").map { String($0.prefix { $0 != ";" }[...].trimmed).lowercased() }.flatMap {
      $0.isEmpty ? nil : $0
    }
  }

  /// Whether the body has the type that `curl --data-binary` states unasked. A page of any site can send it, too, but none has a token.
  func isOfForm(from producer: Producer?) -> Bool {
    producer != nil && mediaType == "application/x-www-form-urlencoded"
  }

  /// - Throws: ``ProblemDetails`` for a body that is compressed for the way only.
  func requireNoCoding() throws(ProblemDetails) {
    guard let coding = header("Content-Encoding"), coding.lowercased() != "identity" else { return }
    throw ProblemDetails(
      .unsupportedType, "the Content-Encoding \(coding.shortened(to: 40).oneLine) is not taken",
      advice: "leave it out; the worker reads .tar.gz and .tar.zst as they are")
  }

  /// Instants of which sums cannot overflow, in unix milliseconds.
  static let sendingTimes: ClosedRange<Int64> = 0...(1 << 46)

  /// Milliseconds by which this clock is ahead of that of the sender; nil if the request does not say when it was sent.
  var aheadMs: Int64? {
    get throws(ProblemDetails) {
      if let text = argument("sent") {
        guard let sentMs = Int64(text), Self.sendingTimes.contains(sentMs) else {
          throw ProblemDetails(
            .badRequest, "sent is no time in unix milliseconds", advice: "send sent=1767859512340, or leave it out")
        }
        return WallClock.nowMs - sentMs
      }
      let sentMs = header("Date").map { 1_000 * Int64(clinux_http_time($0)) } ?? 0
      return sentMs > 0 && Self.sendingTimes.contains(sentMs) ? WallClock.nowMs - sentMs : nil
    }
  }

  /// Checks the headers of a body.
  ///
  /// - Throws: ``ProblemDetails``.
  func upload(limit: Int, _ producer: Producer?) throws(ProblemDetails) -> BodyUpload.Request {
    let digest = try ContentDigest.sha256(in: header("Content-Digest"))
    guard header("Content-Length") != nil || header("Transfer-Encoding") != nil else {
      throw ProblemDetails(
        .lengthRequired, "the request has no length", advice: "send Content-Length, or the body in chunks")
    }
    if let bytes = bodyBytes, bytes > limit { throw ProblemDetails(bodyLimit: limit) }
    return BodyUpload.Request(
      path: path, producer: producer, limit: limit, digest: digest, idempotencyKey: header("Idempotency-Key"),
      traceParent: header(TraceParent.key).flatMap { TraceParent($0) })
  }
}

extension HTTPResponse {
  static func json(_ members: [String: JSONValue], status: Int = 200) -> HTTPResponse {
    HTTPResponse(.json, Array((JSONValue.object(members).line + "\n").utf8), status: status)
  }

  private static let dayMs: Int64 = 86_400_000

  /// Warns of captures that are more than a day ahead, or older than what is kept.
  mutating func warn(ofCaptures captures: ClosedRange<Int64>, _ settings: IngestSettings) {
    let nowMs = WallClock.nowMs
    let far: String
    if captures.upperBound - nowMs > Self.dayMs {
      far = "a capture is \((captures.upperBound - nowMs) / Self.dayMs) days ahead"
    } else if let retainMs = settings.retainMs, nowMs - captures.lowerBound > retainMs {
      far = "a capture is older than --retain"
    } else {
      return
    }
    headers.append(("Warning", "299 - \"\(far); send sent=<unix ms> if the clock may be wrong\""))
  }
}

extension ProblemDetails {
  init(session: String, notOf producer: Producer) {
    self.init(
      .forbidden, "\(producer.name) may not write to the session \(session.shortened(to: 128).oneLine)",
      advice: "its sessions begin with \(producer.prefix)")
  }
}
