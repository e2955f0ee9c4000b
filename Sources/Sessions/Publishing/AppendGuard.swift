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

  private let place: String
  /// The times of the sessions before this process has added to them; nil for a new session.
  private let times = Mutex<[SessionID: ClosedRange<Int64>?]>([:])

  /// - Parameter place: the options of `delete` that name the place of the sessions.
  package init(place: String) { self.place = place }

  /// - Parameter reading: returns the time of the session now; nil for a new one.
  /// - Throws: ``BadBatch``; an error of `reading`.
  func check(_ batch: Batch, reading: () throws -> ClosedRange<Int64>?) throws {
    let session = batch.session
    let times = try times.withLock { times in
      if let known = times[session] { return known }
      let found = try reading()
      times[session] = .some(found)
      return found
    }
    guard let times, let first = batch.frames.first else { return }
    // A later part of a folder may be far from the parts that are published.
    let shown = batch.folder?.shownMs ?? first.timeMs..<batch.endMs
    let distanceMs = max(times.lowerBound - shown.upperBound, shown.lowerBound - times.upperBound)
    guard distanceMs > Self.distanceMs else { return }
    throw BadBatch(
      "append", batch.name,
      "its first picture is of \(shown.lowerBound.dateText), but session \(session) is of "
        + "\(times.lowerBound.dateText) to \(times.upperBound.dateText), \(distanceMs / Self.distanceMs) h away",
      advice:
        "to add to the session, give --append; to keep them apart, name another --session; to begin again, run: "
        + "encoder-worker delete \(session) \(place), and name another --session; "
        + "if the time is wrong, see --time-zone, --name-time and --start")
  }
}

extension SessionDirectory {
  /// Returns the time from the session's start to the end of its last segment, at a cost that does not depend on their number if
  /// its views are up to date; nil if there is no segment.
  func times() throws -> ClosedRange<Int64>? {
    guard try DurableFile.isDirectory(path) else { return nil }
    let recent = SessionIndexCache.read(of: path)?.recent
    guard let start = try firstStart(), let last = try recent?.last ?? publishedStarts().last else { return nil }
    // A damaged manifest is reported where it is needed.
    return start...max(start, (try? segment(last).endMs) ?? last)
  }
}
