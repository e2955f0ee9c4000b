// AWS Signature Version 4, in a request's headers or in its query. libcurl's own signer is not used: from 8.14 on it
// refuses paths that must be sent as they are, and 7.88 orders some headers wrongly.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html

import FileSystem

/// Signs requests to one service of a region.
struct AWSSigner: Sendable {
  /// The maximum lifetime of a presigned URL in seconds: a week.
  static let maximumExpiryS = 604_800

  /// As in the scope of signatures: `s3`, `sqs`.
  let service: String
  let region: String
  let credentials: AWSCredentials

  /// Returns a query, sorted as signatures require.
  static func query(_ values: [String: String]) -> String {
    values.map { (PercentEncoding.encoded($0.key), PercentEncoding.encoded($0.value)) }.sorted { $0 < $1 }
      .map { "\($0)=\($1)" }.joined(separator: "&")
  }

  /// Returns the headers of a request, with date, payload digest, session token and authorization.
  ///
  /// - Parameters:
  ///   - host: as in the Host header.
  ///   - path: as it is sent.
  ///   - query: a result of ``query(_:)``.
  ///   - headers: all are signed.
  ///   - payloadDigest: the SHA-256 of the body, in hexadecimal digits.
  ///   - now: unix milliseconds.
  func signed(
    _ method: String, host: String, path: String, query: String, headers: [(name: String, value: String)],
    payloadDigest: String, now: Int64
  ) -> [(name: String, value: String)] {
    let instant = Self.instant(now)
    var signed = headers + [("x-amz-content-sha256", payloadDigest), ("x-amz-date", instant)]
    if let token = credentials.token { signed.append(("x-amz-security-token", token)) }
    let canonical = (signed + [("host", host)]).map { ($0.name.lowercased(), $0.value) }.sorted { $0.0 < $1.0 }
    let names = canonical.map(\.0).joined(separator: ";")
    let fields = canonical.map { "\($0.0):\($0.1)\n" }.joined()
    let signature = signature(
      of: "\(method)\n\(path)\n\(query)\n\(fields)\n\(names)\n\(payloadDigest)", at: instant)
    signed.append(
      (
        "Authorization",
        "AWS4-HMAC-SHA256 Credential=\(credentials.key)/\(scope(at: instant)), "
          + "SignedHeaders=\(names), Signature=\(signature)"
      ))
    return signed
  }

  /// Returns the query of a URL that lets its bearer fetch a resource until it expires.
  ///
  /// - Parameter now: unix milliseconds.
  func presignedQuery(host: String, path: String, expiresS: Int, now: Int64) -> String {
    let instant = Self.instant(now)
    var values = [
      "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": "\(credentials.key)/\(scope(at: instant))",
      "X-Amz-Date": instant, "X-Amz-Expires": String(expiresS), "X-Amz-SignedHeaders": "host",
    ]
    values["X-Amz-Security-Token"] = credentials.token
    let query = Self.query(values)
    let signature = signature(of: "GET\n\(path)\n\(query)\nhost:\(host)\n\nhost\nUNSIGNED-PAYLOAD", at: instant)
    return "\(query)&X-Amz-Signature=\(signature)"
  }

  /// An instant as ISO 8601's basic format, in UTC: `20260108T090512Z`.
  private static func instant(_ now: Int64) -> String {
    now.dateText.prefix(19).filter { $0 != "-" && $0 != ":" } + "Z"
  }

  private func scope(at instant: String) -> String { "\(instant.prefix(8))/\(region)/\(service)/aws4_request" }

  private func signature(of canonicalRequest: String, at instant: String) -> String {
    let digest = SHA256.hex(of: Array(canonicalRequest.utf8))
    let text = "AWS4-HMAC-SHA256\n\(instant)\n\(scope(at: instant))\n\(digest)"
    let key = [String(instant.prefix(8)), region, service, "aws4_request"].reduce(
      Array("AWS4\(credentials.secret)".utf8)
    ) { SHA256.authentication(of: Array($1.utf8), key: $0) }
    return SHA256.hexadecimal(SHA256.authentication(of: Array(text.utf8), key: key))
  }
}
