import Encoding
import FileSystem

extension ViewKinds {
  /// Preview thumbnails for players.
  package static let thumbnails = ViewKinds(rawValue: 4)
}

/// `thumbnails/`: pictures that players show over their time line.
struct ThumbnailView: SessionView {
  var kind: ViewKinds { .thumbnails }
  var directory: String? { ThumbnailPackage.directory }

  func canGrow(by new: NewSegments) -> Bool { new.areLast }

  func extend(_ update: ViewUpdate, by new: NewSegments) throws -> ViewOutcome? {
    try ThumbnailPackage(of: update.directory, temporary: update.temporary).extend(
      by: new.added, after: new.segment(new.lastMs), sessionStartMs: new.index.index.startMs) ? ViewOutcome() : nil
  }

  func removeFirst(_ update: ViewUpdate, _ removal: FirstSegments) throws -> Bool {
    try ThumbnailPackage(of: update.directory, temporary: update.temporary).removeFirst(
      before: removal.first.startMs, sessionStartMs: removal.removed[0].startMs)
  }

  func rebuild(
    _ update: ViewUpdate, from segments: [PublishedSegment], _ entries: [Directory.Entry]
  ) throws -> ViewOutcome {
    try ThumbnailPackage(of: update.directory, temporary: update.temporary).update(segments, progress: update.progress)
    return ViewOutcome()
  }
}
