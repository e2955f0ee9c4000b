// `OUTPUT/.deleted/SESSION.json`: the tombstones of an output. A tombstone is written once, whole and durable, before anything of
// the session is removed. Publishers look for it with the session locked, and the deletion takes that lock after it has written
// it: so a publication ends before the removal, or finds the tombstone.

import FileSystem
import FrameBatches
import Glibc
import JSON

/// The tombstones in an output directory.
package struct SessionTombstones: Sendable {
  private static let directory = ".deleted"
  private static let ending = ".json"

  private let output: String

  package init(output: String) { self.output = output }

  private var path: String { output + "/" + Self.directory }
  private func name(of session: SessionID) -> String { session.description + Self.ending }

  /// Opens the directory of the tombstones, by way of the output: over NFS only the opening of a directory shows what other
  /// hosts have made in it.
  ///
  /// - Returns: nil if there is none.
  private func open() throws(DiskError) -> Directory? {
    do throws(DiskError) {
      return try Directory(opening: Self.directory, in: Directory(opening: output))
    } catch {
      guard error.code == ENOENT else { throw error }
      return nil
    }
  }

  /// Returns the tombstone of a session; nil if it was not deleted.
  ///
  /// - Throws: ``DamagedOutput`` for a file that is no tombstone: the session may have been deleted.
  package func tombstone(of session: SessionID) throws -> Tombstone? {
    let name = name(of: session)
    do {
      switch try open()?.contents(of: name, limit: Tombstone.maximumBytes) {
      case nil: return nil
      case .refused(let reason): throw JSONError("\(reason)")
      case .bytes(let bytes): return try Tombstone(JSONParser.parse(bytes), of: session)
      }
    } catch let error as JSONError {
      throw DamagedOutput(path: path + "/" + name, cause: "no tombstone: \(error)")
    }
  }

  /// Throws ``SessionDeleted`` if the session was deleted.
  package func requireNone(of session: SessionID) throws {
    if let tombstone = try tombstone(of: session) { throw SessionDeleted(tombstone) }
  }

  /// Whether there may be any.
  package func mayExist() throws(DiskError) -> Bool { try open() != nil }

  /// Returns a stamp that changes with the set of tombstones; nil if there is none.
  package func stamp() throws(DiskError) -> FileStamp? { try open()?.stamp(of: ".") }

  /// Returns the deleted sessions.
  package func sessions() throws(DiskError) -> Set<SessionID> {
    let names = try open()?.entries().map(\.name) ?? []
    return Set(
      names.filter { $0.hasSuffix(Self.ending) }.compactMap { SessionID(String($0.dropLast(Self.ending.count))) })
  }

  /// Returns those of some sessions that have a tombstone, which is not read.
  package func sessions(among sessions: Set<SessionID>) throws(DiskError) -> Set<SessionID> {
    guard !sessions.isEmpty, let directory = try open() else { return [] }
    return sessions.filter { directory.stamp(of: name(of: $0)) != nil }
  }

  /// Writes a tombstone, durable when this returns. One that is there stays.
  ///
  /// - Returns: the tombstone that is there now.
  package func add(_ tombstone: Tombstone) throws -> Tombstone {
    try DurableFile.makeDirectories(path)
    try removeDrafts()
    while true {
      // Its writer may have died before it synced the directory.
      let there = try self.tombstone(of: tombstone.session)
      if let there {
        try Directory(opening: path).sync()
        return there
      }
      let draft = path + "/.\(WorkerID())"
      try DurableFile.create(draft, tombstone.bytes)
      defer { unlink(draft) }
      _ = try DurableFile.link(draft, to: path + "/" + name(of: tombstone.session))
    }
  }

  /// Removes a tombstone, durably.
  ///
  /// - Returns: whether there was one.
  package func remove(of session: SessionID) throws(DiskError) -> Bool {
    guard let directory = try open() else { return false }
    let isThere = unlinkat(directory.descriptor, name(of: session), 0) == 0
    if !isThere && errno != ENOENT { throw DiskError("unlink", path + "/" + name(of: session)) }
    try directory.sync()
    return isThere
  }

  /// Removes drafts of dead processes of this host.
  private func removeDrafts() throws(DiskError) {
    for entry in try open()?.entries() ?? []
    where entry.name.hasPrefix(".") && WorkerID.isOnThisHost(entry.name) && WorkerID.isProcessGone(entry.name) {
      unlink(path + "/" + entry.name)
    }
  }
}
