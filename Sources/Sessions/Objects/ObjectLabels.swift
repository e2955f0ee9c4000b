// Labels for a session of an object store that is published: an object for each segment, and a number in the head, so that readers know
// that there are some, and when there are more. The number is not 0 before the first object is there, and counts up behind the last. So after
// a crash at any line a second run shows all of them.

import Encoding
import FileSystem
import FrameBatches
import JSON

extension ObjectStore {
  package func add(_ addition: LabelAddition, cancellation: Cancellation) throws -> Receipt {
    let session = session(addition.session)
    return try session.removingObjectsIfDeleted {
      guard let published = try session.published() else { throw SessionUnpublished(addition) }
      var placing = LabelPlacing(addition, startMs: published.index.startMs, retention: published.retention)
      guard let first = placing.labels.first, let last = placing.labels.last else { return placing.receipt }
      if published.labels == 0 { try session.noteLabels(cancellation) }
      let startMs = published.index.startMs
      let range = max(first.timeMs, startMs)..<max(last.timeMs, startMs) + 1
      let entries = try session.entries(near: range, in: published)
      for (entry, labels) in zip(entries, placing.labels.divided(at: entries.map(\.startMs))) where !labels.isEmpty {
        try session.place(labels, in: entry, &placing, cancellation)
      }
      try session.noteLabels(cancellation)
      return placing.receipt
    }
  }
}

extension ObjectSession {
  /// Moves labels that came before their pictures from the segment before into new segments, behind their publication. A crash in
  /// between leaves such labels in both.
  ///
  /// - Parameters:
  ///   - new: the starts of the new segments, in order.
  ///   - published: the session with them.
  func moveLabels(into new: [Int64], of published: Published) throws {
    guard published.labels > 0, let firstMs = new.first,
      let before = try entries(near: firstMs..<firstMs + 1, in: published).first(where: { $0.startMs < firstMs })
    else { return }
    let key = key(SegmentName.labels(before.startMs))
    guard let object = try objects.get(key, limit: AddedLabels.maximumBytes),
      let there = try? AddedLabels(object.bytes)
    else { return }
    let (staying, moving) = there.divided(at: new)
    guard !moving.isEmpty else { return }
    for file in moving {
      // Labels of this very moment may be there.
      let known = try objects.get(self.key(SegmentName.labels(file.startMs)), limit: AddedLabels.maximumBytes)
      let labels = try known.map { try AddedLabels($0.bytes) }
      guard
        let all = AddedLabels.adding(file.labels, to: labels, manifest: [], of: id, startMs: file.startMs).file
      else { continue }
      let condition = PutCondition.unchanged(since: known?.tag)
      // Else another worker has written it meanwhile: the labels stay where they are.
      guard
        try objects.put(self.key(SegmentName.labels(file.startMs)), .bytes(all.bytes), .json, when: condition) != nil
      else { return }
    }
    if let staying {
      _ = try objects.put(key, .bytes(staying.bytes), .json, when: .matching(object.tag))
    } else {
      try objects.delete(key, object.tag)
    }
    try noteLabels(.never)
  }

  /// Writes the object of a segment with its labels, unless it has them.
  fileprivate func place(
    _ labels: [Label], in entry: SessionEntry, _ placing: inout LabelPlacing, _ cancellation: Cancellation
  ) throws {
    let (segment, json) = try manifest(entry)
    let key = key(SegmentName.labels(entry.startMs))
    placing = try SegmentWriteConflict.retrying(cancellation) { [placing] in
      let object = try objects.get(key, limit: AddedLabels.maximumBytes)
      // An object that is none of ours is replaced.
      let there = try? object.map { (object) throws(JSONError) in try AddedLabels(object.bytes) }
      var next = placing
      guard let file = next.place(labels, in: segment, SegmentLabels.labels(in: json), there) else { return next }
      let condition = PutCondition.unchanged(since: object?.tag)
      return try objects.put(key, .bytes(file.bytes), .json, when: condition).map { _ in next }
    }
  }

  /// Counts in the head that labels came.
  fileprivate func noteLabels(_ cancellation: Cancellation) throws {
    try change(cancellation) { published, _ in
      published.labels += 1
      return true
    }
  }
}
