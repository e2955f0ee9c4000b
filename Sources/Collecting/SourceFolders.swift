import Batching
import FileSystem
import FrameBatches
import Glibc

/// A file that stays in the folder because it cannot be removed.
package struct UnremovableFile: Sendable {
  package let name: String
  package let error: DiskError
}

/// The folders that pictures are read from, and removed from when their batch is published.
final class SourceFolders: PictureSource {
  private let top: String
  private let keepsSources: Bool
  private let times: CaptureTimes
  private let limits: Limits
  /// Folders that were opened for this step: another one may have the path at the next one.
  private var opened: [String: Directory] = [:]
  /// Names that are written again and again: their files stay, because the recorder may replace one at any time.
  private var rewritten: Set<String> = []
  /// Folders whose names in turn were taken.
  private var toldOf: Set<String> = []
  /// Folders of which files were removed, and that are not synced yet.
  private var touched: [String: Directory] = [:]
  /// Sources that could not be removed since the last question.
  private var unremovable: [UnremovableFile] = []

  /// - Parameter top: the watched folder.
  init(_ top: String, keepsSources: Bool, _ times: CaptureTimes, limits: Limits) {
    (self.top, self.keepsSources, self.times, self.limits) = (top, keepsSources, times, limits)
  }

  var folder: Directory? { get throws { try Directory(opening: top) } }

  /// Forgets the folders that are open.
  func beginStep() { opened = [:] }

  /// Notes that a name is written again: another version of it was seen.
  func noteRewriting(of name: String) { rewritten.insert(name) }

  /// Returns the names of a folder, two at least, that are written again and again; nil without them, and once they were taken.
  func takeNamesInTurn(of folder: String) -> [String]? {
    guard rewritten.count > 1, !toldOf.contains(folder) else { return nil }
    let names = rewritten.filter { DurableFile.parentDirectory(of: $0) == (folder.isEmpty ? "." : folder) }
    guard names.count > 1 else { return nil }
    toldOf.insert(folder)
    return names.sorted()
  }

  /// Forgets a name whose file is gone.
  func forgetRewriting(of name: String) { rewritten.remove(name) }

  /// Hands out the sources that could not be removed.
  func takeUnremovable() -> [UnremovableFile] {
    defer { unremovable = [] }
    return unremovable
  }

  /// Opens the folder of a file.
  ///
  /// - Returns: nil for a folder below the watched one that is gone.
  func directory(of file: FolderFile) throws(DiskError) -> Directory? {
    let below = FolderTree.folder(of: file)
    if let directory = opened[below] { return directory }
    do throws(DiskError) {
      let directory = try Directory(opening: below.isEmpty ? top : top + "/" + below)
      opened[below] = directory
      return directory
    } catch  where !below.isEmpty && [ENOENT, ENOTDIR, ESTALE].contains(error.code) {
      return nil
    }
  }

  func read(_ file: FolderFile) throws -> SourceContent {
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

  func remove(_ files: [[FolderFile]]) throws -> [[FolderFile]] {
    if keepsSources { return files }
    touched = [:]
    let kept = try files.map { list in try list.filter { file in try !remove(file) } }
    try syncTouched()
    return kept
  }

  private func syncTouched() throws(DiskError) {
    do throws(DiskError) {
      // After a power cut they must not come back without the journal's knowledge.
      try Directory.sync(touched.values)
    } catch  where [EINVAL, EROFS, EBADF, ENOTSUP].contains(error.code) {
      // A file system that syncs no directories.
    }
  }

  /// - Returns: whether the file is gone, or another one has its name.
  private func remove(_ file: FolderFile) throws(DiskError) -> Bool {
    // The folder may come back: a mount that is away.
    let found = try? directory(of: file)
    guard let directory = found ?? nil else { return false }
    let name = lastComponent(of: file.name)
    guard directory.sourceStamp(of: name) == file.stamp else { return true }
    if rewritten.contains(file.name) { return false }
    touched[directory.path] = directory
    if unlinkat(directory.descriptor, name, 0) == 0 || errno == ENOENT { return true }
    let failure = DiskError("unlink", top + "/" + file.name)
    guard [EACCES, EPERM, EROFS].contains(failure.code) else { throw failure }
    unremovable.append(UnremovableFile(name: file.name, error: failure))
    return false
  }

  func refined(_ pictures: [LoosePicture], before nextMs: Int64?) -> [LoosePicture] {
    times.refined(pictures, before: nextMs)
  }
}
