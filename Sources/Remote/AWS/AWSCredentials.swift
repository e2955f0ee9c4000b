/// Keys that sign requests.
package struct AWSCredentials: Sendable, Equatable, SecretValue {
  let key: String
  let secret: String
  /// The session token of temporary credentials.
  let token: String?

  /// Fails for texts that no header can carry: empty, with a blank, a comma or a character beyond ASCII.
  init?(key: String, secret: String, token: String?) {
    let isSendable = [key, token ?? "-"].allSatisfy { text in
      !text.isEmpty && text.utf8.count <= 16 << 10
        && text.utf8.allSatisfy { (33...126).contains($0) && $0 != UInt8(ascii: ",") }
    }
    guard isSendable, !secret.isEmpty, secret.utf8.count <= 1 << 10 else { return nil }
    (self.key, self.secret, self.token) = (key, secret, token)
  }

  /// Whether a server's text repeats a secret: it must not be shown then.
  func areRepeated(in text: String) -> Bool { [secret, token].contains { $0.map(text.contains) ?? false } }
}

/// A value with secrets: none of its texts shows one.
package protocol SecretValue: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension SecretValue {
  package var description: String { "\(Self.self) (hidden)" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
