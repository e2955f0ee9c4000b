// Reads a finished segment back from its boxes and tables, as a player does, and compares every sample byte by byte. A
// segment that does not read as it was meant is never published. That stock readers see the same is for tests and for
// `verify`: what they need to be loaded takes longer than a segment.

enum SegmentCheck {
  /// - Throws: ``SegmentMismatch`` naming the first difference.
  static func compare(_ bytes: [UInt8], with file: MP4File) throws(SegmentMismatch) {
    let top = try MP4Reading(bytes[...]).children()
    guard top.map(\.type) == ["ftyp", "moov", "mdat"] else { throw SegmentMismatch("its boxes are others") }
    let movie = try top[1].body.children()
    let tracks = movie.filter { $0.type == "trak" }.map(\.body)
    try require(tracks.count, 2, "the number of tracks")
    let duration = file.video.reduce(0) { $0 + $1.duration }
    try require(try movie.only("mvhd").times().duration, duration, "the duration")
    for (track, (samples, keys)) in zip(tracks, [(file.video, [1]), (file.timing, nil)]) {
      try require(try track.child("tkhd").times(isTrack: true).duration, duration, "a track's duration")
      let times = try track.child("mdia").child("mdhd").times()
      try require(times.timescale, MediaTime.timescale, "a track's timescale")
      try require(times.duration, duration, "a track's duration")
      let table = try track.child("mdia").child("minf").child("stbl").children()
      try compare(table, in: bytes, with: samples)
      guard try table.first(where: { $0.type == "stss" })?.body.numbers() == keys else {
        throw SegmentMismatch("its key frames are others")
      }
    }
    guard try configuration(of: tracks[0]) == file.parameterSets else {
      throw SegmentMismatch("its parameter sets are others")
    }
  }

  private static func compare(
    _ table: [MP4Reading.Child], in bytes: [UInt8], with samples: [Sample]
  ) throws(SegmentMismatch) {
    // Rows of a number of samples and their duration.
    let runs = try table.only("stts").numbers(columns: 2)
    let counts = stride(from: 0, to: runs.count, by: 2)
    try require(counts.reduce(0) { $0 + runs[$1] }, samples.count, "the number of durations")
    let durations = counts.flatMap { repeatElement(runs[$0 + 1], count: runs[$0]) }
    let sizeTable = try table.only("stsz")
    try require(try sizeTable.number(at: 4), 0, "the size of all samples")
    let sizes = try sizeTable.skipping(4).numbers()
    try require(sizes.count, samples.count, "the number of samples")
    let chunks = try table.only("stco").numbers()
    guard try table.only("stsc").numbers(columns: 3) == [1, samples.count, 1], chunks.count == 1 else {
      throw SegmentMismatch("its samples do not lie one behind the other")
    }
    var offset = chunks[0]
    for (sample, (duration, size)) in zip(samples, zip(durations, sizes)) {
      try require(duration, Int(sample.duration), "a sample's duration")
      try require(size, sample.data.count, "a sample's size")
      guard offset + size <= bytes.count, bytes[offset..<offset + size].elementsEqual(sample.data) else {
        throw SegmentMismatch("a sample's bytes are others")
      }
      offset += size
    }
  }

  /// What a decoder is set up with.
  private static func configuration(of track: MP4Reading) throws(SegmentMismatch) -> ParameterSets? {
    let description = try track.child("mdia").child("minf").child("stbl").child("stsd")
    // Behind version, flags and count; and then the fields of a video's entry (ISO/IEC 14496-12, 12.1.3).
    let entry = try description.skipping(8).child("avc1")
    let record = try entry.skipping(78).child("avcC")
    return record.bytes.withUnsafeBufferPointer { ParameterSets(configuration: $0) }
  }

  private static func require<Number: BinaryInteger>(
    _ found: Number, _ wanted: Number, _ what: String
  ) throws(SegmentMismatch) {
    guard found == wanted else { throw SegmentMismatch("\(what) is \(found) instead of \(wanted)") }
  }
}

struct SegmentMismatch: Error, CustomStringConvertible {
  let description: String

  init(_ what: String) { description = "the written segment does not read back as it was meant: \(what)" }
}

/// The body of a box, or a whole file (ISO/IEC 14496-12, 4.2).
private struct MP4Reading {
  typealias Child = (type: String, body: MP4Reading)

  let bytes: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// The boxes that fill it.
  func children() throws(SegmentMismatch) -> [Child] {
    var found: [Child] = []
    var rest = bytes
    while !rest.isEmpty {
      let size = try MP4Reading(rest).number(at: 0)
      guard size >= 8, size <= rest.count else { throw SegmentMismatch("a box of \(size) bytes") }
      let body = rest.prefix(size).dropFirst(4)
      found.append((String(decoding: body.prefix(4), as: UTF8.self), MP4Reading(body.dropFirst(4))))
      rest = rest.dropFirst(size)
    }
    return found
  }

  func child(_ type: String) throws(SegmentMismatch) -> MP4Reading { try children().only(type) }

  func skipping(_ count: Int) throws(SegmentMismatch) -> MP4Reading {
    guard bytes.count >= count else { throw SegmentMismatch("a box that is too small") }
    return MP4Reading(bytes.dropFirst(count))
  }

  /// Big-endian, of so many bytes.
  func number(at offset: Int, bytes count: Int = 4) throws(SegmentMismatch) -> Int {
    guard offset >= 0, offset + count <= bytes.count else { throw SegmentMismatch("a box that is too small") }
    return (bytes.startIndex + offset..<bytes.startIndex + offset + count).reduce(0) { $0 << 8 | Int(bytes[$1]) }
  }

  /// A table, row by row, behind version, flags and the number of its rows, which fill it.
  func numbers(columns: Int = 1) throws(SegmentMismatch) -> [Int] {
    let count = try number(at: 4) * columns
    guard bytes.count == 8 + count * 4 else { throw SegmentMismatch("a table of another size") }
    var numbers: [Int] = []
    for index in 0..<count { numbers.append(try number(at: 8 + index * 4)) }
    return numbers
  }

  /// Of a header with creation and modification before them; a track's has its number for the timescale, and a gap.
  func times(isTrack: Bool = false) throws(SegmentMismatch) -> (timescale: Int64, duration: Int64) {
    let isLong = try number(at: 0, bytes: 1) == 1
    let scale = isLong ? 20 : 12
    let duration = try number(at: scale + (isTrack ? 8 : 4), bytes: isLong ? 8 : 4)
    return (Int64(try number(at: scale)), Int64(duration))
  }
}

extension [MP4Reading.Child] {
  /// The only one of that type.
  fileprivate func only(_ type: String) throws(SegmentMismatch) -> MP4Reading {
    let found = filter { $0.type == type }
    guard found.count == 1 else { throw SegmentMismatch("\(found.count) boxes \(type)") }
    return found[0].body
  }
}
