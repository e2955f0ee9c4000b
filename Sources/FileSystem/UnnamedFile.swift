import CLinux
import Glibc
import Synchronization

/// A file without a name, to which threads append. The kernel removes it when the process ends, however that ends.
package final class UnnamedFile: Sendable {
  private let directory: String
  private let descriptor: Int32
  private let end = Mutex(0)

  /// - Parameter directory: on the disk that has the room.
  package init(in directory: String) throws(DiskError) {
    self.directory = directory
    descriptor = try Self.open(in: directory)
  }

  deinit { close(descriptor) }

  /// Returns the descriptor of a new file.
  static func open(in directory: String) throws(DiskError) -> Int32 {
    var file = clinux_open_unnamed(directory)
    if file < 0 && [EOPNOTSUPP, EISDIR, ENOENT].contains(errno) {
      // The file system has no such files.
      var name = Array((directory + "/encoder-worker-XXXXXX").utf8CString)
      file = mkstemp(&name)
      if file >= 0 { unlink(name) }
    }
    guard file >= 0 else { throw DiskError("create", directory) }
    return file
  }

  /// Appends bytes, and returns where they are.
  package func append(_ bytes: [UInt8]) throws(DiskError) -> Range<Int> {
    let start = end.withLock { end in
      defer { end += bytes.count }
      return end
    }
    var written = 0
    while written < bytes.count {
      written += try check("write", directory) {
        bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress! + written, $0.count - written, start + written) }
      }
    }
    return start..<start + bytes.count
  }

  /// Returns bytes that were appended.
  package func bytes(_ range: Range<Int>) throws(DiskError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: range.count)
    var read = 0
    while read < bytes.count {
      let count = try check("read", directory) {
        bytes.withUnsafeMutableBytes {
          pread(descriptor, $0.baseAddress! + read, $0.count - read, range.lowerBound + read)
        }
      }
      guard count > 0 else { throw DiskError("read", directory, code: EIO) }
      read += count
    }
    return bytes
  }
}
