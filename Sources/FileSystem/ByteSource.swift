// Where a file's bytes are read from, at any place.

import Glibc

package protocol ByteSource: AnyObject {
  /// Of all of it.
  var count: Int { get }
  /// Fills memory with what lies at an offset, or a part of that.
  ///
  /// - Returns: how many bytes that are: 0 at the end, negative where it fails.
  func read(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int
}

extension ByteSource {
  /// So many bytes, or fewer at the end.
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

/// A file in memory, which must outlive this.
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
  /// Closes the descriptor; nil where this does.
  private let owner: OpenFile?

  package init(_ file: OpenFile) {
    (descriptor, count, owner) = (file.descriptor, file.size, file)
  }

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
