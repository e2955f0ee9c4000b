import FileSystem

/// Tells bytes from others.
package enum Digest {
  /// 32 hexadecimal digits of SHA-256.
  package static func of(_ bytes: [UInt8]) -> String { String(SHA256.hex(of: bytes).prefix(32)) }
}
