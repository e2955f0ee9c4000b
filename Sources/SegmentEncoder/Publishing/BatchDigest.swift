// What makes two batches the same: their session, their times, their images byte for byte and how these are to be
// shown; not the name they came under, nor how they were packed.

/// Computed while the frames are read, so that nothing is read for it alone.
struct BatchDigest {
  private let sum: SHA256
  private var previous: [UInt8] = []

  init(of batch: Batch) throws {
    sum = try SHA256()
    sum.update(
      "batch-digest/1\n\(batch.session)\n\(batch.intervalMs) \(batch.endMs) \(batch.capture.rawValue) \(batch.isFinal)\n"
    )
    sum.update(batch.metadata.bytes())
  }

  /// Takes the frames in the order of the batch.
  mutating func add(_ frame: Frame, _ images: [FileContents]) {
    sum.update("\(frame.timeMs) \(frame.source.utf8.count) \(frame.source)\n\(frame.look.canonicalText)\n")
    for image in images {
      switch image {
      case .bytes(let bytes) where bytes == previous: sum.update("as before\n")
      case .bytes(let bytes):
        sum.update("\(bytes.count) bytes\n")
        sum.update(bytes)
        previous = bytes
      case .refused(let reason): sum.update("refused: \(reason)\n")
      }
    }
  }

  consuming func finish() -> String { sum.finish() }

  /// The digest of a batch that is not being encoded.
  static func of(_ source: OpenBatch) throws -> String {
    var digest = try BatchDigest(of: source.batch)
    for frame in source.batch.frames { digest.add(frame, try source.images(of: frame)) }
    return digest.finish()
  }
}
