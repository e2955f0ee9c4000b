/// A request of HTTP (RFC 9110), as a value.
package struct HTTPRequest {
  package let method: String
  /// Percent-decoded; begins with a slash.
  package let path: String
  package let header: (_ name: String) -> String?
  /// An argument of the address, `?name=value`, decoded; a plus sign is a space.
  package let argument: (_ name: String) -> String?
  /// Whether the client has closed the connection. A client that only sends nothing more has not.
  let isAbandoned: () -> Bool
  /// The client's IPv4 address, or the /64 network of its IPv6 address.
  let network: UInt64

  package init(
    method: String, path: String, header: @escaping (_ name: String) -> String?,
    argument: @escaping (_ name: String) -> String? = { _ in nil }, isAbandoned: @escaping () -> Bool = { false },
    network: UInt64 = 0
  ) {
    self.method = method
    self.path = path
    self.header = header
    self.argument = argument
    self.isAbandoned = isAbandoned
    self.network = network
  }

  /// The bytes of the body as the headers announce them: 0 for none, nil if only its end tells.
  package var bodyBytes: Int? {
    if header("Transfer-Encoding") != nil { return nil }
    return header("Content-Length").map { Int($0) ?? .max } ?? 0
  }

  /// Whether the client has the version with this tag, packed or not.
  func has(_ tag: String) -> Bool { hasExactly(tag) || hasExactly(Self.packed(tag)) }

  /// Whether the client has the form with this tag.
  func hasExactly(_ tag: String) -> Bool {
    (header("If-None-Match") ?? "").split(separator: ",").contains { item in
      let item = item.drop { $0 == " " }
      let trimmed = item.prefix { $0 != " " }
      return trimmed == "*" || (trimmed.hasPrefix("W/") ? trimmed.dropFirst(2) : trimmed) == "\"\(tag)\""
    }
  }

  /// Whether other programs on the way may read another path: it has an encoded slash, backslash or NUL, or a segment `.` or `..`.
  var isAmbiguous: Bool {
    let lower = path.lowercased()
    return ["%2f", "%5c", "%00"].contains { lower.contains($0) } || parts.contains { $0 == "." || $0 == ".." }
  }

  package var parts: [String] {
    path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
  }
}
