import ArgumentParser
import Glibc

/// Where the store is and who asks, as the variables of Amazon's own tools say it.
struct S3Settings: Sendable {
  struct Credentials: Sendable, Equatable {
    let key: String
    let secret: String
    /// Of credentials that are lent for a while.
    let token: String?
  }

  /// nil: Amazon's own.
  let endpoint: S3Endpoint?
  let region: String
  /// Without, nothing is signed.
  let credentials: Credentials?
  /// For how long nothing may come, in seconds.
  var timeoutS = 30
  /// How often something is asked again.
  var retries = 4
  /// The first pause before something is tried again.
  var pauseMs = 100
  /// How many keys a list may have; the store's own measure without.
  var listCount: Int?

  /// - Throws: what is wrong with which variable.
  init(environment value: (String) -> String?) throws {
    func said(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
    let variable = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].first { said($0) != nil }
    endpoint = try variable.map { name in
      guard let endpoint = S3Endpoint(said(name) ?? "") else {
        // It may have a password in it.
        throw ValidationError("\(name) is no http:// or https:// address of a host; a user does not belong into it")
      }
      return endpoint
    }
    region = said("AWS_REGION") ?? said("AWS_DEFAULT_REGION") ?? "us-east-1"
    let isPlain = region.utf8.allSatisfy {
      (97...122).contains($0) || (48...57).contains($0) || $0 == UInt8(ascii: "-")
    }
    guard isPlain else { throw ValidationError("AWS_REGION: '\(region)' is no region; it has a-z, 0-9 and - only") }
    switch (said("AWS_ACCESS_KEY_ID"), said("AWS_SECRET_ACCESS_KEY")) {
    case (nil, nil): credentials = nil
    case (let key?, let secret?):
      let token = said("AWS_SESSION_TOKEN")
      // They go into headers.
      guard (key + (token ?? "")).utf8.allSatisfy({ (33...126).contains($0) && $0 != UInt8(ascii: ",") }) else {
        throw ValidationError(
          "AWS_ACCESS_KEY_ID, AWS_SESSION_TOKEN: a blank, a comma or no ASCII; give them as they are")
      }
      credentials = Credentials(key: key, secret: secret, token: token)
    default: throw ValidationError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together; set both or none")
    }
  }

  /// Those of this process.
  init() throws { try self.init { getenv($0).map { String(cString: $0) } } }
}

/// `http[s]://HOST[:PORT][/PATH]`.
struct S3Endpoint: Sendable, Equatable {
  let scheme: String
  /// As it stands in the header: without the scheme's own port.
  let host: String
  /// Empty, or beginning with a slash.
  let path: String

  init(scheme: String, host: String, path: String = "") {
    (self.scheme, self.host, self.path) = (scheme, host, path)
  }

  init?(_ text: String) {
    guard let scheme = ["http", "https"].first(where: { text.lowercased().hasPrefix($0 + "://") }) else { return nil }
    let rest = text.dropFirst(scheme.count + 3)
    var host = rest.prefix { $0 != "/" }.lowercased()
    let own = scheme == "http" ? ":80" : ":443"
    if host.hasSuffix(own) { host.removeLast(own.count) }
    let path = rest.dropFirst(rest.prefix { $0 != "/" }.count)
    func isPlain(_ text: some StringProtocol, and others: String) -> Bool {
      text.utf8.allSatisfy {
        (97...122).contains($0) || (65...90).contains($0) || (48...57).contains($0) || others.utf8.contains($0)
      }
    }
    guard !host.isEmpty, !host.hasPrefix(":"), isPlain(host, and: ".-_:[]"), isPlain(path, and: ".-_~/") else {
      return nil
    }
    self.init(scheme: scheme, host: host, path: path.hasSuffix("/") ? String(path.dropLast()) : String(path))
  }
}
