// The digest of a batch covers its session, its interval, end, capture mode, final flag, metadata and pointer events. It also covers
// each frame's source name, capture time, composition and image bytes. It covers neither the name of the batch nor its packing.
//
// A folder that grows may have a picture that is still being written. So its digest leaves out the frames that cannot be decoded: they
// may have other bytes in the next run.

import FileSystem
import Glibc

/// A batch's digest, computed while the encoder reads the frames: no file is read a second time for it.
package struct BatchDigest {
  private var frames: FrameDigests
  private var sum = SHA256()
  /// The texts of all frames of a folder, with their instants; nil for another batch.
  private var texts: [(timeMs: Int64, text: String)]?

  package init(of batch: Batch) {
    self.init(of: batch, intervalMs: batch.intervalMs, endMs: batch.endMs, isFinal: batch.isFinal)
    if batch.folder != nil { texts = [] }
  }

  /// The digest of a batch of the same frames with other facts.
  package init(of batch: Batch, intervalMs: Int64, endMs: Int64, isFinal: Bool) {
    frames = FrameDigests(of: batch.session)
    sum.update(
      "batch-digest/2\n\(batch.session)\n\(intervalMs) \(endMs) \(batch.capture.rawValue) \(isFinal)\n"
    )
    sum.update(batch.metadata.bytes())
    // Digests of batches without pointer events are those of versions that did not read them.
    sum.update(batch.pointers.canonicalText)
  }

  /// Adds a frame. The caller adds the frames in the order of the batch.
  ///
  /// - Returns: the frame's identity: a digest of the session, the images and the composition. Frames of a session with equal
  ///   identities look the same.
  @discardableResult
  package mutating func add(_ frame: Frame, _ images: [FrameFile]) -> String {
    let (text, identity) = frames.digest(of: frame, images)
    add(text)
    texts?.append((frame.timeMs, text))
    return identity
  }

  /// Returns the digest of a folder without the frames of some instants, and with another end.
  package func leavingOut(_ instants: Set<Int64>, of batch: Batch, endMs: Int64) -> BatchDigest {
    var other = BatchDigest(of: batch, intervalMs: batch.intervalMs, endMs: endMs, isFinal: batch.isFinal)
    for frame in texts ?? [] where !instants.contains(frame.timeMs) { other.add(frame.text) }
    return other
  }

  /// Adds a frame by its text.
  package mutating func add(_ text: String) { sum.update(text) }

  package mutating func finish() -> String { sum.finish() }

  /// Returns the digest of a batch that is not being encoded.
  ///
  /// - Parameter cancellation: asked before each frame.
  package static func of(_ source: BatchReader, cancellation: Cancellation = .never) throws -> String {
    var digest = BatchDigest(of: source.batch)
    for frame in source.batch.frames {
      try cancellation.check()
      digest.add(frame, try source.images(of: frame))
    }
    return digest.finish()
  }
}

/// The digests of frames of one session.
package struct FrameDigests {
  private let session: SessionID
  private var previous: (bytes: [UInt8], digest: String)?

  package init(of session: SessionID) { self.session = session }

  /// - Returns: the frame's text for a batch's digest, and its identity.
  package mutating func digest(of frame: Frame, _ images: [FrameFile]) -> (text: String, identity: String) {
    var look = frame.look.canonicalText + "\n"
    for image in images {
      switch image {
      case .bytes(let bytes): look += "\(digest(of: bytes))\n"
      case .refused(let refusal): look += "refused: \(refusal.text)\n"
      }
    }
    return (
      "\(frame.timeMs) \(frame.source.utf8.count) \(frame.source)\n\(look)",
      SHA256.hex(of: Array("\(session)\n\(look)".utf8))
    )
  }

  private mutating func digest(of bytes: [UInt8]) -> String {
    if let previous, haveEqualBytes(previous.bytes[...], bytes) { return previous.digest }
    let digest = SHA256.hex(of: bytes)
    previous = (bytes, digest)
    return digest
  }
}
