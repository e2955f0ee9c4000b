import FileSystem
import FrameBatches
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Showing

/// An output in memory, which counts what is looked at, and whose clock ticks with each change.
final class CountingOutput: Sendable {
  struct Looks: Equatable { var (directories, indexes, summaries) = (0, 0, 0) }
  struct State {
    var sessions: [SessionID: (stamp: FileStamp, summary: SessionSummary)?] = [:]
    var ticks: Int64 = 1
    var stamp = FileStamp(inode: 1, size: 0, modified: 1)
    var nowMs = 1_000_000
    var looks = Looks()
    /// Sessions whose index the disk does not find, and those whose index it does not read.
    var (lost, unreadable): (Set<SessionID>, Set<SessionID>) = ([], [])
  }

  private let state = Mutex(State())
  private let stampsItself: Bool

  /// - Parameter stampsItself: whether the directory's time changes with the sessions in it.
  init(stampsItself: Bool = true) { self.stampsItself = stampsItself }

  func listing() -> SessionListing {
    SessionListing(clock: { self.state.withLock { $0.nowMs } }, open: { Opened(output: self) })
  }

  /// Adds a session, or changes it; with nil for its start it has no index.
  ///
  /// - Parameter aheadNs: by how much the clock of the host that writes the index is ahead.
  func put(_ name: String, startMs: Int64?, frames: Int = 1, aheadNs: Int64 = 0) throws {
    let session = try #require(SessionID(name))
    state.withLock { state in
      state.ticks += 1
      let stamp = FileStamp(inode: UInt64(state.ticks), size: 1, modified: state.ticks + aheadNs)
      if state.sessions[session] == nil, stampsItself { state.stamp = stamp }
      state.sessions[session] = .some(
        startMs.map { startMs in
          let summary = SessionSummary(
            session: session, startMs: startMs, endMs: startMs + 1, frames: frames, segments: 1, gaps: 0, bytes: 10,
            isComplete: false, error: nil)
          return (stamp, summary)
        })
    }
  }

  func remove(_ name: String) throws {
    let session = try #require(SessionID(name))
    state.withLock { state in
      state.ticks += 1
      state.sessions[session] = nil
      if stampsItself { state.stamp = FileStamp(inode: 1, size: 0, modified: state.ticks) }
    }
  }

  /// Makes the disk fail for one session, until the next call.
  func fail(lost: String? = nil, unreadable: String? = nil) {
    state.withLock { state in
      state.lost = Set([lost].compactMap { $0 }.compactMap { SessionID($0) })
      state.unreadable = Set([unreadable].compactMap { $0 }.compactMap { SessionID($0) })
    }
  }

  func pass(ms: Int) { state.withLock { $0.nowMs += ms } }

  /// Reads the list until the time of the directory is old.
  func settle(_ listing: SessionListing) throws {
    _ = try listing.page(behind: nil, limit: 1)
    pass(ms: 5_000)
    _ = try listing.page(behind: nil, limit: 1)
    _ = looks()
  }

  /// Returns the looks since the last call.
  func looks() -> Looks {
    state.withLock { state in
      defer { state.looks = Looks() }
      return state.looks
    }
  }

  private struct Opened: ListedOutput {
    let output: CountingOutput

    func stamps() -> [FileStamp?] { output.state.withLock { [$0.stamp, nil] } }

    func sessions() -> [SessionID] {
      output.state.withLock { state in
        state.looks.directories += 1
        return Array(state.sessions.keys)
      }
    }

    func stamp(of session: SessionID) throws -> FileStamp? {
      try output.state.withLock { state in
        state.looks.indexes += 1
        if state.lost.contains(session) { throw DiskError("stat", session.description, code: EIO) }
        return (state.sessions[session] ?? nil)?.stamp
      }
    }

    func summary(of session: SessionID) throws -> SessionSummary {
      try output.state.withLock { state in
        state.looks.summaries += 1
        if state.unreadable.contains(session) { throw DiskError("open", session.description, code: EMFILE) }
        return (state.sessions[session] ?? nil)?.summary
          ?? SessionSummary(session, error: "gone")
      }
    }
  }
}
