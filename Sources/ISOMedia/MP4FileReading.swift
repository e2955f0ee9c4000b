// Reads a segment's file back into its samples. It takes only files as ``MP4File`` writes them.

extension MP4File {
  /// Reads a file that ``bytes`` has written.
  ///
  /// - Throws: ``SegmentMismatch`` for any other file.
  package init(reading bytes: [UInt8]) throws(SegmentMismatch) {
    let boxes = try BoxReader(bytes[...]).children("ftyp", "moov", "mdat")
    let tracks = try boxes[1].all("trak")
    guard tracks.count == 2 else { throw SegmentMismatch("not two tracks") }
    let tables = try (Self.tables(tracks[0]), Self.tables(tracks[1]))
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

  private static func tables(_ track: BoxReader) throws(SegmentMismatch) -> BoxReader {
    try track.first("mdia").first("minf").first("stbl")
  }

  /// Takes the samples of a track from the beginning of `rest`.
  private static func samples(
    _ tables: BoxReader, from rest: inout ArraySlice<UInt8>
  ) throws(SegmentMismatch) -> [Sample] {
    let sizes = try tables.first("stsz").numbers(at: 8)
    let runs = try tables.first("stts").numbers(columns: 2)
    var durations: [Int64] = []
    for run in stride(from: 0, to: runs.count, by: 2) {
      guard runs[run] <= sizes.count - durations.count else { throw SegmentMismatch("more durations than samples") }
      durations += repeatElement(Int64(runs[run + 1]), count: runs[run])
    }
    guard durations.count == sizes.count else { throw SegmentMismatch("fewer durations than samples") }
    var samples: [Sample] = []
    for (size, duration) in zip(sizes, durations) {
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
  init(entry: BoxReader, isInBand: Bool = false) throws(SegmentMismatch) {
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
  /// The content of `colr`, behind its type (ISO/IEC 14496-12, 12.1.5).
  package var colour: VideoColour {
    get throws(SegmentMismatch) {
      try VideoColour(
        primaries: number(at: 4, bytes: 2), transfer: number(at: 6, bytes: 2), matrix: number(at: 8, bytes: 2),
        isFullRange: number(at: 10, bytes: 1) & 0x80 != 0)
    }
  }
}
