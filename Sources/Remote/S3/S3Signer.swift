// AWS Signature Version 4, in a request's headers or in its query. libcurl's own signer is not used: from 8.14 on it
// refuses paths that must be sent as they are, and 7.88 orders some headers wrongly.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html

import FileSystem

package struct S3Signer: Sendable {
  /// The maximum lifetime of a presigned URL in seconds: a week.
  package static let maximumExpiryS = 604_800

  let address: S3Address
  let region: String
  let credentials: S3Settings.Credentials

  /// Returns the headers of a request, with date, payload digest, session token and authorization.
  ///
  /// - Parameters:
  ///   - key: the absolute key; nil for the bucket.
  ///   - query: a result of `S3Address.query`.
  ///   - headers: all are signed.
  ///   - payloadDigest: the SHA-256 of the body, in hexadecimal digits.
  ///   - now: unix milliseconds.
  func signed(
    _ method: String, _ key: String?, query: String, headers: [(name: String, value: String)], payloadDigest: String,
    now: Int64
  ) -> [(name: String, value: String)] {
    let instant = Self.instant(now)
    var signed = headers + [("x-amz-content-sha256", payloadDigest), ("x-amz-date", instant)]
    if let token = credentials.token { signed.append(("x-amz-security-token", token)) }
    let canonical = (signed + [("host", address.base.host)]).map { ($0.name.lowercased(), $0.value) }
      .sorted { $0.0 < $1.0 }
    let names = canonical.map(\.0).joined(separator: ";")
    let fields = canonical.map { "\($0.0):\($0.1)\n" }.joined()
    let signature = signature(
      of: "\(method)\n\(address.path(of: key))\n\(query)\n\(fields)\n\(names)\n\(payloadDigest)", at: instant)
    signed.append(
      (
        "Authorization",
        "AWS4-HMAC-SHA256 Credential=\(credentials.key)/\(scope(at: instant)), "
          + "SignedHeaders=\(names), Signature=\(signature)"
      ))
    return signed
  }

  /// Returns a URL that lets its bearer fetch an object until it expires.
  ///
  /// - Parameters:
  ///   - key: the absolute key.
  ///   - now: unix milliseconds.
  func presignedURL(of key: String, expiresS: Int, now: Int64) -> String {
    let instant = Self.instant(now)
    var values = [
      "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": "\(credentials.key)/\(scope(at: instant))",
      "X-Amz-Date": instant, "X-Amz-Expires": String(expiresS), "X-Amz-SignedHeaders": "host",
    ]
    values["X-Amz-Security-Token"] = credentials.token
    let query = S3Address.query(values)
    let signature = signature(
      of: "GET\n\(address.path(of: key))\n\(query)\nhost:\(address.base.host)\n\nhost\nUNSIGNED-PAYLOAD", at: instant)
    return address.url(of: key, query: "\(query)&X-Amz-Signature=\(signature)")
  }

  /// An instant as ISO 8601's basic format, in UTC: `20260108T090512Z`.
  private static func instant(_ now: Int64) -> String {
    now.dateText.prefix(19).filter { $0 != "-" && $0 != ":" } + "Z"
  }

  private func scope(at instant: String) -> String { "\(instant.prefix(8))/\(region)/s3/aws4_request" }

  private func signature(of canonicalRequest: String, at instant: String) -> String {
    let digest = SHA256.hex(of: Array(canonicalRequest.utf8))
    let text = "AWS4-HMAC-SHA256\n\(instant)\n\(scope(at: instant))\n\(digest)"
    let key = [String(instant.prefix(8)), region, "s3", "aws4_request"].reduce(
      Array("AWS4\(credentials.secret)".utf8)
    ) { SHA256.authentication(of: Array($1.utf8), key: $0) }
    return SHA256.hexadecimal(SHA256.authentication(of: Array(text.utf8), key: key))
  }
}
