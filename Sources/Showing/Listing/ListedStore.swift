import FileSystem
import FrameBatches
import Sessions

/// The sessions of an object store, for the list. Only ``prepare()`` sends requests.
struct ListedStore: ListedOutput {
  let heads: StoredHeads

  func prepare() throws { try heads.prepare() }

  var isPartial: Bool { heads.isPartial }

  func stamps() throws -> [FileStamp?] { [Self.stamp(heads.revision)] }

  func sessions() throws -> [SessionID] { heads.sessions }

  func stamp(of session: SessionID) throws -> FileStamp? { heads.content(of: session).map { Self.stamp($0.revision) } }

  /// The times order the changes.
  private static func stamp(_ revision: Int) -> FileStamp {
    FileStamp(inode: UInt64(revision), size: 0, modified: Int64(revision))
  }

  func summary(of session: SessionID) throws -> SessionSummary {
    switch heads.content(of: session)?.content {
    case .published(let totals):
      SessionSummary(
        session: session, startMs: totals.startMs, endMs: totals.endMs, frames: totals.frames,
        segments: totals.segments, gaps: totals.gaps, bytes: totals.bytes, isComplete: totals.isComplete, error: nil,
        labels: totals.labels)
    case .damaged(let cause): SessionSummary(session, error: cause)
    case .deleted, .nothing, nil: SessionSummary(session, error: "it was removed a moment ago")
    }
  }
}
