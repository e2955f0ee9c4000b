import FileSystem

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
