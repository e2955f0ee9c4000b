@testable import Encoding
@testable import ISOMedia
@testable import Sessions

/// Reads what lies in an object store: a fragment of a pack, a whole pack, and the file of a segment.
enum PackFuzzing {
  static func read(_ bytes: [UInt8]) {
    if let fragment = try? MP4PackFragment(reading: bytes) {
      require(fragment.video.allSatisfy { $0.duration > 0 }, "samples with durations")
    }
    if let file = try? PackedSegment.file(of: bytes) { require(!file.isEmpty, "a file with bytes") }
    if let file = try? MP4File(reading: bytes) { require(file.bytes == bytes, "the same bytes after writing") }
    if let segments = try? Pack.segments(in: bytes, startMs: 1_767_859_512_340, path: "pack") {
      let whole = bytes.indices
      require(
        segments.allSatisfy {
          whole.contains($0.place.fragment.lowerBound) && $0.place.fragment.upperBound <= bytes.count
            && $0.place.manifest.upperBound <= bytes.count
        }, "places within the pack")
    }
  }
}
