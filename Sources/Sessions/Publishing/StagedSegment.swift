// What is coded and waits to be published.

/// A segment on disk, not yet under its name.
package struct StagedSegment {
  /// Where its bytes lie.
  let file: String
  /// At least one.
  let shots: [Shot]
  let codec: String
  let codedWidth: Int
  let codedHeight: Int
  let size: Int
  let sha256: String
  let samples: Int
  let refused: [RefusedFrame]
  /// By capture, in unix milliseconds.
  let notes: [Int64: String]

  /// - Throws: ``SegmentTooLarge``, ``DiskError``.
  init(_ segment: EncodedSegment, in staging: Staging, refused: [RefusedFrame], notes: [Int64: String]) throws {
    guard segment.bytes.count <= SessionDirectory.mostVideoBytes else {
      throw SegmentTooLarge(bytes: segment.bytes.count)
    }
    shots = segment.shots
    codec = segment.codec
    codedWidth = segment.codedWidth
    codedHeight = segment.codedHeight
    size = segment.bytes.count
    sha256 = SHA256.hex(of: segment.bytes)
    samples = segment.samples
    self.refused = refused
    self.notes = notes
    file = try staging.write(segment.bytes)
  }

  var startMs: Int64 { shots[0].startMs }
  var endMs: Int64 { shots[shots.count - 1].endMs }
}

/// A segment is larger than readers accept. It is not published.
struct SegmentTooLarge: Error, CustomStringConvertible {
  static let advice = "use a lower --quality, or smaller pictures"

  let bytes: Int

  var description: String {
    "a segment of \(bytes) bytes, more than the limit of \(SessionDirectory.mostVideoBytes)"
  }
}
