import FileSystem
import Glibc

/// Refused events in a spool: `notifications/KEY.json`.
package struct SpoolNotifications: NotificationStore {
  private let directory: String

  /// - Parameter directory: `notifications` of the spool; made when it is needed.
  package init(in directory: String) { self.directory = directory }

  package var place: String { directory }

  package func add(_ notification: RefusedNotification) throws {
    try DurableFile.makeDirectories(directory)
    // Each thread of each process has a name of its own; `keys` ignores a draft of a process that died.
    let draft = directory + "/.\(WorkerID()).\(notification.key).part"
    try DurableFile.replace(path(notification.key), notification.bytes, temporary: draft)
    try Directory(opening: directory).sync()
  }

  package func keys() throws -> [String] {
    try Directory.entries(ifAt: directory).compactMap { Self.key(ofFile: $0.name) }.sorted()
  }

  package func find(_ key: String) throws -> RefusedNotification? {
    guard try DurableFile.isThere(path(key)) else { return nil }
    return try DurableFile.contents(of: path(key), limit: RefusedNotification.maximumBytes)
      .flatMap { RefusedNotification($0, named: key) }
  }

  package func remove(_ key: String) throws {
    try check("unlink", path(key)) { unlink(path(key)) == 0 || errno == ENOENT ? 0 : -1 }
    try Directory(opening: directory).sync()
  }

  private func path(_ key: String) -> String { directory + "/" + Self.file(key) }
}
