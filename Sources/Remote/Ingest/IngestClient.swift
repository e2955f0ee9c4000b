// Hands batches to the `--ingest` of a worker.

import FileSystem
import FrameBatches
import JSON
import WorkQueues

package struct IngestClient: BatchReceiver {
  /// Seconds without a byte after which a request fails: the worker reads a batch before it answers.
  private static let timeoutS = 60
  /// Maximum bytes of an answer.
  private static let maximumAnswerBytes = 64 << 10
  /// A token has 16 to 256 characters.
  private static let maximumTokenBytes = 4_096

  private let address: HTTPAddress
  /// Nil to send no token.
  private let tokenFile: String?
  private let userAgent: String
  private let isOverdue: @Sendable () -> Bool
  private let pool: CurlPool

  /// - Parameters:
  ///   - tokenFile: a file with the token; read again for each batch, so that it can be replaced.
  ///   - isOverdue: whether requests have to end.
  /// - Throws: ``Failure``, ``DiskError``.
  package init(
    _ address: HTTPAddress, tokenFile: String?, userAgent: String, isOverdue: @escaping @Sendable () -> Bool = { false }
  ) throws {
    (self.address, self.tokenFile, self.userAgent, self.isOverdue) = (address, tokenFile, userAgent, isOverdue)
    pool = try CurlPool.shared()
    _ = try token()
  }

  package func take(_ tar: [UInt8], as name: String) throws -> Bool {
    let digest = SHA256.digest(of: tar)
    let answer = Answer()
    let transfer = CurlTransfer(
      sending: .bytes(tar), key: name, limit: Self.maximumAnswerBytes, cancellation: Cancellation(isOverdue),
      sink: { bytes, _ in answer.bytes += bytes })
    var headers = [
      ("Content-Type", "application/x-tar"), ("User-Agent", userAgent),
      ("Content-Digest", "sha-256=:\(Base64.encode(digest)):"),
    ]
    if let token = try token() { headers.append(("Authorization", "Bearer \(token)")) }
    let base = address.text.hasSuffix("/") ? String(address.text.dropLast()) : address.text
    let url = "\(base)/v1/batches/\(PercentEncoding.encoded(name))?sent=\(WallClock.nowMs)"
    do {
      try pool.perform(CurlRequest(method: .put, url: url, headers: headers, timeoutS: Self.timeoutS), transfer)
    } catch let failure as TransferFailure {
      // The beginning of a refusal is enough: the status decides.
      guard transfer.status >= 300 else {
        throw NotTaken(address: address.name, cause: failure.cause.oneLine, mayPass: failure.isTransient)
      }
    }
    return try Self.isTaken(
      name, sha256: SHA256.hexadecimal(digest), transfer.status, transfer.headers,
      transfer.status < 300 ? answer.bytes : transfer.errorBody, by: address.name, nowMs: WallClock.nowMs)
  }

  private final class Answer { var bytes: [UInt8] = [] }

  private func token() throws -> String? {
    guard let tokenFile else { return nil }
    let bytes = try SecretFile.bytes(of: tokenFile, content: "the token", limit: Self.maximumTokenBytes)
    let token = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    guard token.count == 1, token[0].utf8.allSatisfy({ (33...126).contains($0) }) else {
      throw Failure(
        .usage, "read", tokenFile, "\(token.count == 0 ? "no" : "not one") token",
        advice: "write the token alone, as the worker's --ingest-tokens has it")
    }
    return String(token[0])
  }

  /// Returns the meaning of an answer: see ``BatchReceiver/take(_:as:)``.
  ///
  /// - Parameters:
  ///   - sha256: of the body that was sent.
  ///   - body: of the answer.
  static func isTaken(
    _ name: String, sha256: String, _ status: Int, _ headers: [String: String], _ body: [UInt8], by address: String,
    nowMs: Int64
  ) throws -> Bool {
    let members = try? JSONParser.parse(body).object
    let detail = members?["detail"]?.string.map { ": \($0)" } ?? ""
    let cause = "answered \(status)\(detail)".shortened(to: 600).oneLine
    let advice = (members?["advice"]?.string ?? "mend the cause").shortened(to: 300).oneLine
    switch status {
    case 200, 201:
      // A page of a proxy, or of a hotel's network, must not make pictures vanish.
      guard members?["sha256"]?.string == sha256 else {
        throw NotTaken(address: address, cause: "answered \(status), but not as a worker does; check --to")
      }
      return true
    case 409: return false
    case 403, 413, 415, 422: throw RefusedBatch(name: name, cause: "\(address) \(cause)", advice: advice)
    case 300...399:
      let target = headers["location"].map { " to \($0.shortened(to: 200))" } ?? ""
      throw NotTaken(
        address: address, cause: "answered \(status), a redirect\(target.oneLine); name the final address with --to")
    default:
      throw NotTaken(
        address: address, cause: status == 401 ? "\(cause); check --token-file" : cause,
        mayPass: status == 408 || status == 429 || status >= 500 && status != 501,
        retryAfterS: WebhookReceiver.retryAfterS(headers, nowMs))
    }
  }
}

/// A worker did not take a batch; it may do so later.
package struct NotTaken: BusyReceiver {
  package var kind: Failure.Kind { .environment }
  let address: String
  let cause: String
  /// Whether it may pass by itself: the cause is no setting.
  package var mayPass = false
  package var retryAfterS: Int?

  package var description: String { "\(address): \(cause)" }
}
