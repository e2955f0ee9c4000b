// `OUTPUT/.behind/SESSION` marks a session whose views lack segments. A worker writes the marker before it publishes the segments,
// and removes it once the views list them, both with the session locked. The marker's time is the due time of the views: in the
// future if a live playlist holds a segment back.

import Encoding
import FileSystem
import FrameBatches
import Glibc

struct DirtySessionMarkers {
  private let path: String

  init(output: String) { path = output + "/.behind" }

  init(beside session: SessionDirectory) { self.init(output: DurableFile.parentDirectory(of: session.path)) }

  /// - Parameter isSynced: whether an existing marker is known to be on disk.
  package func add(_ session: SessionID, isSynced: Bool) throws {
    let marker = path(of: session)
    while true {
      try DurableFile.makeDirectories(path)
      let file = open(marker, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
      let failure = file < 0 ? DiskError("create", marker) : nil
      if file >= 0 { close(file) }
      // An ending process removed the empty directory.
      if failure?.code == ENOENT { continue }
      if let failure, failure.code != EEXIST { throw failure }
      if failure != nil && isSynced { return }
      do {
        return try Directory(opening: path).sync()
      } catch {
        unlink(marker)
        throw error
      }
    }
  }

  /// Sets the due time of a marked session's views.
  ///
  /// - Parameter waitMs: from now on, in milliseconds.
  func postpone(_ session: SessionID, byMs waitMs: Int) throws(DiskError) {
    let marker = path(of: session)
    let due = WallClock.nowMs + Int64(waitMs)
    let time = timespec(tv_sec: Int(due / 1_000), tv_nsec: Int(due % 1_000) * 1_000_000)
    try check("utimensat", marker) { utimensat(AT_FDCWD, marker, [time, time], AT_SYMLINK_NOFOLLOW) }
  }

  package func remove(_ session: SessionID) throws(DiskError) {
    let marker = path(of: session)
    try check("unlink", marker) { unlink(marker) == 0 || errno == ENOENT ? 0 : -1 }
  }

  package func isThere(_ session: SessionID) -> Bool { DurableFile.exists(path(of: session)) }

  /// A due time that is more seconds in the future is wrong: a clock was set back.
  private static let maximumWaitS = 300

  /// Returns the marked sessions; none if the disk does not answer.
  ///
  /// - Parameters:
  ///   - minimumS: seconds since their due time; nil for all.
  ///   - known: sessions to leave out.
  package func sessions(dueForS minimumS: Int?, except known: some Collection<SessionID>) -> [SessionID] {
    let known = Set(known.map(\.description))
    let entries = (try? Directory(opening: path, followingLinks: false).entries()) ?? []
    return entries.compactMap { entry in
      var status = stat()
      guard !known.contains(entry.name), lstat(path + "/" + entry.name, &status) == 0 else { return nil }
      let age = time(nil) - status.st_mtim.tv_sec
      return age >= minimumS ?? .min || age < -Self.maximumWaitS ? SessionID(entry.name) : nil
    }
  }

  /// Removes the directory of markers if it is empty.
  func tidyUp() { rmdir(path) }

  private func path(of session: SessionID) -> String { path + "/" + session.description }
}
