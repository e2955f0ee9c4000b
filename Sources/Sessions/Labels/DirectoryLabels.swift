// Labels for a session in a directory that is published: a file for each segment, each replaced as a whole. After a crash at any line, the
// batch is still owed, and a second run adds what is missing.

import Encoding
import FileSystem
import FrameBatches

extension DirectoryStore {
  package func add(_ addition: LabelAddition, cancellation: Cancellation) throws -> Receipt {
    let directory = SessionDirectory(output: staging.output, session: addition.session)
    try SessionTombstones(output: staging.output).requireNone(of: addition.session)
    guard let lock = try directory.lockExisting(cancellation) else { throw SessionUnpublished(addition) }
    let receipt = try add(addition, to: directory)
    lock.release()
    return receipt
  }

  /// Call it with the session locked.
  private func add(_ addition: LabelAddition, to directory: SessionDirectory) throws -> Receipt {
    // Views have none of them, so the cache stays valid.
    let cache = index.cache(of: directory)
    let starts = try directory.publishedStarts()
    guard let first = starts.first else { throw SessionUnpublished(addition) }
    var placing = LabelPlacing(addition, startMs: first, retention: try directory.retention())
    for (startMs, labels) in zip(starts, placing.labels.divided(at: starts)) where !labels.isEmpty {
      let (segment, json) = try directory.manifest(startMs)
      let file = placing.place(
        labels, in: segment, SegmentLabels.labels(in: json), try directory.addedLabels(of: startMs))
      guard let file else { continue }
      try directory.write(file, temporary: staging.temporaryFile())
    }
    if placing.added > 0 {
      try Directory(opening: directory.path).sync()
      cache?.write(to: directory.path)
    }
    return placing.receipt
  }
}

extension SessionDirectory {
  /// Moves labels that came before their pictures from the segment before into new segments. Call it with the session locked, behind their
  /// publication. A crash in between leaves such labels in both.
  ///
  /// - Parameters:
  ///   - new: the starts of the new segments, in order.
  ///   - recent: the starts of the latest segments, in order, or of more; nil to list all.
  ///   - temporary: a file name to write under, on the same file system.
  func moveLabels(into new: [Int64], recent: [Int64]?, temporary: () throws -> String) throws {
    guard let firstMs = new.first, let before = try (recent ?? publishedStarts()).last(where: { $0 < firstMs }),
      let there = try addedLabels(of: before)
    else { return }
    let (staying, moving) = there.divided(at: new)
    guard !moving.isEmpty else { return }
    for file in moving {
      // One that is there is of an earlier run of this batch.
      let known = try addedLabels(of: file.startMs)
      let all = AddedLabels.adding(file.labels, to: known, manifest: [], of: session, startMs: file.startMs).file
      try all.map { try write($0, temporary: temporary()) }
    }
    try Directory(opening: path).sync()
    if let staying {
      try write(staying, temporary: temporary())
    } else {
      try removeFile(SegmentName.labels(before))
    }
  }

  fileprivate func write(_ file: AddedLabels, temporary: String) throws {
    try DurableFile.replace(path + "/" + SegmentName.labels(file.startMs), file.bytes, temporary: temporary)
  }
}

/// The labels of a batch on their way into the segments of a session.
struct LabelPlacing {
  private let addition: LabelAddition
  /// In the order of their times.
  let labels: [Label]
  private(set) var added = 0
  private var (leftOut, warnings): (Int, [String])
  private var segments: [PublishedSegment] = []

  /// - Parameters:
  ///   - startMs: of the session.
  ///   - retention: the record of its removed segments.
  init(_ addition: LabelAddition, startMs: Int64, retention: SessionRetention?) {
    self.addition = addition
    let (all, warnings) = addition.labels(from: startMs)
    labels = retention.map { retention in all.filter { !retention.removes($0.timeMs) } } ?? all
    (leftOut, self.warnings) = (0, warnings)
    if labels.count < all.count {
      self.warnings.append("\(count(all.count - labels.count, "label")) of removed time: left out")
    }
  }

  /// Returns the file of a segment with its labels; nil if none is new.
  ///
  /// - Parameters:
  ///   - labels: those of its time.
  ///   - manifest: the labels of its manifest.
  ///   - there: those that came later.
  mutating func place(
    _ labels: [Label], in segment: PublishedSegment, _ manifest: [Label], _ there: AddedLabels?
  ) -> AddedLabels? {
    let placed = AddedLabels.adding(
      labels, to: there, manifest: manifest, of: addition.session, startMs: segment.startMs)
    leftOut += placed.leftOut
    guard let file = placed.file else { return nil }
    added += placed.added
    segments.append(segment)
    return file
  }

  var receipt: Receipt {
    let limit = "\(count(leftOut, "label")) beyond the limits of a segment, which are those of a batch: left out"
    return Receipt(addition, labels: added, in: segments, warnings: warnings + (leftOut > 0 ? [limit] : []))
  }
}
