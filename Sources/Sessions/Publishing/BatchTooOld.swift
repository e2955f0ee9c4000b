// Batches and the first segments of a session that were removed. A batch that ended before the first segment that stays is refused;
// of one that goes on behind that instant, only the segments from there on are published.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia

/// A batch is older than all that its session keeps: nothing of it is published.
package struct BatchTooOld: ClassifiedError, Equatable {
  package var kind: Failure.Kind { .input }
  package let session: SessionID
  /// The start of the first segment that stays, in unix milliseconds.
  package let startMs: Int64

  package var description: String {
    "the batch is from before \(startMs.dateText), where session \(session) begins: earlier segments were removed by "
      + "prune --retain, run --retain or a limit of bytes"
  }
}

extension SessionRetention {
  /// Throws ``BatchTooOld`` if a batch ended before the first segment that stays.
  func requireNotTooOld(_ batch: Batch) throws(BatchTooOld) {
    if batch.endMs <= startMs { throw tooOld(batch) }
  }

  func tooOld(_ batch: Batch) -> BatchTooOld { BatchTooOld(session: batch.session, startMs: startMs) }

  /// Returns the manifests of a batch that may be published.
  ///
  /// - Throws: ``BatchTooOld`` if there are none.
  func publishable(_ manifests: [SegmentManifest], of batch: Batch) throws(BatchTooOld) -> [SegmentManifest] {
    let kept = manifests.filter { !removes($0.segment.startMs) }
    if kept.isEmpty { throw tooOld(batch) }
    return kept
  }

  /// Returns a warning about the segments of a batch that are not published.
  func warning(without count: Int) -> [String] {
    guard count > 0 else { return [] }
    return [
      "\(count) of its first segments are not published: they are from before \(startMs.dateText), where the session begins"
    ]
  }
}

extension [PublishedSegment] {
  /// Whether these, of one batch, are all segments of it that a session keeps: its first ones may have been removed.
  ///
  /// - Parameter retention: of the session; nil if none of its segments was removed. It is read only if the first parts are missing.
  func isWhole(of batch: Batch, _ retention: @autoclosure () throws -> SessionRetention?) rethrows -> Bool {
    guard let first, let last, first.part > 1, let retention = try retention() else { return isWhole }
    let isUnbroken = last.part == last.parts && zip(self, dropFirst()).allSatisfy { $0.part + 1 == $1.part }
    // No frame lies between the start of the session and the first of these: the parts before are older than both.
    let between = retention.startMs..<Swift.max(retention.startMs, first.startMs)
    return isUnbroken && retention.removes(batch.frames[0].timeMs)
      && !batch.frames.contains { between.contains($0.timeMs) }
  }
}
