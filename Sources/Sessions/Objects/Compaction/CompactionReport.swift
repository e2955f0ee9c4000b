import FileSystem
import FrameBatches

/// The work of a pass of compaction, done or planned.
package struct CompactionReport: Sendable {
  /// The segments of a session that have other packs now.
  package struct Compacted: Sendable, Equatable {
    package let session: SessionID
    package fileprivate(set) var (segments, bytes) = (0, 0)
    /// The number of objects that go later, and of the packs in their place.
    package fileprivate(set) var (objects, packs) = (0, 0)

    init(_ session: SessionID) { self.session = session }
  }

  package private(set) var sessions: [Compacted] = []
  package var failures: [any Error] = []
  /// Replaced objects of earlier passes whose time had come.
  package var removed = 0

  mutating func add(_ session: Compacted) { if session.segments > 0 { sessions.append(session) } }
}

extension CompactionReport.Compacted {
  mutating func add(_ group: CompactionPlan.Group, packs: Int) {
    segments += group.entries.count
    bytes += group.entries.reduce(0) { $0 + $1.bytes }
    objects += group.objects
    self.packs += packs
  }
}
