/// The address of an HTTP server: `http[s]://HOST[:PORT][/PATH][?QUERY]`. Its path and its query may be a secret, so no message repeats them.
package struct HTTPAddress: Sendable {
  private static let form = "http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]"

  package let text: String
  /// The reason why the address is invalid; nil if it is valid.
  package let fault: String?

  /// Accepts any argument; ``fault`` says why one is invalid. The parser would print a refused value.
  package init(argument: String) {
    text = argument
    fault = Self.fault(of: argument)
  }

  /// The address without path and query.
  package var name: String {
    guard fault == nil, let parts = Self.parts(text) else { return "an invalid address" }
    return "\(parts.scheme)://\(parts.authority)"
  }

  private static func parts(_ text: String) -> (scheme: String, authority: Substring)? {
    guard let scheme = ["http", "https"].first(where: { text.lowercased().hasPrefix($0 + "://") }) else { return nil }
    return (scheme, text.dropFirst(scheme.count + 3).prefix { !"/?#".contains($0) })
  }

  private static func fault(of text: String) -> String? {
    guard let authority = parts(text)?.authority else { return "it has to be \(form)" }
    if authority.contains("@") {
      return "a user or a password does not belong into the address; a file has the secret"
    }
    let port = authority.lastIndex(of: ":").map { authority[$0...].dropFirst() } ?? "80"
    guard !authority.isEmpty, !authority.hasPrefix(":"), authority.isPlain(and: ".-_:[]"),
      authority.hasSuffix("]") || port.isDecimal && (1...65_535).contains(Int(port) ?? 0)
    else { return "it has to be \(form)" }
    guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), !text.contains("#") else {
      return "it has a blank, a # or a character beyond ASCII; write these percent-encoded"
    }
    return text.utf8.count <= 2_048 ? nil : "it has more than 2048 bytes"
  }
}
