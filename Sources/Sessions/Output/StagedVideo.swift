import FileSystem
import Glibc

/// The bytes of a video that waits for publication.
package enum StagedVideo: Sendable {
  case file(String)
  case bytes([UInt8])
  case part(of: UnnamedFile, Range<Int>)

  /// The path of its file; nil if it is in memory.
  package var path: String? { if case .file(let path) = self { path } else { nil } }

  /// - Throws: ``DiskError``.
  package func bytes() throws -> [UInt8] {
    switch self {
    case .bytes(let bytes): return bytes
    case .part(let file, let range): return try file.bytes(range)
    case .file(let path):
      guard let bytes = try DurableFile.contents(of: path, limit: .max) else {
        throw DiskError("open", path, code: ENOENT)
      }
      return bytes
    }
  }

  /// Removes the file that was not published.
  package func discard() { if case .file(let path) = self { unlink(path) } }
}
