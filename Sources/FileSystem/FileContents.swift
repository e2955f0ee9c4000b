// The bytes of a regular file, or the reason why they are not read.

import Glibc

package enum FileContents {
  case bytes([UInt8])
  case refused(FileRefusal)
}

/// The reason why a file is not read.
package struct FileRefusal: Sendable, Equatable, CustomStringConvertible, ExpressibleByStringInterpolation {
  package let description: String
  /// The size of a file beyond a limit, in bytes; nil for other reasons.
  package let size: Int?

  /// The reason why a symbolic link is not followed.
  package static let link = "a symbolic link"

  package init(stringLiteral description: String) { (self.description, size) = (description, nil) }

  /// A file of more bytes than it may have.
  package init(size: Int, limit: Int) {
    (description, self.size) = ("\(size) bytes, more than the limit of \(limit)", size)
  }
}

/// Reads an open file to its end, or its first `count` bytes, if it is a regular file of at most `limit` bytes.
package func readRegularFile(
  _ file: Int32, path: String, limit: Int, count maximum: Int = .max
) throws(DiskError) -> FileContents {
  var status = stat()
  try check("fstat", path) { fstat(file, &status) }
  guard status.st_mode & S_IFMT == S_IFREG else { return .refused("not a regular file") }
  guard status.st_size <= limit else { return .refused(FileRefusal(size: Int(status.st_size), limit: limit)) }
  var bytes = [UInt8](repeating: 0, count: min(Int(status.st_size), maximum))
  var filled = 0
  while filled < bytes.count {
    let count = try check("read", path) {
      bytes.withUnsafeMutableBytes { read(file, $0.baseAddress! + filled, $0.count - filled) }
    }
    if count == 0 { break }
    filled += count
  }
  bytes.removeLast(bytes.count - filled)
  return .bytes(bytes)
}
