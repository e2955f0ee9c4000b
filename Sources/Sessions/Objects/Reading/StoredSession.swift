// A session of an object store, copied into a directory for the time of a command. All readers work on it as on any session's
// directory. The index of the store decides which segments are there; each object is checked against it.

import Encoding
import FileSystem
import FrameBatches
import Glibc

/// A copy of a session of an object store: `OUTPUT/SESSION`, with all that the store has, or with the segments of a part.
package struct StoredSession {
  /// The handling of an object that is missing, or not the one that the index lists.
  package enum Damage: Sendable {
    /// The copy fails.
    case refused
    /// The object is copied as it is, so that a reader of the copy reports it.
    case kept
  }

  /// The path of the copy.
  package let path: String
  let index: StoredIndex
  let entries: [SessionEntry]
  let objects: StoredObjects

  /// Copies the manifests, and the labels that came later.
  ///
  /// - Parameters:
  ///   - output: an existing private directory, for this copy only.
  ///   - part: the part of the session that is read.
  ///   - progress: called with the number of requests done and of all; an error that it throws ends the work.
  /// - Throws: ``BadSession`` for a session that is unknown, deleted or damaged; an error of the store; ``DiskError``.
  package init(
    _ id: SessionID, of store: StoredSessions, in output: String, part: StoredPart, damage: Damage = .refused,
    progress: (Int, Int) throws -> Void
  ) throws {
    let session = store.session(id)
    index = try StoredIndex(of: session)
    entries = try index.entries(of: part, progress: progress)
    // Readers resolve it, too: their errors have this path.
    path = DurableFile.resolved(output) + "/" + id.description
    objects = StoredObjects(session: session, path: path, damage: damage)
    try DurableFile.makeDirectories(path)
    for (name, bytes) in index.records { try write(name, bytes) }
    let groups = PackPlace.groups(of: entries, \.manifest)
    _ = try ParallelFetch.map(groups, objects.fetchManifests) { try progress($0, groups.count) }
    try fetchLabels()
  }

  /// Writes `session.json` and `session.ffconcat` from the index. Call it for a whole session.
  package func writeIndex() throws {
    for (name, bytes) in index.views(of: entries) { try write(name, bytes) }
  }

  /// Copies the videos of segments. Each is checked against its size and SHA-256.
  ///
  /// - Parameters:
  ///   - starts: those of the segments; nil for all that were copied.
  ///   - progress: called with the number of requests done and of all; an error that it throws ends the work.
  /// - Throws: ``BadSession`` for an object that is missing, or another one than the index lists; ``Failure`` if the disk lacks the room.
  package func fetchVideos(of starts: Set<Int64>?, progress: (Int, Int) throws -> Void) throws {
    let wanted = entries.filter { starts?.contains($0.startMs) ?? true }
    try requireRoom(for: wanted.reduce(0) { $0 + $1.bytes })
    let groups = PackPlace.groups(of: wanted, \.fragment)
    _ = try ParallelFetch.map(groups, objects.fetchVideos) { try progress($0, groups.count) }
  }

  /// - Throws: ``Failure`` if the disk of the copy has less free bytes.
  func requireRoom(for bytes: Int) throws {
    let free = try DurableFile.freeBytes(at: path)
    guard bytes > free else { return }
    throw Failure(
      .environment, "copy", index.session.place,
      "it needs \(bytes) bytes in \(DurableFile.parentDirectory(of: path)), and \(free) are free there",
      advice: "free some, or name another directory with TMPDIR")
  }

  func write(_ name: String, _ bytes: [UInt8]) throws(DiskError) {
    try DurableFile.create(path + "/" + name, bytes, isDurable: false)
  }

  /// Returns an error of a reader with the names of the store's objects in place of those of the copy.
  package func renamed(_ error: any Error) -> any Error {
    switch error {
    case let bad as BadSession: BadSession(renamed(bad.file), bad.cause, advice: bad.advice)
    case let damage as DamagedOutput: BadSession(renamed(damage.path), damage.cause, advice: StoredIndex.advice)
    default: error
    }
  }

  /// Returns the name of an object for the path of its copy. Other names stay.
  func renamed(_ file: String) -> String {
    file == path || file.hasPrefix(path + "/") ? index.session.place + file.dropFirst(path.count) : file
  }
}
