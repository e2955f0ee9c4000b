// The events for Sentry of a session in an object store: one beside each manifest, as in a directory.

import Encoding
import FileSystem
import FrameBatches

struct ObjectEvents {
  /// Segments that need not be fetched, by their starts.
  private let known: [Int64: PublishedSegment]

  init(knowing known: [PublishedSegment]) {
    self.known = Dictionary(uniqueKeysWithValues: known.map { ($0.startMs, $0) })
  }

  /// Writes the events that the session lacks. Call it before the segments are listed in `session.json`.
  ///
  /// - Parameter lastMs: the start of the last segment that `session.json` lists; nil to write all events.
  func write(of published: ObjectSession.Published, in session: ObjectSession, behind lastMs: Int64?) throws {
    let entries: [SessionEntry]
    // Sessions have events since the first worker that kept them.
    if let lastMs, try session.objects.head(session.key(SegmentName.event(lastMs))) != nil {
      entries = try session.entries(near: lastMs..<Int64.max, in: published).filter { $0.startMs > lastMs }
    } else {
      entries = try session.whole(published).entries
    }
    try write(entries, of: published, in: session)
  }

  /// Writes the events of the segments that were just published.
  func writeKnown(of published: ObjectSession.Published, in session: ObjectSession) throws {
    guard let firstMs = known.keys.min() else { return }
    // A late segment changes the number of those behind it.
    let near = try session.entries(near: firstMs..<Int64.max, in: published)
    try write(near.filter { $0.startMs >= firstMs }, of: published, in: session)
  }

  /// - Parameter entries: the last of the session.
  private func write(
    _ entries: [SessionEntry], of published: ObjectSession.Published, in session: ObjectSession
  ) throws {
    let first = (published.retention?.segments ?? 0) + published.index.count - entries.count
    for (index, entry) in entries.enumerated() {
      let segment = try known[entry.startMs] ?? session.segment(entry)
      let event = SentryEvent(segment, ordinal: first + index)
      _ = try session.objects.put(
        session.key(SegmentName.event(entry.startMs)), .bytes(event.text), .json, when: .always)
    }
  }

  /// Returns warnings about new segments.
  func warnings(of new: [PublishedSegment], in session: SessionID) -> [String] {
    SentryView().warnings(of: new, in: session)
  }
}
