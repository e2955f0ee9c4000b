// A session of a directory, put into a store: one write of the index publishes all segments that the store lacks. A call that was
// stopped before that leaves objects that no index lists, and the next one takes them.

import Encoding
import FileSystem
import FrameBatches

struct SessionUpload {
  /// The segments that were published.
  struct Result: Sendable, Equatable {
    var segments = 0
    /// The size of their videos.
    var bytes = 0
  }

  let directory: SessionDirectory
  let store: ObjectStore
  /// Whether the store may have this very session only, and no part of it.
  var isWhole = false
  /// Asked between segments, and last before the publication.
  let cancellation: Cancellation

  private var session: ObjectSession { store.session(directory.session) }

  /// Publishes segments.
  ///
  /// - Parameters:
  ///   - starts: of the segments, in order, at least one.
  ///   - end: the record of the session's end; nil if it goes on.
  /// - Throws: ``Failure`` if other segments are there for the same time; ``SessionDeleted``; ``SegmentWriteConflict``; ``Cancelled``.
  func publish(_ starts: [Int64], end: SessionEnd?) throws -> Result {
    let sources = try starts.map(directory.source)
    return try session.removingObjectsIfDeleted {
      var attempt = 0
      while true {
        SegmentWriteConflict.pause(attempt)
        attempt += 1
        try cancellation.check()
        let head = try session.head()
        let missing = try missing(of: sources, in: head.published)
        guard !missing.isEmpty else {
          if let end, head.end == nil { _ = try session.recordEnd(end, cancellation: cancellation) }
          _ = try addLabels(of: starts)
          try placeExports()
          try store.updateViews(of: session, after: nil)
          return Result()
        }
        let placed = try store.place(missing, in: session, behind: head.published, cancellation)
        // Segments of a dead process, which were made of something else.
        guard !isWhole || placed.allSatisfy({ !$0.isAdopted }) else { throw isTaken() }
        try check(placed)
        for source in missing { try placeWords(of: source.segment) }
        try cancellation.check()
        guard let next = try session.publish(placed.map(\.entry), after: head, end: end) else { continue }
        try placeExports()
        try store.updateViews(of: session, after: addLabels(of: starts) ? nil : next)
        return Result(segments: placed.count, bytes: placed.reduce(0) { $0 + $1.segment.bytes })
      }
    }
  }

  /// Returns the segments that the store lacks, and that it may take.
  private func missing(of sources: [SegmentSource], in published: ObjectSession.Published?) throws -> [SegmentSource] {
    guard let published, let first = sources.first?.segment else { return sources }
    if isWhole {
      let there = try session.whole(published).entries.map(\.unpacked)
      guard there == sources.map(\.segment.entry) else { throw isTaken() }
    }
    let endMs = sources.map(\.segment.endMs).max() ?? first.endMs
    let there = try session.entries(near: first.startMs..<endMs, in: published)
    let known = Dictionary(uniqueKeysWithValues: there.map { ($0.startMs, $0) })
    var missing: [SegmentSource] = []
    for source in sources {
      let entry = source.segment.entry
      if let other = known[entry.startMs] {
        // The same batch may have been encoded with other settings.
        guard other.unpacked == entry || other.batch == entry.batch else { throw isTaken() }
      } else if published.retention?.removes(entry.startMs) != true {
        missing.append(source)
      }
    }
    try requireRoom(for: missing.map(\.segment), among: there)
    return missing
  }

  /// Throws if other segments are there for the time of new ones.
  ///
  /// - Parameters:
  ///   - new: in order.
  ///   - there: in order.
  private func requireRoom(for new: [PublishedSegment], among there: [SessionEntry]) throws {
    var rest = there[...]
    for segment in new {
      rest = rest.drop { $0.endMs <= segment.startMs }
      for entry in rest.prefix(while: { $0.startMs < segment.endMs }) {
        do {
          try segment.requireNoConflict(with: [session.segment(entry)])
        } catch is BadBatch {
          throw isTaken()
        }
      }
    }
  }

  /// Reads new segments back, and compares their digests.
  private func check(_ placed: [PlacedSegment]) throws {
    let scratch = Staging.Scratch(in: store.staging)
    defer { scratch.remove() }
    try scratch.make()
    let objects = StoredObjects(session: session, path: scratch.path, damage: .refused)
    for group in PackPlace.groups(of: placed.map(\.entry), \.manifest) {
      try cancellation.check()
      try objects.fetchManifests(of: group)
    }
    for group in PackPlace.groups(of: placed.map(\.entry), \.fragment) {
      try cancellation.check()
      try objects.fetchVideos(of: group)
      for entry in group { try DurableFile.removeTree(scratch.path + "/" + entry.file) }
    }
  }

  /// Writes the words that were read in a segment's pictures. They come before its publication: the next call has nothing to publish.
  private func placeWords(of segment: PublishedSegment) throws {
    let name = SegmentName.text(segment.startMs)
    guard let words = try directory.bytes(of: name, limit: SegmentText.maximumBytes) else { return }
    _ = try session.objects.put(session.key(name), .bytes(words), .json, when: .always)
  }

  /// Adds the labels that came after their pictures. The store leaves out those that it has.
  ///
  /// - Returns: whether there are any.
  private func addLabels(of starts: [Int64]) throws -> Bool {
    let opened = try Directory(opening: directory.path, followingLinks: false)
    let labels = try starts.flatMap { try directory.addedLabels(of: $0, in: opened)?.labels ?? [] }.inOrder
    guard !labels.isEmpty else { return false }
    _ = try store.add(LabelAddition(labels, to: directory.session, name: directory.path), cancellation: cancellation)
    return true
  }

  /// Writes the files that were made at the session's end.
  private func placeExports() throws {
    for name in try directory.exports() {
      _ = try session.objects.put(
        session.exportKey(name), .file(directory.exportPath(name)), ObjectKind(ofExport: name), when: .always)
    }
  }

  private func isTaken() -> Failure {
    Failure(
      .input, "publish", session.place, "another session of this name is there", advice: "name another one")
  }
}

extension SessionDirectory {
  /// Returns the files of the segment that starts then.
  func source(_ startMs: Int64) throws -> SegmentSource {
    let (manifest, segment) = (path + "/" + SegmentName.manifest(startMs), try segment(startMs))
    return SegmentSource(segment, .file(path + "/" + segment.file)) {
      guard let text = try DurableFile.contents(of: manifest, limit: SegmentManifest.maximumBytes) else {
        throw DamagedOutput(path: manifest, cause: "missing")
      }
      return text
    }
  }
}

extension ObjectStore {
  /// Publishes a session of a directory, which nobody changes meanwhile, as a whole.
  ///
  /// - Parameters:
  ///   - directory: of the session, whose name it has in the store, too.
  ///   - cancellation: asked between segments, and last before the publication.
  /// - Returns: whether it was published before.
  /// - Throws: ``Failure`` if another session of this name is there; ``SessionDeleted``; ``SegmentWriteConflict``; ``Cancelled``.
  package func upload(_ directory: SessionDirectory, cancellation: Cancellation) throws -> Bool {
    let starts = try directory.publishedStarts()
    guard !starts.isEmpty else {
      throw Failure(.input, "upload", directory.path, "no segment", advice: "name a published session")
    }
    let upload = SessionUpload(directory: directory, store: self, isWhole: true, cancellation: cancellation)
    return try upload.publish(starts, end: directory.recordedEnd()).segments == 0
  }
}
