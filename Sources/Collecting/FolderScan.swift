// Finds the complete images of a folder. A file counts as complete when it was closed after writing or renamed into place, or
// when two scans see it unchanged; and when its first and last bytes are those of a whole image.

import FileSystem
import FrameBatches
import Glibc

/// A file in the watched folder, as it was when it was complete.
package struct FolderFile: Sendable, Equatable {
  package let name: String
  package let stamp: FileStamp
}

/// A file that the collector leaves where it is, with the reason.
package struct LeftFile: Sendable, Equatable {
  package let name: String
  package let reason: String
  /// The remedy; nil if there is none but to look at the file.
  package var advice: String?
}

/// The files of a folder from scan to scan.
struct FolderScan {
  /// Milliseconds after which a file that is not complete is reported.
  static let patienceMs = 60_000

  private struct Sight {
    let stamp: FileStamp
    let sinceMs: Int
    var isFound = false
    var isReported = false
  }

  let path: String
  private let limits: Limits
  private var sights: [String: Sight] = [:]
  /// Files to report.
  private(set) var left: [LeftFile] = []

  init(_ path: String, limits: Limits) { (self.path, self.limits) = (path, limits) }

  /// Looks at all files of the folder.
  ///
  /// - Parameters:
  ///   - nowMs: the monotonic time.
  ///   - isTaken: whether a batch has this file.
  /// - Returns: the files that are complete, each once.
  mutating func scan(nowMs: Int, isTaken: (FolderFile) -> Bool) throws(DiskError) -> [FolderFile] {
    let directory = try Directory(opening: path)
    let entries = try directory.entries().filter { $0.kind == .file && Self.isCandidate($0.name) }
    var gone = sights
    var found: [FolderFile] = []
    for entry in entries {
      gone[entry.name] = nil
      guard entry.name.utf8.elementsEqual(entry.bytes) else {
        reportOnce(entry.name, "its name is not UTF-8", directory.state(of: entry).map(FileStamp.init), nowMs)
        continue
      }
      if let file = look(at: entry.name, in: directory, isClosed: false, nowMs, isTaken) { found.append(file) }
    }
    for name in gone.keys { sights[name] = nil }
    return found
  }

  /// Looks at files that were closed or renamed.
  mutating func look(
    at names: Set<String>, nowMs: Int, isTaken: (FolderFile) -> Bool
  ) throws(DiskError) -> [FolderFile] {
    let names = names.filter(Self.isCandidate)
    guard !names.isEmpty else { return [] }
    let directory = try Directory(opening: path)
    return names.sorted().compactMap { look(at: $0, in: directory, isClosed: true, nowMs, isTaken) }
  }

  /// Forgets that a file was found: the next scan looks at it anew.
  mutating func forget(_ name: String) { sights[name] = nil }

  /// Hands out the files to report.
  mutating func takeLeft() -> [LeftFile] {
    defer { left = [] }
    return left
  }

  /// Names of unfinished files and of what file managers leave behind are ignored.
  private static func isCandidate(_ name: String) -> Bool {
    BatchDirectory.isComplete(name) && !isRecorderJunk(name)
  }

  private mutating func look(
    at name: String, in directory: Directory, isClosed: Bool, _ nowMs: Int, _ isTaken: (FolderFile) -> Bool
  ) -> FolderFile? {
    guard let stamp = directory.sourceStamp(of: name) else {
      sights[name] = nil
      return nil
    }
    let file = FolderFile(name: name, stamp: stamp)
    let before = sights[name].flatMap { $0.stamp == stamp ? $0 : nil }
    var sight = before ?? Sight(stamp: stamp, sinceMs: nowMs)
    defer { sights[name] = sight }
    guard !sight.isFound, !sight.isReported, isClosed || before != nil else { return nil }
    sight.isFound = isTaken(file)
    guard !sight.isFound else { return nil }
    guard let fault = fault(of: file, in: directory) else {
      sight.isFound = true
      return file
    }
    if nowMs - sight.sinceMs >= Self.patienceMs {
      sight.isReported = true
      left.append(LeftFile(name: name, reason: fault))
    }
    return nil
  }

  /// The reason why a file is not to be taken; nil for a complete image.
  private func fault(of file: FolderFile, in directory: Directory) -> String? {
    guard file.stamp.size <= limits.fileBytes else {
      return "\(file.stamp.size) bytes, more than the limit of \(limits.fileBytes)"
    }
    do throws(DiskError) {
      guard let open = try OpenFile(file.name, in: directory) else { return "not a regular file" }
      return try CompleteImage.fault(in: open, path: path + "/" + file.name)
    } catch {
      return "\(error)"
    }
  }

  private mutating func reportOnce(_ name: String, _ reason: String, _ stamp: FileStamp?, _ nowMs: Int) {
    guard let stamp, sights[name]?.stamp != stamp else { return }
    sights[name] = Sight(stamp: stamp, sinceMs: nowMs, isReported: true)
    left.append(LeftFile(name: name, reason: reason, advice: "rename it"))
  }
}

extension Directory {
  /// Returns the stamp of an entry, of a link its own; nil if there is none.
  func sourceStamp(of name: String) -> FileStamp? {
    var status = stat()
    return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? FileStamp(status) : nil
  }
}
