// A session of a directory, put into a store as a whole: one write of the index publishes all of its segments. A call that was stopped
// before that leaves objects that no index lists, and the next one takes them.

import Encoding
import FileSystem
import FrameBatches

extension ObjectStore {
  /// Publishes a session that nobody changes meanwhile.
  ///
  /// - Parameters:
  ///   - directory: of the session, whose name it has in the store, too.
  ///   - cancellation: asked between segments, and last before the publication.
  /// - Returns: whether it was published before.
  /// - Throws: ``Failure`` if another session of this name is there; ``SessionDeleted``; ``SegmentWriteConflict``; ``Cancelled``.
  package func upload(_ directory: SessionDirectory, cancellation: Cancellation) throws -> Bool {
    let session = session(directory.session)
    let sources = try directory.publishedStarts().map { start in
      let (path, segment) = (directory.path + "/" + SegmentName.manifest(start), try directory.segment(start))
      return SegmentSource(segment, .file(directory.path + "/" + segment.file)) {
        guard let text = try DurableFile.contents(of: path, limit: SegmentManifest.maximumBytes) else {
          throw DamagedOutput(path: path, cause: "missing")
        }
        return text
      }
    }
    guard !sources.isEmpty else {
      throw Failure(.input, "upload", directory.path, "no segment", advice: "name a published session")
    }
    let end = try directory.recordedEnd()
    return try session.removingObjectsIfDeleted {
      var attempt = 0
      while true {
        SegmentWriteConflict.pause(attempt)
        attempt += 1
        let head = try session.head()
        if let published = head.published {
          let there = try session.whole(published).entries.map(\.unpacked)
          guard there == sources.map(\.segment.entry) else { throw isTaken(session) }
          try updateViews(of: session, after: nil)
          return true
        }
        let placed = try place(sources, in: session, behind: nil, cancellation)
        // Segments of a dead worker, which were made of something else.
        guard placed.allSatisfy({ !$0.isAdopted }) else { throw isTaken(session) }
        try cancellation.check()
        if let next = try session.publish(placed.map(\.entry), after: head, end: end) {
          try updateViews(of: session, after: next)
          return false
        }
      }
    }
  }

  private func isTaken(_ session: ObjectSession) -> Failure {
    Failure(.input, "publish", session.place, "another session of this name is there", advice: "name another one")
  }
}
