// Reads a segment's file back into its samples. It takes only files as ``MP4File`` writes them.

extension MP4File {
  /// Reads a file that ``bytes`` has written.
  ///
  /// - Throws: ``SegmentMismatch`` for any other file.
  package init(reading bytes: [UInt8]) throws(SegmentMismatch) {
    let boxes = try BoxReader(bytes[...]).children("ftyp", "moov", "mdat")
    let tracks = try boxes[1].all("trak")
    guard tracks.count == 2 else { throw SegmentMismatch("not two tracks") }
    let tables = try (tracks[0].table, tracks[1].table)
    let description = try VideoDescription(entry: tables.0.first("stsd").skipping(8).children("avc1")[0])
    // The samples of the timing track come first.
    var rest = boxes[2].bytes
    let timing = try Self.samples(tables.1, from: &rest)
    let keys = try Set(tables.0.first("stss").numbers())
    let video = try Self.samples(tables.0, from: &rest).enumerated().map { index, sample in
      Sample(duration: sample.duration, data: sample.data, isKey: index > 0 && keys.contains(index + 1))
    }
    guard rest.isEmpty else { throw SegmentMismatch("bytes behind its samples") }
    self.init(
      width: description.width, height: description.height, parameterSets: description.parameterSets,
      colour: description.colour, video: video, timing: timing)
    guard self.bytes == bytes else { throw SegmentMismatch("it is not as it would be written again") }
  }

  /// Takes the samples of a track from the beginning of `rest`.
  private static func samples(
    _ tables: BoxReader, from rest: inout ArraySlice<UInt8>
  ) throws(SegmentMismatch) -> [Sample] {
    var samples: [Sample] = []
    for (size, duration) in try tables.sampleRows() {
      samples.append(try Sample(taking: size, from: &rest, lasting: duration))
    }
    return samples
  }
}

extension Sample {
  /// Takes the first bytes of `rest`.
  init(taking size: Int, from rest: inout ArraySlice<UInt8>, lasting duration: Int64, isKey: Bool = false)
    throws(SegmentMismatch)
  {
    guard size <= rest.count, (1...Int64(Int32.max)).contains(duration) else {
      throw SegmentMismatch("a sample without bytes or a duration")
    }
    self.init(duration: duration, data: Array(rest.prefix(size)), isKey: isKey)
    rest = rest.dropFirst(size)
  }
}

extension VideoDescription {
  /// Reads the content of an `avc1` or `avc3` that ``MP4Box`` has written.
  package init(entry: BoxReader, isInBand: Bool = false) throws(SegmentMismatch) {
    let further = try entry.skipping(78)
    guard let sets = ParameterSets(configuration: try further.first("avcC").bytes) else {
      throw SegmentMismatch("no parameter sets")
    }
    let colours = try further.all("colr")
    self.init(
      width: try entry.number(at: 24, bytes: 2), height: try entry.number(at: 26, bytes: 2), parameterSets: sets,
      colour: colours.isEmpty ? nil : try colours[0].colour, isInBand: isInBand)
  }
}

extension BoxReader {
  /// The sample tables of a track.
  package var table: BoxReader {
    get throws(SegmentMismatch) { try first("mdia").first("minf").first("stbl") }
  }

  /// Returns the size and the duration of each sample, from the sample tables of a track.
  package func sampleRows() throws(SegmentMismatch) -> [(size: Int, duration: Int64)] {
    let sizes = try first("stsz").numbers(at: 8)
    let runs = try first("stts").numbers(columns: 2)
    let counts = stride(from: 0, to: runs.count, by: 2)
    guard counts.reduce(0, { $0 + runs[$1] }) == sizes.count else {
      throw SegmentMismatch("another number of durations than of samples")
    }
    return Array(zip(sizes, counts.flatMap { repeatElement(Int64(runs[$0 + 1]), count: runs[$0]) }))
  }

  /// The content of `colr`, behind its type (ISO/IEC 14496-12, 12.1.5).
  fileprivate var colour: VideoColour {
    get throws(SegmentMismatch) {
      try VideoColour(
        primaries: number(at: 4, bytes: 2), transfer: number(at: 6, bytes: 2), matrix: number(at: 8, bytes: 2),
        isFullRange: number(at: 10, bytes: 1) & 0x80 != 0)
    }
  }
}
