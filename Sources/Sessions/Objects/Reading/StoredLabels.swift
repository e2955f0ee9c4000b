// The labels of a stored session that came after their pictures, for readers.

import Encoding
import FrameBatches

extension ObjectSession {
  /// Returns the starts of the segments with an object of a kind.
  ///
  /// - Parameters:
  ///   - start: returns the start in the name of such an object.
  ///   - fromMs: earlier segments may be left out, in unix milliseconds.
  ///   - segments: the number of segments in the index.
  func starts(_ start: (String) -> Int64?, fromMs: Int64, segments: Int) throws -> Set<Int64> {
    let first = fromMs > 0 ? key(SegmentName.video(fromMs - 1)) : nil
    var walk = ListWalk(key("segment-"), of: objects, name: name, after: first)
    var (starts, others): (Set<Int64>, Int) = ([], 0)
    // A segment has five objects.
    let most = 8 * segments + 10_000
    while let page = try walk.next() {
      for object in page {
        if let startMs = start(String(object.key.dropFirst(key("").count))) { starts.insert(startMs) }
      }
      others += page.count
      guard others <= most else {
        throw BadSession(place, "more than \(most) objects", advice: "remove those that are not ours")
      }
    }
    return starts
  }
}

extension StoredSession {
  /// Copies the labels that came after their pictures.
  func fetchLabels() throws {
    guard index.published.labels > 0, let firstMs = entries.first?.startMs else { return }
    let session = index.session
    let there = try session.starts(
      SegmentName.start(ofLabels:), fromMs: firstMs, segments: index.published.index.count)
    let wanted = entries.map(\.startMs).filter(there.contains).map(SegmentName.labels)
    let files = try ParallelFetch.map(
      wanted, { try session.objects.get(session.key($0), limit: AddedLabels.maximumBytes)?.bytes }, progress: { _ in })
    for (name, bytes) in zip(wanted, files) {
      if let bytes { try write(name, bytes) }
    }
  }
}
