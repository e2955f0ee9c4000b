// Copies of files whose names are written again and again: each version is copied as soon as it is seen, because the next one may
// replace it before a batch is due. A line in the journal comes before the copy, so that no kill leaves a copy without its name.

import FileSystem
import FrameBatches
import Glibc

/// The copies beside a journal.
final class HeldPictures {
  /// Copies at one time. More files than that are no versions of a few names: their batches copy them.
  static let most = 20_000
  static let prefix = "held-"

  private let home: String
  private let journal: CollectJournal
  private let limits: Limits
  private var next = 0

  /// Removes copies that the journal does not list, and forgets entries without a copy.
  init(in home: String, _ journal: CollectJournal, limits: Limits) throws(DiskError) {
    (self.home, self.journal, self.limits) = (home, journal, limits)
    let listed = Set(journal.held.values)
    // A name of a copy that was never made may be listed again after the next start.
    next = listed.map(Self.number(of:)).max() ?? 0
    var present: Set<String> = []
    for entry in try Directory(opening: home).entries() where entry.name.hasPrefix(Self.prefix) {
      if listed.contains(entry.name) { present.insert(entry.name) } else { unlink(home + "/" + entry.name) }
    }
    for (file, name) in journal.held where !present.contains(name) { journal.forget(held: file) }
  }

  /// The versions that have a copy, and the names of these, in the order in which they were copied: of the versions of a name, the last
  /// one may still be in the folder.
  var all: [(file: FolderFile, copy: String)] {
    journal.held.map { (file: $0.key, copy: $0.value) }.sorted { Self.number(of: $0.copy) < Self.number(of: $1.copy) }
  }

  private static func number(of copy: String) -> Int { Int(copy.dropFirst(prefix.count)) ?? 0 }

  func path(of copy: String) -> String { home + "/" + copy }

  /// Copies a version, if it is still there, and whole.
  ///
  /// - Parameter folder: the one that `name` is relative to.
  /// - Returns: the name of the copy; nil for a file that has another version now, or that no copy can be made of.
  func hold(_ file: FolderFile, named name: String, in folder: Directory) throws -> String? {
    guard journal.held.count < Self.most, folder.sourceStamp(of: name) == file.stamp,
      case .bytes(let bytes)? = try? folder.contents(of: name, limit: limits.fileBytes),
      CompleteImage.fault(in: bytes) == nil, folder.sourceStamp(of: name) == file.stamp
    else { return nil }
    next += 1
    let copy = Self.prefix + "\(next)"
    try journal.append([.held(copy, file)], isDurable: false)
    let temporary = path(of: copy) + ".part"
    do throws(DiskError) {
      unlink(temporary)
      try DurableFile.create(temporary, bytes, isDurable: false)
      try check("rename", path(of: copy)) { rename(temporary, path(of: copy)) }
    } catch {
      unlink(temporary)
      journal.forget(held: file)
      throw error
    }
    return copy
  }

  /// Puts a copy into a draft. The copy stays until the journal has the batch.
  func put(_ copy: String, as path: String) throws {
    if (try? DurableFile.link(self.path(of: copy), to: path)) == true { return }
    // A file system without hard links.
    guard let bytes = try DurableFile.contents(of: self.path(of: copy), limit: limits.fileBytes) else {
      throw DiskError("open", self.path(of: copy), code: ENOENT)
    }
    try DurableFile.create(path, bytes, isDurable: false)
  }

  /// Removes copies that a batch has, or that no batch will have.
  func remove(_ copies: [String]) { for copy in copies { unlink(path(of: copy)) } }

  /// Removes the copy of a version that no batch will have.
  func drop(_ file: FolderFile) {
    guard let copy = journal.held[file] else { return }
    journal.forget(held: file)
    remove([copy])
  }
}
