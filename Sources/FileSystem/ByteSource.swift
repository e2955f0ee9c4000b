// Where a file's bytes are read from, at any offset.

import Glibc

package protocol ByteSource: AnyObject {
  /// The size of the file in bytes.
  var count: Int { get }
  /// Reads bytes at an offset into `target`, as many as fit or fewer.
  ///
  /// - Returns: the number of bytes: 0 at the end, negative on an error, which `errno` has.
  func read(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int
}

extension ByteSource {
  /// Returns `count` bytes, or fewer at the end or on an error.
  package func bytes(at offset: Int, _ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
      while filled < count {
        let target = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(bytes)[filled...])
        let part = read(at: offset + filled, into: target)
        guard part > 0 else { break }
        filled += part
      }
    }
  }
}

/// A file in memory that outlives this reader.
package final class MemoryBytes: ByteSource {
  private let bytes: UnsafeRawBufferPointer

  package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  package var count: Int { bytes.count }

  package func read(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
    guard (0..<bytes.count).contains(offset) else { return 0 }
    let part = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + min(target.count, bytes.count - offset)])
    target.copyMemory(from: part)
    return part.count
  }
}

/// A file on disk.
package final class FileBytes: ByteSource {
  package let count: Int
  private let descriptor: Int32
  /// Owns the descriptor; nil if this object owns it.
  private let owner: OpenFile?

  package init(_ file: OpenFile) { (descriptor, count, owner) = (file.descriptor, file.size, file) }

  package init(opening path: String) throws(DiskError) {
    descriptor = try check("open", path) { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    count = max(0, Int(lseek(descriptor, 0, SEEK_END)))
    owner = nil
  }

  deinit { if owner == nil { close(descriptor) } }

  package func read(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      let part = pread(descriptor, target.baseAddress, target.count, offset)
      if part >= 0 || errno != EINTR { return part }
    }
  }
}

/// Bytes that a source keeps.
package final class KeptBytes: ByteSource {
  private let bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package var count: Int { bytes.count }

  package func read(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
    bytes.withUnsafeBytes { MemoryBytes($0).read(at: offset, into: target) }
  }
}
