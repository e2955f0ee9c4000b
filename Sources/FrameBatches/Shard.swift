import FileSystem

/// One of several equal parts of a list or a directory, for several tasks that share the work: `I/N`, counted from 0.
///
/// Every batch is in exactly one shard of N. In a list, its position decides. In a directory, its name decides, so the shard does
/// not depend on other batches, which may come and go.
package struct Shard: Sendable, Equatable {
  package let index: Int
  package let count: Int

  /// - Returns: nil for a text that is not `I/N` with I below N.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let index = parts[0], let count = parts[1], count > 0, (0..<count).contains(index) else {
      return nil
    }
    self.index = index
    self.count = count
  }

  /// - Parameter position: the position in a list, from 0.
  package func contains(position: Int) -> Bool { position % count == index }

  /// Whether the first 32 bits of the name's SHA-256, as a big-endian number, modulo N are I. `sha256sum` gives the same bits.
  ///
  /// - Parameter name: the bytes of a directory entry's name.
  package func contains(name: [UInt8]) -> Bool {
    let number = Int(SHA256.hex(of: name).prefix(8), radix: 16) ?? 0
    return number % count == index
  }
}
