import FileSystem

/// One of several equal parts of a list or a directory, for several tasks that share the work: `I/N`, counted from 0.
///
/// Every batch is in exactly one shard of N. In a list it is told by the place, in a directory by the name, so that it stays the
/// same whatever else comes or goes meanwhile.
package struct Shard: Sendable, Equatable {
  package let index: Int
  package let count: Int

  /// - Returns: nil for what is no such part.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let index = parts[0], let count = parts[1], count > 0, (0..<count).contains(index) else {
      return nil
    }
    self.index = index
    self.count = count
  }

  /// - Parameter position: in a list, from 0.
  package func contains(position: Int) -> Bool { position % count == index }

  /// By the first 32 bits of the name's SHA-256, highest first, modulo N: what `sha256sum` says, too.
  ///
  /// - Parameter name: of an entry of a directory, as the system has it.
  package func contains(name: [UInt8]) -> Bool {
    let number = Int(SHA256.hex(of: name).prefix(8), radix: 16) ?? 0
    return number % count == index
  }
}
