import Encoding
import FileSystem
import FrameBatches
import Glibc

/// A segment that is not yet under its name.
package struct StagedSegment {
  package let video: StagedVideo
  /// At least one.
  package let holds: [FrameHold]
  package let codec: String
  package let codedWidth: Int
  package let codedHeight: Int
  package let size: Int
  package let sha256: String
  package let samples: Int
  package let refused: [RefusedFrame]
  /// By capture, in unix milliseconds.
  package let notes: [Int64: String]
  /// The pointer events; nil if there is none.
  private(set) var touches: SegmentTouches?
  /// The pages that are opened in the segment, in the order of their times.
  private(set) var pages: [PageView] = []
  /// See ``SegmentLabels``.
  private(set) var labels: [Label] = []

  /// - Throws: ``SegmentTooLarge``, ``DiskError``.
  package init(_ segment: EncodedSegment, in staging: Staging, refused: [RefusedFrame], notes: [Int64: String]) throws {
    try self.init(segment, refused: refused, notes: notes) { .file(try staging.write($0)) }
  }

  /// - Parameter keep: keeps the bytes until the segment is published.
  /// - Throws: ``SegmentTooLarge``, and what `keep` throws.
  package init(
    _ segment: EncodedSegment, refused: [RefusedFrame], notes: [Int64: String],
    keep: ([UInt8]) throws -> StagedVideo
  ) throws {
    guard segment.bytes.count <= SegmentManifest.maximumVideoBytes else {
      throw SegmentTooLarge(bytes: segment.bytes.count)
    }
    holds = segment.holds
    codec = segment.codec
    codedWidth = segment.codedWidth
    codedHeight = segment.codedHeight
    size = segment.bytes.count
    sha256 = SHA256.hex(of: segment.bytes)
    samples = segment.samples
    self.refused = refused
    self.notes = notes
    video = try keep(segment.bytes)
  }

  /// Returns the segment with these pointer events, pages and labels.
  package func with(_ touches: SegmentTouches?, _ pages: [PageView] = [], _ labels: [Label] = []) -> StagedSegment {
    var segment = self
    (segment.touches, segment.pages, segment.labels) = (touches, pages, labels)
    return segment
  }

  package var startMs: Int64 { holds[0].startMs }
  package var endMs: Int64 { holds[holds.count - 1].endMs }
}

/// A segment is larger than readers accept. It is not published.
package struct SegmentTooLarge: ClassifiedError {
  package var kind: Failure.Kind { .input }
  package static let advice = "use a lower --quality, or smaller pictures"

  package let bytes: Int

  package var description: String {
    "a segment of \(bytes) bytes, more than the limit of \(SegmentManifest.maximumVideoBytes)"
  }
}
