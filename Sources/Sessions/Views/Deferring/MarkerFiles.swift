// `OUTPUT/.behind/SESSION` marks a session. A worker writes and removes it with the session locked. The marker's time is the due
// time of the views: in the future if a live playlist holds a segment back.

import Encoding
import FileSystem
import FrameBatches
import Glibc

struct MarkerFiles: ViewMarkers {
  /// A marker that has been due for this many seconds belongs to a dead process.
  private static let deadS = 5
  /// A due time that is more seconds in the future is wrong: a clock was set back.
  private static let maximumWaitS = 300

  private let path: String

  init(output: String) { path = output + "/.behind" }

  init(beside session: SessionDirectory) { self.init(output: DurableFile.parentDirectory(of: session.path)) }

  func add(_ session: SessionID, known: ViewMarker?) throws -> ViewMarker {
    let marker = path(of: session)
    while true {
      try DurableFile.makeDirectories(path)
      let file = open(marker, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
      let failure = file < 0 ? DiskError("create", marker) : nil
      if file >= 0 { close(file) }
      // An ending process removed the empty directory.
      if failure?.code == ENOENT { continue }
      if let failure, failure.code != EEXIST { throw failure }
      // An existing marker of this process is on the disk.
      if failure != nil && known != nil { return ViewMarker(session: session) }
      do {
        try Directory(opening: path).sync()
        return ViewMarker(session: session)
      } catch {
        unlink(marker)
        throw error
      }
    }
  }

  /// Sets the due time of a marked session's views.
  ///
  /// - Parameter waitMs: from now on, in milliseconds.
  func postpone(_ marker: ViewMarker, byMs waitMs: Int) throws(DiskError) {
    let file = path(of: marker.session)
    let due = WallClock.nowMs + Int64(waitMs)
    let time = timespec(tv_sec: Int(due / 1_000), tv_nsec: Int(due % 1_000) * 1_000_000)
    try check("utimensat", file) { utimensat(AT_FDCWD, file, [time, time], AT_SYMLINK_NOFOLLOW) }
  }

  func remove(_ marker: ViewMarker) throws(DiskError) {
    let file = path(of: marker.session)
    try check("unlink", file) { unlink(file) == 0 || errno == ENOENT ? 0 : -1 }
  }

  func isThere(_ session: SessionID) -> Bool { DurableFile.exists(path(of: session)) }

  func abandoned(all: Bool, except sessions: Set<SessionID>) -> [ViewMarker] {
    let known = Set(sessions.map(\.description))
    let entries = (try? Directory(opening: path, followingLinks: false).entries()) ?? []
    return entries.compactMap { entry in
      var status = stat()
      guard !known.contains(entry.name), lstat(path + "/" + entry.name, &status) == 0 else { return nil }
      let age = time(nil) - status.st_mtim.tv_sec
      return all || age >= Self.deadS || age < -Self.maximumWaitS
        ? SessionID(entry.name).map { ViewMarker(session: $0) } : nil
    }
  }

  func tidyUp() { rmdir(path) }

  private func path(of session: SessionID) -> String { path + "/" + session.description }
}
