import Encoding
import FileSystem
import FrameBatches
import Glibc

extension ViewKinds {
  /// An event for Sentry beside each manifest.
  package static let sentry = ViewKinds(rawValue: 1)
}

/// The events for Sentry: all segments have one, or none.
struct SentryView: SessionView {
  var kind: ViewKinds { .sentry }

  /// Returns the starts of the segments that have an event.
  private func starts(in entries: [Directory.Entry]) -> Set<Int64> {
    Set(entries.filter { $0.kind == .file }.compactMap { SegmentName.start(ofEvent: $0.name) })
  }

  func isPresent(in session: SessionDirectory, _ entries: [Directory.Entry]) -> Bool { !starts(in: entries).isEmpty }

  func extend(_ update: ViewUpdate, by new: NewSegments) throws -> ViewOutcome? {
    let removed = try update.directory.retention()?.segments ?? 0
    let firstOrdinal = removed + new.index.index.count - new.added.count
    for (index, segment) in new.added.enumerated() {
      try update.write(
        SegmentName.event(segment.startMs), SentryEvent(segment, ordinal: firstOrdinal + index).text)
    }
    return ViewOutcome()
  }

  func rebuild(
    _ update: ViewUpdate, from segments: [PublishedSegment], _ entries: [Directory.Entry]
  ) throws -> ViewOutcome {
    let present = starts(in: entries)
    let removed = try update.directory.retention()?.segments ?? 0
    for (name, text) in SentryEvent.files(of: segments, behind: removed) { try update.write(name, text) }
    // Remove events of segments that were rolled back. Do this last: existing events tell the next worker that events are wanted.
    try remove(present.subtracting(segments.map(\.startMs)), from: update.directory)
    return ViewOutcome(
      warnings: warnings(of: segments.filter { !present.contains($0.startMs) }, in: update.directory.session))
  }

  func remove(from session: SessionDirectory, _ entries: [Directory.Entry]) throws {
    try remove(starts(in: entries), from: session)
  }

  private func remove(_ starts: Set<Int64>, from session: SessionDirectory) throws {
    for start in starts {
      let file = session.path + "/" + SegmentName.event(start)
      try check("unlink", file) { unlink(file) }
    }
  }

  func warnings(of new: [PublishedSegment], in session: SessionID) -> [String] {
    new.compactMap { SentryEvent.warning(of: $0, in: session) }
  }

  func names(of segments: [PublishedSegment]) -> [String] { segments.map { SegmentName.event($0.startMs) } }

  func files(
    of segments: [PublishedSegment], behind removed: Int, in session: SessionID, among names: [String]
  ) -> [(name: String, bytes: [UInt8])] {
    Set(names).isDisjoint(with: self.names(of: segments)) ? [] : SentryEvent.files(of: segments, behind: removed)
  }
}
