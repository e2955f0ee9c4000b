// Reads a finished segment back with libavformat's demuxer, which knows nothing of how it was made, and compares every
// sample. A segment that a stock reader does not see as we meant it is never published.

import CFFmpeg

enum SegmentCheck {
  /// - Throws: ``SegmentMismatch`` naming the first difference.
  static func compare(_ bytes: [UInt8], with file: MP4File) throws {
    try bytes.withUnsafeBytes { buffer in
      let reader = try MP4Reader(buffer)
      try require(Int64(reader.trackCount), 2, "the number of tracks")
      try require(reader.durationUs, file.video.reduce(0) { $0 + $1.duration } * 100 / 9, "the duration")
      var expected = [SampleList(file.video), SampleList(file.timing)]
      while let sample = try reader.next() {
        guard expected.indices.contains(sample.track) else { throw SegmentMismatch("a third track") }
        guard let wanted = expected[sample.track].popFirst() else { throw SegmentMismatch("one sample too many") }
        try require(sample.pts, wanted.pts, "a sample's start")
        try require(sample.dts, wanted.pts, "a sample's decoding time")
        try require(sample.duration, wanted.duration, "a sample's duration")
        try require(Int64(sample.bytes.count), Int64(wanted.size), "a sample's size")
        if sample.track == 0 { try require(sample.isKey ? 1 : 0, wanted.pts == 0 ? 1 : 0, "the key frame") }
      }
      guard expected.allSatisfy(\.isEmpty) else { throw SegmentMismatch("a sample is missing") }
    }
  }

  private static func require(_ found: Int64, _ wanted: Int64, _ what: String) throws(SegmentMismatch) {
    guard found == wanted else { throw SegmentMismatch("\(what) is \(found) instead of \(wanted)") }
  }
}

struct SegmentMismatch: Error, CustomStringConvertible {
  let description: String

  init(_ what: String) { description = "the written segment does not read back as it was meant: \(what)" }
}

/// The samples a track should have, first to last.
private struct SampleList {
  private var now: Int64 = 0
  private var rest: ArraySlice<Sample>

  init(_ samples: [Sample]) { rest = samples[...] }

  var isEmpty: Bool { rest.isEmpty }

  mutating func popFirst() -> (pts: Int64, duration: Int64, size: Int)? {
    guard let sample = rest.popFirst() else { return nil }
    defer { now += sample.duration }
    return (now, sample.duration, sample.data.count)
  }
}
