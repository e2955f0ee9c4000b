import CNettle
import Glibc

/// SHA-256 by Nettle. The worker hashes every byte of its input and output, and libavutil takes six times as long.
package struct SHA256 {
  private var context = sha256_ctx()

  package init() { nettle_sha256_init(&context) }

  /// Returns the digest of a file of any size.
  package static func hex(ofFile path: String, cancellation: Cancellation) throws -> String {
    let file = try check("open", path) { open(path, O_RDONLY | O_CLOEXEC) }
    defer { close(file) }
    var sum = SHA256()
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      try cancellation.check()
      let count = try check("read", path) { read(file, &buffer, buffer.count) }
      if count == 0 { return sum.finish() }
      nettle_sha256_update(&sum.context, count, buffer)
    }
  }

  package mutating func update(_ bytes: [UInt8]) { nettle_sha256_update(&context, bytes.count, bytes) }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    nettle_sha256_update(&context, bytes.count, bytes.bindMemory(to: UInt8.self).baseAddress)
  }

  package mutating func update(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { update($0) } }

  package mutating func update(_ text: String) { update(Array(text.utf8)) }

  /// Ends the computation and returns the digest in 64 hexadecimal digits.
  package mutating func finish() -> String { Self.hexadecimal(bytes()) }

  private mutating func bytes() -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    cnettle_sha256_digest(&context, &digest)
    return digest
  }

  /// Returns the 32 bytes of the digest.
  package static func digest(of bytes: [UInt8]) -> [UInt8] {
    var sum = SHA256()
    sum.update(bytes)
    return sum.bytes()
  }

  /// Returns the HMAC of a message (RFC 2104).
  package static func authentication(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    cnettle_hmac_sha256(key, key.count, message, message.count, &digest)
    return digest
  }

  /// Returns two lower-case digits for each byte.
  package static func hexadecimal(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.count)
    for byte in bytes {
      text.append(digit(byte >> 4))
      text.append(digit(byte & 15))
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  package static func hex(of bytes: [UInt8]) -> String {
    var sum = SHA256()
    sum.update(bytes)
    return sum.finish()
  }
}
