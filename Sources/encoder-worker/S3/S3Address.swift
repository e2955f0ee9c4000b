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
    return "\(base.path)/\(Self.encoded(key, keepingSlashes: true))"
  }

  func url(of key: String?, query: String = "") -> String {
    "\(base.scheme)://\(base.host)\(path(of: key))\(query.isEmpty ? "" : "?" + query)"
  }

  /// In the order in which it is signed.
  static func query(_ values: [String: String]) -> String {
    values.map { (encoded($0.key), encoded($0.value)) }.sorted { $0 < $1 }.map { "\($0.0)=\($0.1)" }
      .joined(separator: "&")
  }

  static func encoded(_ text: String, keepingSlashes: Bool = false) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 48...57, 65...90, 97...122, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "~"):
        bytes.append(byte)
      case UInt8(ascii: "/") where keepingSlashes: bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// What a list of keys was encoded to; a plus is a blank there.
  ///
  /// - Returns: nil where it is no such text.
  static func decoded(_ text: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
        continue
      }
      guard rest.count >= 2, rest.prefix(2).allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
