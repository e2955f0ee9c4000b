// `OUTPUT/.pruned~SESSION~<worker>`: a session that is being removed. No session can have such a name.

import FileSystem
import FrameBatches
import Glibc

extension SessionDirectory {
  private static let hidden = ".pruned~"

  /// Renames the session out of sight, durably. Call it with the session locked: a worker that waits for the lock finds that the
  /// directory is another, or none, and begins anew.
  ///
  /// - Returns: the new path, to be removed by the caller.
  package func hide() throws(DiskError) -> String {
    let output = DurableFile.parentDirectory(of: path)
    let target = output + "/\(Self.hidden)\(session)~\(WorkerID())"
    try check("rename", path) { rename(path, target) }
    try Directory(opening: output).sync()
    return target
  }

  /// Whether a directory in an output is a session that is being removed.
  ///
  /// - Parameter session: nil for any.
  package static func isHidden(_ name: String, of session: SessionID? = nil) -> Bool {
    name.hasPrefix(session.map { "\(hidden)\($0)~" } ?? hidden)
  }
}
