import FileSystem
import FrameBatches

/// The SHA-256 that a `Content-Digest` header states (RFC 9530): `sha-256=:BASE64:`, among digests of other algorithms, which are ignored.
enum ContentDigest {
  /// - Returns: 64 hexadecimal digits; nil without a SHA-256.
  /// - Throws: ``ProblemDetails`` for a header that is no dictionary of byte sequences (RFC 9651).
  static func sha256(in header: String?) throws(ProblemDetails) -> String? {
    guard let header else { return nil }
    var found: String?
    for member in header.split(separator: ",", omittingEmptySubsequences: false) {
      let parts = member.trimmed.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let isKey = parts[0].utf8.first.map { (97...122).contains($0) || $0 == 42 } == true
      let allowed = "abcdefghijklmnopqrstuvwxyz0123456789_-.*"
      guard parts.count == 2, isKey, parts[0].allSatisfy(allowed.contains), parts[1].count >= 2,
        parts[1].hasPrefix(":"),
        parts[1].hasSuffix(":"), let bytes = Base64.decode(String(parts[1].dropFirst().dropLast()))
      else { throw malformed }
      guard parts[0] == "sha-256" else { continue }
      guard bytes.count == 32, found == nil else { throw malformed }
      found = SHA256.hexadecimal(bytes)
    }
    return found
  }

  private static let malformed = ProblemDetails(
    .badRequest, "Content-Digest is malformed", advice: "send Content-Digest: sha-256=:BASE64 OF THE SHA-256:")
}

extension Substring {
  /// The text without spaces and tabs at its ends.
  var trimmed: Substring {
    let start = drop { $0 == " " || $0 == "\t" }
    return start.dropLast(start.reversed().prefix { $0 == " " || $0 == "\t" }.count)
  }
}
