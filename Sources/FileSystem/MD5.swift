import CNettle

/// MD5 by Nettle: object stores use it for the tags of objects. It finds damage, not an attack.
package struct MD5 {
  private var context = md5_ctx()

  package init() { nettle_md5_init(&context) }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    nettle_md5_update(&context, bytes.count, bytes.bindMemory(to: UInt8.self).baseAddress)
  }

  /// Ends the computation and returns the digest in 32 hexadecimal digits.
  package mutating func finish() -> String {
    var digest = [UInt8](repeating: 0, count: 16)
    cnettle_md5_digest(&context, &digest)
    return SHA256.hexadecimal(digest)
  }

  package static func hex(of bytes: [UInt8]) -> String {
    var sum = MD5()
    bytes.withUnsafeBytes { sum.update($0) }
    return sum.finish()
  }
}
