import FileSystem
import FrameBatches
import WorkQueues

/// The batcher of one session whose pictures are handed over one by one, in `ingest/SESSION/`, with those that wait.
package struct HandedOverPictures {
  package let batcher: Batcher
  /// Locked, so that one process has the session.
  package let directory: Directory
  private let session: SessionID
  private let capture: Batch.Capture

  /// - Returns: nil if another process has the session.
  package init?(
    of session: SessionID, in spool: Spool, _ rules: BatchRules, capture: Batch.Capture, limits: Limits
  ) throws {
    let path = spool.pictures + "/\(session)"
    try DurableFile.makeDirectories(path)
    directory = try Directory(opening: path)
    guard try directory.lock() else { return nil }
    try EarlierPictures(in: directory, spool).adopt()
    batcher = try Batcher(
      path, into: spool, from: NoSource(), rules, remembers: ReceivedPicture.remembered, limits: limits)
    (self.session, self.capture) = (session, capture)
    for picture in batcher.held.received { try give(picture) }
  }

  /// Gives the batcher a picture that is held.
  package func give(_ picture: ReceivedPicture) throws(BadBatch) {
    try batcher.add(picture.picture(capture), to: "", OneSession(session.description))
  }
}
