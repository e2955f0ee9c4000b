// Signatures of events after the Standard Webhooks specification: HMAC-SHA256 over the ID, the time and the body.
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

import FileSystem
import FrameBatches

package struct WebhookSigner: Sendable {
  private static let prefix = "whsec_"
  private static let maximumBytes = 4_096

  private let secret: [UInt8]

  /// - Parameter secret: the content of a secret file: any text, or `whsec_` and base64. Line ends behind it do not count.
  /// - Returns: nil for an empty secret, or one that is no base64 after `whsec_`.
  package init?(secret content: [UInt8]) {
    let text = Array(content.reversed().drop { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }.reversed())
    if text.starts(with: Self.prefix.utf8) {
      guard let encoded = String(validating: text.dropFirst(Self.prefix.utf8.count), as: UTF8.self),
        let bytes = Base64.decode(encoded)
      else { return nil }
      secret = bytes
    } else {
      secret = text
    }
    if secret.isEmpty { return nil }
  }

  /// - Throws: ``Failure``; ``DiskError``.
  package init(file path: String) throws {
    let content = try SecretFile.bytes(of: path, content: "the secret", limit: Self.maximumBytes)
    guard let signer = WebhookSigner(secret: content) else {
      throw Failure(
        .usage, "read", path, "empty, or no base64 after \(Self.prefix)",
        advice: "make one: openssl rand -base64 32 >FILE; chmod 600 FILE")
    }
    self = signer
  }

  /// Returns the signature of a message.
  ///
  /// - Parameter timeS: in unix seconds.
  package func signature(id: String, timeS: Int64, body: [UInt8]) -> String {
    let message = Array("\(id).\(timeS).".utf8) + body
    return "v1," + Base64.encode(SHA256.authentication(of: message, key: secret))
  }
}
