import FileSystem

/// The address of a bucket, with its objects' URLs as they are signed and sent (RFC 3986).
struct S3Address: Sendable {
  /// The endpoint, with the bucket in its host or in its path.
  let base: S3Endpoint

  /// Puts the bucket into the path of a named endpoint, since few of these have a DNS name for each bucket. A bucket
  /// with a dot is in the path, too: no certificate matches its host name.
  init(_ location: S3Location, _ settings: S3Settings) {
    let endpoint = settings.aws.endpoints.base(of: "s3")
    let isInPath =
      switch settings.addressing {
      case .auto: settings.aws.endpoint(of: "s3") != nil || location.bucket.contains(".")
      case .path: true
      case .virtual: false
      }
    base = S3Endpoint(
      scheme: endpoint.scheme, host: isInPath ? endpoint.host : "\(location.bucket).\(endpoint.host)",
      path: isInPath ? "\(endpoint.path)/\(location.bucket)" : endpoint.path)
  }

  /// Returns the path of an object by its absolute key; of the bucket for nil.
  func path(of key: String?) -> String {
    guard let key else { return base.path.isEmpty ? "/" : base.path }
    return "\(base.path)/\(PercentEncoding.encoded(key, keepingSlashes: true))"
  }

  func url(of key: String?, query: String = "") -> String {
    "\(base.scheme)://\(base.host)\(path(of: key))\(query.isEmpty ? "" : "?" + query)"
  }

  /// Decodes a key of a list, where a plus is a blank; nil if it is invalid.
  static func decoded(_ text: some StringProtocol) -> String? {
    PercentEncoding.decoded(text, plusIsSpace: true).flatMap { String(validating: $0, as: UTF8.self) }
  }
}
