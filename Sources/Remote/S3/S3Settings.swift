import FileSystem
import Glibc

/// Address and credentials of a store, from the environment variables of Amazon's tools.
package struct S3Settings: Sendable {
  /// Nil for Amazon's.
  let endpoint: S3Endpoint?
  let region: String
  /// Without credentials, requests are not signed.
  package let credentials: AWSCredentials?
  /// Seconds without a byte after which a request fails.
  var timeoutS = 30
  var retries = 4
  /// The pause before the first retry.
  var pauseMs = 100
  /// The maximum keys of a list; nil for the store's default.
  var listCount: Int?

  /// - Throws: ``BadS3Setting``, which names the variable.
  package init(environment value: (String) -> String?) throws {
    func variable(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
    let endpointVariable = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].first { variable($0) != nil }
    endpoint = try endpointVariable.map { name in
      guard let endpoint = S3Endpoint(variable(name) ?? "") else {
        // The message does not repeat the address: it may hold a password.
        throw BadS3Setting("\(name) is no http:// or https:// address of a host; a user does not belong into it")
      }
      return endpoint
    }
    region = variable("AWS_REGION") ?? variable("AWS_DEFAULT_REGION") ?? "us-east-1"
    guard region.isPlain(and: "-"), region == region.lowercased() else {
      throw BadS3Setting("AWS_REGION: '\(region)' is no region; it has a-z, 0-9 and - only")
    }
    switch (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
    case (nil, nil): credentials = nil
    case (let key?, let secret?):
      let token = variable("AWS_SESSION_TOKEN")
      // They are sent in headers.
      guard (key + (token ?? "")).utf8.allSatisfy({ (33...126).contains($0) && $0 != UInt8(ascii: ",") }) else {
        throw BadS3Setting(
          "AWS_ACCESS_KEY_ID, AWS_SESSION_TOKEN: a blank, a comma or no ASCII; give them as they are")
      }
      credentials = AWSCredentials(key: key, secret: secret, token: token)
    default: throw BadS3Setting("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together; set both or none")
    }
  }

  /// Reads the environment of this process.
  package init() throws { try self.init { getenv($0).map { String(cString: $0) } } }
}

/// An invalid address of a store, or an invalid variable. The message repeats no password.
package struct BadS3Setting: Error, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}

/// `http[s]://HOST[:PORT][/PATH]`.
struct S3Endpoint: Sendable, Equatable {
  let scheme: String
  /// As in the Host header: without the scheme's default port.
  let host: String
  /// Empty, or beginning with a slash.
  let path: String
}

extension S3Endpoint {
  init?(_ text: String) {
    guard let scheme = ["http", "https"].first(where: { text.lowercased().hasPrefix($0 + "://") }) else { return nil }
    let rest = text.dropFirst(scheme.count + 3)
    var host = rest.prefix { $0 != "/" }.lowercased()
    let defaultPort = scheme == "http" ? ":80" : ":443"
    if host.hasSuffix(defaultPort) { host.removeLast(defaultPort.count) }
    let path = rest.dropFirst(rest.prefix { $0 != "/" }.count)
    guard !host.isEmpty, !host.hasPrefix(":"), host.isPlain(and: ".-_:[]"), path.isPlain(and: ".-_~/") else {
      return nil
    }
    self.init(scheme: scheme, host: host, path: path.hasSuffix("/") ? String(path.dropLast()) : String(path))
  }
}
