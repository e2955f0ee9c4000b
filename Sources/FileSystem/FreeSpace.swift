/// The bytes that a process leaves free on each disk that it writes to: `--min-free`. Each writer of large files asks here.
package struct FreeSpace: Sendable {
  package private(set) var minimum: Int
  /// Returns the free bytes of the disk of a path.
  package var freeBytes: @Sendable (String) throws -> Int = { try DurableFile.freeBytes(at: $0) }

  package init(minimum: Int = 0) { self.minimum = minimum }

  /// Throws if too little is free.
  ///
  /// - Parameters:
  ///   - bytes: those that are about to be written.
  ///   - path: on the disk.
  /// - Throws: ``LowDiskSpace``; ``DiskError``.
  package func require(for bytes: Int = 0, at path: String) throws {
    // Without a minimum, the write itself tells.
    guard minimum > 0 || bytes > 0 else { return }
    let free = try freeBytes(path)
    if free - bytes < minimum { throw LowDiskSpace(path: path, free: free, wanted: minimum) }
  }

  /// Returns the bytes that may be written to the disk of a path.
  package func room(at path: String) throws -> Int { max(0, try freeBytes(path) - minimum) }

  /// Returns a rule that leaves a number of bytes, even without `--min-free`.
  package func atLeast(_ bytes: Int) -> FreeSpace {
    var rule = self
    rule.minimum = max(minimum, bytes)
    return rule
  }
}

/// Less disk space is free than `--min-free` asks for.
package struct LowDiskSpace: ClassifiedError {
  package var kind: Failure.Kind { .environment }
  package let path: String
  package let free: Int
  package let wanted: Int
  package var description: String { "\(free) bytes free on the disk of \(path), less than the \(wanted) of --min-free" }
}
