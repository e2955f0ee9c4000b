import FileSystem
import FrameBatches
import Glibc

/// The folders that frames are read from, each opened once.
struct SourceFolders {
  enum Source {
    case bytes([UInt8])
    case refused(String)
    /// The file has another version now, or is being written.
    case changed
    case gone
  }

  private let top: String
  private var opened: [String: Directory] = [:]

  /// - Parameter top: the watched folder.
  init(_ top: String) { self.top = top }

  /// Opens the folder of a file.
  ///
  /// - Returns: nil for a folder below the watched one that is gone.
  mutating func directory(of file: FolderFile) throws(DiskError) -> Directory? {
    let below = file.name.contains("/") ? DurableFile.parentDirectory(of: file.name) : ""
    if let directory = opened[below] { return directory }
    do throws(DiskError) {
      let directory = try Directory(opening: below.isEmpty ? top : top + "/" + below)
      opened[below] = directory
      return directory
    } catch  where !below.isEmpty && [ENOENT, ENOTDIR, ESTALE].contains(error.code) {
      return nil
    }
  }

  /// Reads a file that is still as it was found.
  mutating func read(_ file: FolderFile, limits: Limits) throws -> Source {
    guard let directory = try directory(of: file) else { return .gone }
    let name = lastComponent(of: file.name)
    do {
      guard let stamp = directory.sourceStamp(of: name) else { return .gone }
      guard stamp == file.stamp, case .bytes(let bytes)? = try directory.contents(of: name, limit: limits.fileBytes),
        CompleteImage.fault(in: bytes) == nil, directory.sourceStamp(of: name) == file.stamp
      else { return .changed }
      return .bytes(bytes)
    } catch let error as DiskError where [EACCES, EPERM, EIO].contains(error.code) {
      // Others can be read.
      return .refused("\(error)")
    }
  }
}
