// Reads a finished segment back from its boxes and tables, as a player does, and compares every sample byte by byte. A segment
// with any difference is never published. Tests and `verify` use libavformat for that: loading it takes longer than a segment.

import FileSystem
import ISOMedia

enum SegmentReadback {
  /// - Throws: ``SegmentMismatch`` naming the first difference.
  static func compare(_ bytes: [UInt8], with file: MP4File) throws(SegmentMismatch) {
    let movie = try BoxReader(bytes[...]).children("ftyp", "moov", "mdat")[1]
    let boxes = try movie.children("mvhd", "trak", "trak")
    let duration = file.video.reduce(0) { $0 + Int($1.duration) }
    try require(try boxes[0].duration(), duration, "the duration")
    for (track, isVideo) in [(boxes[1], true), (boxes[2], false)] {
      let parts = try track.children("tkhd", "mdia")
      // In `tkhd`, the track's number stands in the place of the timescale.
      try require(try parts[0].duration(at: 20, flags: isVideo ? 3 : 2), duration, "a track's duration")
      let media = try parts[1].children("mdhd", "hdlr", "minf")
      try require(try media[0].duration(), duration, "a track's duration")
      guard try media[1].skipping(8).bytes.starts(with: (isVideo ? "vide" : "sbtl").utf8) else {
        throw SegmentMismatch("a track has another kind")
      }
      let table = try media[2].children(isVideo ? "vmhd" : "nmhd", "dinf", "stbl")[2]
      guard isVideo else {
        try compare(try table.children("stsd", "stts", "stsc", "stsz", "stco"), in: bytes, with: file.timing)
        continue
      }
      var tables = try table.children("stsd", "stts", "stss", "stsc", "stsz", "stco")
      let keys = file.video.indices.filter { $0 == 0 || file.video[$0].isKey }.map { $0 + 1 }
      guard try tables.remove(at: 2).numbers() == keys else { throw SegmentMismatch("its key frames differ") }
      try compare(tables, in: bytes, with: file.video)
      // Version, flags and count come first; then the fields of a video's entry (ISO/IEC 14496-12, 12.1.3).
      let entry = try tables[0].skipping(8).children("avc1")[0]
      try require(try entry.number(at: 24), file.width << 16 | file.height, "the size of its pictures")
      let extensions = try entry.skipping(78)
      let boxes =
        try file.colour == nil
        ? extensions.children("avcC", "pasp") : extensions.children("avcC", "colr", "pasp")
      guard boxes[0].bytes.elementsEqual(file.parameterSets.configuration) else {
        throw SegmentMismatch("its parameter sets differ")
      }
    }
  }

  /// - Parameter tables: `stsd`, `stts`, `stsc`, `stsz` and `stco`.
  private static func compare(
    _ tables: [BoxReader], in bytes: [UInt8], with samples: [Sample]
  ) throws(SegmentMismatch) {
    // Rows of a number of samples and their duration.
    let runs = try tables[1].numbers(columns: 2)
    let counts = stride(from: 0, to: runs.count, by: 2)
    try require(counts.reduce(0) { $0 + runs[$1] }, samples.count, "the number of durations")
    let durations = counts.flatMap { repeatElement(runs[$0 + 1], count: runs[$0]) }
    try require(try tables[3].number(at: 4), 0, "the size of all samples")
    let sizes = try tables[3].numbers(at: 8)
    try require(sizes.count, samples.count, "the number of samples")
    let offsets = try tables[4].numbers()
    guard try tables[2].numbers(columns: 3) == [1, samples.count, 1], offsets.count == 1 else {
      throw SegmentMismatch("its samples are not contiguous")
    }
    var offset = offsets[0]
    for (sample, (duration, size)) in zip(samples, zip(durations, sizes)) {
      try require(duration, Int(sample.duration), "a sample's duration")
      try require(size, sample.data.count, "a sample's size")
      guard offset + size <= bytes.count, haveEqualBytes(bytes[offset..<offset + size], sample.data) else {
        throw SegmentMismatch("a sample's bytes differ")
      }
      offset += size
    }
  }

  private static func require(_ found: Int, _ wanted: Int, _ what: String) throws(SegmentMismatch) {
    guard found == wanted else { throw SegmentMismatch("\(what) is \(found) instead of \(wanted)") }
  }
}
