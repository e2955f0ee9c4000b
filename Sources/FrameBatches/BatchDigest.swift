// The digest of a batch covers its session, their times, their images byte for byte and how these are to be
// shown; not the name they came under, nor how they were packed.

import FileSystem
import Glibc

/// Computed while the frames are read, so that nothing is read for it alone.
package struct BatchDigest {
  private let session: SessionID
  private var sum = SHA256()
  private var previous: (bytes: [UInt8], digest: String)?

  package init(of batch: Batch) {
    session = batch.session
    sum.update(
      "batch-digest/2\n\(batch.session)\n\(batch.intervalMs) \(batch.endMs) \(batch.capture.rawValue) \(batch.isFinal)\n"
    )
    sum.update(batch.metadata.bytes())
  }

  /// Takes the frames in the order of the batch.
  ///
  /// - Returns: what frames of this session have in common that look the same: a digest of their images and of how they are
  ///   to be shown.
  @discardableResult
  package mutating func add(_ frame: Frame, _ images: [FileContents]) -> String {
    var look = frame.look.canonicalText + "\n"
    for image in images {
      switch image {
      case .bytes(let bytes): look += "\(digest(of: bytes))\n"
      case .refused(let reason): look += "refused: \(reason)\n"
      }
    }
    sum.update("\(frame.timeMs) \(frame.source.utf8.count) \(frame.source)\n\(look)")
    return SHA256.hex(of: Array("\(session)\n\(look)".utf8))
  }

  private mutating func digest(of bytes: [UInt8]) -> String {
    if let previous, isEqual(previous.bytes, bytes) { return previous.digest }
    let digest = SHA256.hex(of: bytes)
    previous = (bytes, digest)
    return digest
  }

  /// The result of `==`, which compares byte by byte.
  private func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    one.count == other.count
      && one.withUnsafeBytes { one in
        other.withUnsafeBytes { other in
          one.isEmpty || memcmp(one.baseAddress!, other.baseAddress!, one.count) == 0
        }
      }
  }

  package mutating func finish() -> String { sum.finish() }

  /// The digest of a batch that is not being encoded.
  ///
  /// - Parameter isCancelled: asked before each frame.
  package static func of(_ source: BatchReader, isCancelled: () -> Bool = { false }) throws -> String {
    var digest = BatchDigest(of: source.batch)
    for frame in source.batch.frames {
      if isCancelled() { throw Cancelled() }
      digest.add(frame, try source.images(of: frame))
    }
    return digest.finish()
  }
}
