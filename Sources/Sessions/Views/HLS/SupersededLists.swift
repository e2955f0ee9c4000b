// `OUTPUT/.superseded/SESSION`: the files of the session's live package that its playlist no longer names. The list is on disk before
// the playlist changes, so a crash leaves no file unlisted. A removal reads the playlist first: a file that it names stays.

import Encoding
import FileSystem
import FrameBatches
import Glibc

package struct SupersededLists {
  private let path: String
  private let output: String
  /// A temporary name that no other process uses, on the same file system.
  private let temporary: String

  /// - Parameter temporary: nil for a name in the output.
  package init(output: String, temporary: String? = nil) {
    self.output = output
    self.temporary = temporary ?? output + "/.\(WorkerID())"
    path = output + "/.superseded"
  }

  /// Returns the sessions with a list; none if the disk does not answer.
  package func sessions() -> [SessionID] {
    ((try? Directory.entries(ifAt: path)) ?? []).compactMap { SessionID($0.name) }
  }

  /// Returns the names of the listed files of a session.
  func names(of session: SessionID) throws(DiskError) -> Set<String> { try list(of: session).names }

  /// Lists the files that only the published playlist of a package names, and `files` that no playlist names. Call it with the
  /// session locked, before the playlist is replaced.
  func replace(
    _ published: Set<String>, with named: Set<String>, among files: [String], of session: SessionID, dueMs: Int64
  ) throws {
    var list = try list(of: session)
    let old = list
    list.replace(published, with: named, among: files, dueMs: dueMs)
    if list != old { try write(list, of: session) }
  }

  /// Removes the files whose time has come, of all sessions. Those of a session that another process holds are removed later.
  func removeDue(atMs nowMs: Int64) -> [ViewUpdateFailure] {
    var failures: [ViewUpdateFailure] = []
    for session in sessions() {
      do {
        try removeDue(of: session, atMs: nowMs)
      } catch is SessionHeld {
        continue
      } catch {
        failures.append(ViewUpdateFailure(session, .removal, error))
      }
    }
    tidyUp()
    return failures
  }

  /// - Throws: ``SessionHeld``; ``DiskError``.
  private func removeDue(of session: SessionID, atMs nowMs: Int64) throws {
    // Without the lock, since nearly all files have to wait.
    if try DurableFile.isDirectory(output + "/\(session)"), try list(of: session).due(atMs: nowMs).isEmpty { return }
    let directory = SessionDirectory(output: output, session: session)
    // A session that is gone has no files.
    if try directory.lockedIfFree({ try removeDue(in: directory, atMs: nowMs) }) == nil { try remove(session) }
  }

  /// Removes the files of a session whose time has come. Call it with the session locked.
  package func removeDue(in directory: SessionDirectory, atMs nowMs: Int64) throws {
    let package = package(of: directory)
    guard try DurableFile.isDirectory(package.path) else { return try remove(directory.session) }
    var list = try list(of: directory.session)
    list.keep(try package.named())
    let due = list.due(atMs: nowMs)
    for name in due { try package.remove(name) }
    list.endRemoval(of: due)
    try write(list, of: directory.session)
  }

  /// Returns the paths of files that may be removed, in or out of the list: an older version listed none, and a dead worker may
  /// have made some. Call it with the session locked.
  package func removable(in directory: SessionDirectory, atMs nowMs: Int64) throws -> [String] {
    let package = package(of: directory)
    guard try DurableFile.isDirectory(package.path) else { return [] }
    let due = Set(try list(of: directory.session).due(atMs: nowMs))
    // A playlist that has not changed for that long names all files that viewers may fetch.
    let isSettled = try package.isUnchanged(atMs: nowMs)
    let named = try package.named()
    return try Directory(opening: package.path, followingLinks: false).entries()
      .filter { $0.kind == .file && SupersededFiles.canList($0.name) && !named.contains($0.name) }
      .filter { isSettled || due.contains($0.name) }.map { package.path + "/" + $0.name }
  }

  private func package(of directory: SessionDirectory) -> HLSPackage {
    HLSPackage(path: directory.path + "/" + HLSPackage.directory, temporary: temporary)
  }

  /// Removes the list of a session.
  package func remove(_ session: SessionID) throws(DiskError) {
    let file = file(of: session)
    try check("unlink", file) { unlink(file) == 0 || errno == ENOENT || errno == ENOTDIR ? 0 : -1 }
  }

  /// Removes the directory of lists if it is empty.
  package func tidyUp() { rmdir(path) }

  private func list(of session: SessionID) throws(DiskError) -> SupersededFiles {
    SupersededFiles(try DurableFile.contents(of: file(of: session), limit: IndexText.maximumBytes) ?? [])
  }

  private func write(_ list: SupersededFiles, of session: SessionID) throws(DiskError) {
    if list.isEmpty { return try remove(session) }
    let parent = path
    // An ending process may remove the empty directory.
    for isLast in [false, false, true] {
      try DurableFile.makeDirectories(parent)
      do throws(DiskError) {
        try DurableFile.replace(file(of: session), list.text, temporary: temporary)
        return try Directory(opening: parent).sync()
      } catch  where error.code == ENOENT && !isLast {
        continue
      }
    }
  }

  private func file(of session: SessionID) -> String { Self.file(of: session, in: output) }

  /// The path of a session's list.
  static func file(of session: SessionID, in output: String) -> String { "\(output)/.superseded/\(session)" }
}
