// The calls by which the list of sessions reads an output.

import FileSystem
import FrameBatches
import Sessions

/// An open output. Each call reads the file system; nothing is kept.
protocol ListedOutput: Sendable {
  /// Called before an answer from the output.
  func prepare() throws
  /// Stamps that change when a session or a tombstone comes or goes.
  func stamps() throws -> [FileStamp?]
  /// The names of all directories that may be sessions, in no order; without deleted ones.
  func sessions() throws -> [SessionID]
  /// The stamp of a session's index; nil if it has none.
  func stamp(of session: SessionID) throws -> FileStamp?
  func summary(of session: SessionID) throws -> SessionSummary
  /// Whether there may be sessions that are not known yet.
  var isPartial: Bool { get }
}

extension ListedOutput {
  func prepare() throws {}
  var isPartial: Bool { false }
}

struct ListedDirectory: ListedOutput {
  private let directory: Directory
  private let tombstones: SessionTombstones

  init(opening path: String) throws {
    directory = try Directory(opening: path)
    tombstones = SessionTombstones(output: path)
  }

  func stamps() throws -> [FileStamp?] { [directory.stamp(of: "."), try tombstones.stamp()] }

  func sessions() throws -> [SessionID] {
    let deleted = try tombstones.sessions()
    return try directory.directoryNames().compactMap { SessionID($0) }.filter { !deleted.contains($0) }
  }

  func stamp(of session: SessionID) throws -> FileStamp? {
    try directory.checkedStamp(of: "\(session)/\(IndexText.jsonFile)")
  }

  func summary(of session: SessionID) throws -> SessionSummary { try SessionSummary(session, in: directory) }
}
