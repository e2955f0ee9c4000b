import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import Synchronization

/// Refuses batches that are far from the time of a session that was there before: a second try with other times, or another recording
/// under the same name. For all stores of a process.
package final class AppendGuard: Sendable {
  /// Maximum distance between a batch and its session, in milliseconds.
  package static let distanceMs: Int64 = 3_600_000

  private let output: String
  /// The times of the sessions before this process has added to them; nil for a new session.
  private let times = Mutex<[SessionID: ClosedRange<Int64>?]>([:])

  /// - Parameter output: as the user names it.
  package init(output: String) { self.output = output }

  /// - Throws: ``BadBatch``; ``DiskError``.
  func check(_ batch: Batch, in directory: SessionDirectory) throws {
    let times = try times.withLock { times in
      if let known = times[directory.session] { return known }
      let found = try directory.times()
      times[directory.session] = .some(found)
      return found
    }
    guard let times, let first = batch.frames.first else { return }
    // A later part of a folder may be far from the parts that are published.
    let shown = batch.folder?.shownMs ?? first.timeMs..<batch.endMs
    let distanceMs = max(times.lowerBound - shown.upperBound, shown.lowerBound - times.upperBound)
    guard distanceMs > Self.distanceMs else { return }
    let session = directory.session
    throw BadBatch(
      "append", batch.name,
      "its first picture is of \(shown.lowerBound.dateText), but session \(session) is of "
        + "\(times.lowerBound.dateText) to \(times.upperBound.dateText), \(distanceMs / Self.distanceMs) h away",
      advice:
        "to add to the session, give --append; to keep them apart, name another --session; to begin again, run: "
        + "encoder-worker delete \(session) --output \(output), and name another --session; "
        + "if the time is wrong, see --time-zone, --name-time and --start")
  }
}

extension SessionDirectory {
  /// Returns the time from the session's start to the end of its last segment, at a cost that does not depend on their number if
  /// its views are up to date; nil if there is no segment.
  fileprivate func times() throws -> ClosedRange<Int64>? {
    guard try DurableFile.isDirectory(path) else { return nil }
    let recent = SessionIndexCache.read(of: path)?.recent
    guard let start = try firstStart(), let last = try recent?.last ?? publishedStarts().last else { return nil }
    // A damaged manifest is reported where it is needed.
    return start...max(start, (try? segment(last).endMs) ?? last)
  }
}
