// Removes a session from an output directory. One rename under the session's lock hides it before anything of it is removed:
// after a crash it is there as a whole or not at all, and the next `delete` or `prune` removes the rest. No link is followed.

import Encoding
import FileSystem
import FrameBatches
import Glibc

/// The files of a session that were removed.
package struct RemovedSession: Sendable, Equatable {
  package internal(set) var segments = 0
  /// All files, or objects, of the session.
  package internal(set) var files = FileCount()

  package init() {}

  /// Counts the files of a session in a directory.
  fileprivate mutating func add(directory path: String) throws {
    files += FileCount(of: path)
    segments += try Directory.entries(ifAt: path).count { SegmentName.start(ofManifest: $0.name) != nil }
  }
}

package struct SessionRemoval {
  /// Milliseconds to wait for a worker that publishes in the session. A stopped process holds the lock for ever.
  private static let lockMs = 30_000

  private let output: String
  private let cancellation: Cancellation

  /// - Parameter cancellation: asked while a worker holds a session.
  package init(output: String, cancellation: Cancellation) {
    self.output = output
    self.cancellation = cancellation
  }

  /// Removes a session that has a tombstone, and the rest of an interrupted removal.
  ///
  /// - Throws: ``SessionHeld`` if another process does not release the session.
  package func remove(_ session: SessionID) throws -> RemovedSession {
    // Over NFS this shows the sessions that other hosts have made.
    _ = try Directory(opening: output)
    let directory = SessionDirectory(output: output, session: session)
    do {
      if let lock = try directory.lockExisting(cancellation.or(afterMs: Self.lockMs)) {
        // Without the tombstone the session has been allowed again meanwhile.
        if try SessionTombstones(output: output).tombstone(of: session) != nil { _ = try directory.hide() }
        lock.release()
      }
    } catch is Cancelled where !cancellation.isRequested {
      throw SessionHeld()
    }
    try Self.forget(session, output: output)
    return try removeHidden(session)
  }

  /// Counts the files that ``remove(_:)`` would remove.
  package func count(_ session: SessionID) throws -> RemovedSession {
    var count = RemovedSession()
    for name in try directories(of: session, where: { $0 == session.description }) {
      try count.add(directory: output + "/" + name)
    }
    return count
  }

  /// Returns the names of the directories that an interrupted removal has hidden, and of others.
  private func directories(of session: SessionID, where isOther: (String) -> Bool = { _ in false }) throws -> [String] {
    try Directory(opening: output, followingLinks: false).entries().filter {
      $0.kind == .directory && (isOther($0.name) || SessionDirectory.isHidden($0.name, of: session))
    }.map(\.name)
  }

  /// Removes what an output keeps of a hidden session elsewhere.
  static func forget(_ session: SessionID, output: String) throws {
    let markers = MarkerFiles(output: output)
    try markers.remove(ViewMarker(session: session))
    markers.tidyUp()
    try EndRequestFiles(output: output).remove(session)
    for view in ViewList.all { try view.forget(session, output: output) }
  }

  private func removeHidden(_ session: SessionID) throws -> RemovedSession {
    var removed = RemovedSession()
    for name in try directories(of: session) {
      try removed.add(directory: output + "/" + name)
      try DurableFile.removeTree(output + "/" + name)
    }
    try Directory(opening: output).sync()
    return removed
  }
}
