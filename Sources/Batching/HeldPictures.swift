// The pictures in a batcher's own directory, `held/`:
//
//   held-<number>                        a copy of a version of a file, whose name is written again and again: the next version may
//                                        replace it before a batch is due. A line in the journal comes before the copy, so that no kill
//                                        leaves a copy without its name.
//   <unix ms>-<SHA-256>.<kind>           a picture that a sender has handed over. It is synced before the sender is told, and its name
//                                        tells all of it; `~<ms>` behind the digest is the correction of its device's clock.

import FileSystem
import FrameBatches
import Glibc

package final class HeldPictures {
  /// Copies at one time. More files than that are no versions of a few names: their batches copy them.
  static let most = 20_000
  private static let prefix = "held-"

  private let home: String
  private let journal: BatchJournal
  private let limits: Limits
  private var next = 0
  /// Pictures that were handed over, and that no batch had when this was opened.
  package private(set) var received: [ReceivedPicture] = []

  /// Removes copies that the journal does not list, and pictures that a batch has; forgets entries without a copy.
  init(in home: String, _ journal: BatchJournal, limits: Limits) throws(DiskError) {
    (self.home, self.journal, self.limits) = (home + "/held", journal, limits)
    let listed = Set(journal.held.values.map(\.copy))
    let inBatches = Set(journal.unfinished.flatMap(\.files).map(\.name) + journal.recent)
    // A name of a copy that was never made may be listed again after the next start.
    next = listed.map(Self.number(of:)).max() ?? 0
    var present: Set<String> = []
    let directory = try Directory(opening: self.home)
    for entry in try directory.entries() {
      if listed.contains(entry.name) {
        present.insert(entry.name)
      } else if !inBatches.contains(entry.name), let stamp = directory.sourceStamp(of: entry.name),
        let picture = ReceivedPicture(named: entry.name, stamp)
      {
        received.append(picture)
      } else {
        unlink(path(of: entry.name))
      }
    }
    for (file, held) in journal.held where !present.contains(held.copy) { journal.forget(held: file) }
  }

  /// The versions that have a copy, in the order in which they were copied: of the versions of a name, the last one may still be in the
  /// folder.
  package var versions: [(picture: LoosePicture, place: HeldVersion)] {
    journal.held.values.sorted { Self.number(of: $0.copy) < Self.number(of: $1.copy) }.map { held in
      let version = held.version
      return (
        LoosePicture(version.file, held: held.copy, timeMs: version.timeMs, capture: version.capture), version
      )
    }
  }

  private static func number(of copy: String) -> Int { Int(copy.dropFirst(prefix.count)) ?? 0 }

  private func path(of copy: String) -> String { home + "/" + copy }

  /// Copies a version, if it is still there, and whole.
  ///
  /// - Parameters:
  ///   - picture: the file and its capture.
  ///   - folder: the one that `name` is relative to.
  ///   - stream: the key of its stream.
  /// - Returns: the name of the copy; nil for a file that has another version now, or that no copy can be made of.
  package func hold(
    _ picture: LoosePicture, named name: String, in folder: Directory, for stream: String, session: String
  ) throws -> String? {
    let file = picture.file
    guard journal.held.count < Self.most, folder.sourceStamp(of: name) == file.stamp,
      case .bytes(let bytes)? = try? folder.contents(of: name, limit: limits.fileBytes),
      CompleteImage.fault(in: bytes) == nil, folder.sourceStamp(of: name) == file.stamp
    else { return nil }
    next += 1
    let copy = Self.prefix + "\(next)"
    let version = HeldVersion(
      file: file, stream: stream, session: session, timeMs: picture.timeMs, capture: picture.capture)
    try journal.append([.held(copy, version)], isDurable: false)
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

  /// Takes a picture over. It is durable when this returns.
  ///
  /// - Parameter file: synced; it is moved.
  package func take(_ file: String, _ picture: ReceivedPicture) throws {
    // A file of this name is from a request that failed after its rename: the name has its digest.
    _ = try DurableFile.move(file, to: path(of: picture.file.name))
    try Directory(opening: home).sync()
  }

  /// Puts a picture into a draft. It stays here until the journal has the batch.
  ///
  /// - Returns: false if it is gone.
  func put(_ copy: String, as path: String) throws -> Bool {
    if (try? DurableFile.link(self.path(of: copy), to: path)) == true { return true }
    // A file system without hard links.
    guard let bytes = try DurableFile.contents(of: self.path(of: copy), limit: limits.fileBytes) else { return false }
    try DurableFile.create(path, bytes, isDurable: false)
    return true
  }

  /// Removes pictures that a batch has, or that no batch will have.
  func remove(_ copies: [String]) { for copy in copies { unlink(path(of: copy)) } }

  /// Removes the copy of a version that no batch will have.
  package func drop(_ file: FolderFile) {
    guard let held = journal.held[file] else { return }
    journal.forget(held: file)
    remove([held.copy])
  }
}

/// A picture that a sender has handed over.
package struct ReceivedPicture: Sendable, Equatable {
  /// Pictures in batches that a batcher remembers.
  package static let remembered = 1_024

  package let file: FolderFile
  package let timeMs: Int64
  /// SHA-256 in hexadecimal digits.
  package let digest: String
  /// Milliseconds that were added to the capture, because the clock of its device was behind.
  package let clockOffsetMs: Int64
  private let kind: String

  /// - Parameters:
  ///   - kind: the ending of the frame's name.
  ///   - bytes: its size.
  package init(at timeMs: Int64, _ digest: String, clockOffsetMs: Int64 = 0, kind: String, bytes: Int) {
    (self.timeMs, self.digest, self.kind, self.clockOffsetMs) = (timeMs, digest, kind, clockOffsetMs)
    let offset = clockOffsetMs == 0 ? "" : "~\(clockOffsetMs)"
    file = FolderFile(
      name: "\(timeMs)-\(digest)\(offset).\(kind)", stamp: FileStamp(inode: 0, size: Int64(bytes), modified: 0))
  }

  /// - Returns: nil for a name of something else.
  init?(named name: String, _ stamp: FileStamp) {
    guard let facts = Facts(ofName: name) else { return nil }
    self.init(
      at: facts.timeMs, facts.digest, clockOffsetMs: facts.clockOffsetMs, kind: facts.kind, bytes: Int(stamp.size))
  }

  /// The facts in the name of a picture, which a batch may have by now.
  package struct Facts {
    package let timeMs: Int64
    package let digest: String
    package let clockOffsetMs: Int64
    fileprivate let kind: String

    package init?(ofName name: String) {
      guard let point = name.lastIndex(of: "."), let dash = name.firstIndex(of: "-"), dash < point,
        let timeMs = Int64(name[..<dash])
      else { return nil }
      let parts = name[name.index(after: dash)..<point].split(separator: "~", omittingEmptySubsequences: false)
      guard let digest = parts.first, digest.utf8.count == 64, parts.count <= 2 else { return nil }
      guard let offset = parts.count == 2 ? Int64(parts[1]) : 0 else { return nil }
      (self.timeMs, self.digest, clockOffsetMs) = (timeMs, String(digest), offset)
      kind = String(name[name.index(after: point)...])
    }
  }

  package func picture(_ capture: Batch.Capture) -> LoosePicture {
    var picture = LoosePicture(file, held: file.name, timeMs: timeMs, capture: capture, name: "\(timeMs).\(kind)")
    picture.isSynced = true
    picture.clockOffsetMs = clockOffsetMs
    return picture
  }
}
