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

  /// - Throws: ``Problem`` for a body that is compressed for the way only.
  func requireNoCoding() throws(Problem) {
    guard let coding = header("Content-Encoding"), coding.lowercased() != "identity" else { return }
    throw Problem(
      .unsupportedType, "the Content-Encoding \(coding.shortened(to: 40).oneLine) is not taken",
      advice: "leave it out; the worker reads .tar.gz and .tar.zst as they are")
  }

  /// Checks the headers of a body.
  ///
  /// - Throws: ``Problem``.
  func upload(limit: Int, _ producer: Producer?) throws(Problem) -> BodyUpload.Request {
    let digest = try ContentDigest.sha256(in: header("Content-Digest"))
    guard header("Content-Length") != nil || header("Transfer-Encoding") != nil else {
      throw Problem(.lengthRequired, "the request has no length", advice: "send Content-Length, or the body in chunks")
    }
    if let bytes = bodyBytes, bytes > limit { throw Problem(bodyLimit: limit) }
    return BodyUpload.Request(
      path: path, producer: producer, limit: limit, digest: digest, idempotencyKey: header("Idempotency-Key"),
      traceParent: header(TraceParent.key).flatMap { TraceParent($0) })
  }
}

extension HTTPResponse {
  static func json(_ members: [String: JSONValue], status: Int = 200) -> HTTPResponse {
    HTTPResponse(.json, Array((JSONValue.object(members).line + "\n").utf8), status: status)
  }
}

extension Problem {
  init(session: String, notOf producer: Producer) {
    self.init(
      .forbidden, "\(producer.name) may not write to the session \(session.shortened(to: 128).oneLine)",
      advice: "its sessions begin with \(producer.prefix)")
  }
}
