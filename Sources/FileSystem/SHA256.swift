import CNettle
import Glibc

/// SHA-256, by Nettle: every byte that comes in or goes out is hashed, and libavutil's takes six times as long.
package struct SHA256 {
  private var context = sha256_ctx()

  package init() { nettle_sha256_init(&context) }

  /// Of a file of any size.
  package static func hex(ofFile path: String, isCancelled: () -> Bool) throws -> String {
    let file = try check("open", path) { open(path, O_RDONLY | O_CLOEXEC) }
    defer { close(file) }
    var sum = SHA256()
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      if isCancelled() { throw Cancelled() }
      let count = read(file, &buffer, buffer.count)
      if count == 0 { return sum.finish() }
      if count < 0 {
        if errno == EINTR { continue }
        throw DiskError("read", path)
      }
      nettle_sha256_update(&sum.context, count, buffer)
    }
  }

  package mutating func update(_ bytes: [UInt8]) { nettle_sha256_update(&context, bytes.count, bytes) }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    nettle_sha256_update(&context, bytes.count, bytes.bindMemory(to: UInt8.self).baseAddress)
  }

  package mutating func update(_ text: String) { update(Array(text.utf8)) }

  /// The digest in 64 hexadecimal digits; ends the computation.
  package mutating func finish() -> String {
    var digest = [UInt8](repeating: 0, count: 32)
    cnettle_sha256_digest(&context, &digest)
    return Self.hexadecimal(digest)
  }

  /// The digest of a message that only who has the key can have made (RFC 2104).
  package static func authentication(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    cnettle_hmac_sha256(key, key.count, message, message.count, &digest)
    return digest
  }

  /// Two digits a byte.
  package static func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  package static func hex(of bytes: [UInt8]) -> String {
    var sum = SHA256()
    sum.update(bytes)
    return sum.finish()
  }
}
