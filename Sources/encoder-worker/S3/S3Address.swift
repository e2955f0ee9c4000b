// Where objects are: a bucket's address, and keys and queries as they are signed and sent (RFC 3986). Pure.

struct S3Address: Sendable {
  /// With the bucket, in its host or in its path.
  let base: S3Endpoint

  /// A bucket at a named endpoint is in the path, since few of these have a name in DNS for each; so is one with a dot, for which
  /// no certificate holds.
  init(_ location: S3Location, _ settings: S3Settings) {
    let amazon = "s3.\(settings.region).amazonaws.com"
    if let endpoint = settings.endpoint {
      base = S3Endpoint(scheme: endpoint.scheme, host: endpoint.host, path: "\(endpoint.path)/\(location.bucket)")
    } else if location.bucket.contains(".") {
      base = S3Endpoint(scheme: "https", host: amazon, path: "/" + location.bucket)
    } else {
      base = S3Endpoint(scheme: "https", host: "\(location.bucket).\(amazon)", path: "")
    }
  }

  /// Of an object by its whole key; of the bucket without.
  func path(of key: String?) -> String {
    guard let key else { return base.path.isEmpty ? "/" : base.path }
    return "\(base.path)/\(PercentEncoding.encoded(key, keepingSlashes: true))"
  }

  func url(of key: String?, query: String = "") -> String {
    "\(base.scheme)://\(base.host)\(path(of: key))\(query.isEmpty ? "" : "?" + query)"
  }

  /// In the order in which it is signed.
  static func query(_ values: [String: String]) -> String {
    values.map { (PercentEncoding.encoded($0.key), PercentEncoding.encoded($0.value)) }.sorted { $0 < $1 }.map {
      "\($0.0)=\($0.1)"
    }
    .joined(separator: "&")
  }

  /// Decodes a key in a list of keys, where a plus is a blank; nil where it is no such text.
  static func decoded(_ text: some StringProtocol) -> String? {
    PercentEncoding.decoded(text, plusIsSpace: true).flatMap { String(validating: $0, as: UTF8.self) }
  }
}
