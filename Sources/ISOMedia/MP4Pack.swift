// Segments as one film in fragments (ISO/IEC 14496-12, 8.8): `ftyp moov (moof mdat)…`, with the video and the timing track. Each
// fragment is one segment. A box of our own in its `moof` tells how the segment's own file was, so that it can be made again.

/// A fragment of a pack.
package struct MP4PackFragment {
  /// The type of our box (ISO/IEC 14496-12, 11.1).
  private static let type: [UInt8] = Array("segment-encoder1".utf8)

  /// How the segment's own file describes its video, but for ``VideoDescription/isInBand``: that is whether key frames of the fragment
  /// carry parameter sets.
  package let source: VideoDescription
  /// In the fragment.
  package let video: [Sample]
  package let timing: [Sample]
  /// The indices of samples of ``video`` that the segment's own file lacks.
  package let added: [Int]
  /// How the segment's own file ends, if the fragment lasts for another time, until the next one begins.
  package let ownEnd: OwnEnd?

  /// Durations in ticks.
  package struct OwnEnd: Equatable {
    /// Of the last sample of the timing track.
    package let timing: Int64
    /// Of the last sample that the fragment has, too, and of the repeats behind it.
    package let video: [Int64]

    package init(timing: Int64, video: [Int64]) { (self.timing, self.video) = (timing, video) }
  }

  package init(
    source: VideoDescription, video: [Sample], timing: [Sample], added: [Int], ownEnd: OwnEnd? = nil
  ) {
    (self.source, self.video, self.timing, self.added) = (source, video, timing, added)
    self.ownEnd = ownEnd
  }

  /// The beginning of a pack: what a player needs before any fragment.
  ///
  /// - Parameter description: of the samples in the fragments.
  package static func initialization(_ description: VideoDescription) -> [UInt8] {
    MP4Movie.fileType("ftyp", ["iso6", "cmfc", "mp41"])
      + MP4Movie.bytes(
        of: [MP4Track(.video, descriptions: [description]), MP4Track(.timing)], isFragmented: true)
  }

  /// A box at the end of a pack, which players skip.
  package static func closing(_ content: [UInt8]) -> [UInt8] {
    var file = MP4Box()
    file.box("uuid") { box in
      box.append(type)
      box.append(content)
    }
    return file.bytes
  }

  /// The bytes before the content in ``closing(_:)``.
  package static let closingHead = 24

  /// - Parameters:
  ///   - number: rises from fragment to fragment.
  ///   - start: of the first sample, in ticks.
  package func bytes(number: UInt32, start: Int64) -> [UInt8] {
    // The size of `moof` does not depend on the offsets in it.
    let size = movie(number: number, start: start, offset: 0).count
    var file = MP4Box()
    file.append(movie(number: number, start: start, offset: size + 8))
    file.box("mdat") { box in
      for sample in timing { box.append(sample.data) }
      for sample in video { box.append(sample.data) }
    }
    return file.bytes
  }

  /// Returns the bytes that a player needs for the first picture alone, from the start of the fragment on.
  ///
  /// - Parameter size: of the fragment.
  package func keyFrameBytes(of size: Int) -> Int { size - video.dropFirst().reduce(0) { $0 + $1.data.count } }

  /// - Parameter offset: from the start of `moof` to the first sample.
  private func movie(number: UInt32, start: Int64, offset: Int) -> [UInt8] {
    let videoOffset = offset + timing.reduce(0) { $0 + $1.data.count }
    let hasFurtherKeys = video.dropFirst().contains { $0.isKey }
    var file = MP4Box()
    file.box("moof") { moof in
      moof.fullBox("mfhd") { $0.u32(number) }
      moof.box("traf") { track in
        track.fragmentHead(1, flags: Self.dependent, start)
        track.fullBox("trun", flags: hasFurtherKeys ? 0x701 : 0x305) { box in
          box.u32(UInt32(video.count), UInt32(videoOffset))
          if !hasFurtherKeys { box.u32(Self.independent) }
          for (index, sample) in video.enumerated() {
            box.u32(UInt32(sample.duration), UInt32(sample.data.count))
            if hasFurtherKeys { box.u32(index == 0 || sample.isKey ? Self.independent : Self.dependent) }
          }
        }
      }
      moof.box("traf") { track in
        track.fragmentHead(2, flags: Self.independent, start)
        track.fullBox("trun", flags: 0x301) { box in
          box.u32(UInt32(timing.count), UInt32(offset))
          for sample in timing { box.u32(UInt32(sample.duration), UInt32(sample.data.count)) }
        }
      }
      moof.box("uuid") { box in
        box.append(Self.type)
        box.videoDescription(source)
        box.fullBox("adds") { table in
          table.u32(UInt32(added.count))
          for index in added { table.u32(UInt32(index)) }
        }
        if let ownEnd {
          box.fullBox("ends") { table in
            table.u32(UInt32(1 + ownEnd.video.count), UInt32(ownEnd.timing))
            for duration in ownEnd.video { table.u32(UInt32(duration)) }
          }
        }
      }
    }
    return file.bytes
  }

  /// Flags of a sample that depends on others, and of one that does not.
  private static let (dependent, independent): (UInt32, UInt32) = (0x0101_0000, 0x0200_0000)
}

extension MP4Box {
  /// `tfhd` and `tfdt`: offsets count from `moof`, and samples have these flags by default.
  fileprivate mutating func fragmentHead(_ id: UInt32, flags: UInt32, _ start: Int64) {
    fullBox("tfhd", flags: 0x20020) { $0.u32(id, flags) }
    fullBox("tfdt", version: 1) { $0.u64(UInt64(start)) }
  }
}

// MARK: - Reading

extension MP4PackFragment {
  /// Reads a fragment that ``bytes(number:start:)`` has written.
  ///
  /// - Throws: ``SegmentMismatch`` for any other bytes.
  package init(reading bytes: [UInt8]) throws(SegmentMismatch) {
    let boxes = try BoxReader(bytes[...]).children("moof", "mdat")
    let parts = try boxes[0].children("mfhd", "traf", "traf", "uuid")
    guard parts[3].bytes.starts(with: Self.type) else { throw SegmentMismatch("no box of ours") }
    let content = try parts[3].skipping(Self.type.count)
    let isInBand = try !content.all("avc3").isEmpty
    let types = try [isInBand ? "avc3" : "avc1", "adds"] + (content.all("ends").isEmpty ? [] : ["ends"])
    let facts = try content.children(types)
    let (source, added) = (try VideoDescription(entry: facts[0], isInBand: isInBand), try facts[1].numbers())
    // The samples of the timing track come first.
    var rest = boxes[1].bytes
    let timing = try Self.samples(parts[2], from: &rest)
    let video = try Self.samples(parts[1], from: &rest)
    guard rest.isEmpty, zip(added, added.dropFirst()).allSatisfy({ $0 < $1 }), added.first ?? 1 > 0,
      added.last ?? 0 < video.count
    else { throw SegmentMismatch("other samples than its tables say") }
    let ends = facts.count > 2 ? try facts[2].numbers().map(Int64.init) : []
    // A file counts with 32 bits.
    guard facts.count == 2 || ends.count > 1 && ends.allSatisfy({ (1...Int64(Int32.max)).contains($0) }) else {
      throw SegmentMismatch("another end than that of a file")
    }
    let ownEnd = ends.first.map { OwnEnd(timing: $0, video: Array(ends.dropFirst())) }
    self.init(source: source, video: video, timing: timing, added: added, ownEnd: ownEnd)
  }

  private static func samples(
    _ track: BoxReader, from rest: inout ArraySlice<UInt8>
  ) throws(SegmentMismatch) -> [Sample] {
    let run = try track.children("tfhd", "tfdt", "trun")[2]
    let flags = try run.number(at: 1, bytes: 3)
    guard [0x701, 0x305, 0x301].contains(flags) else { throw SegmentMismatch("a run of another kind") }
    let (columns, head) = (flags == 0x701 ? 3 : 2, flags == 0x305 ? 16 : 12)
    let count = try run.number(at: 4)
    guard run.bytes.count == head + 4 * columns * count else { throw SegmentMismatch("a run of another size") }
    var samples: [Sample] = []
    for index in 0..<count {
      let row = head + 4 * columns * index
      let sampleFlags = columns == 3 ? try run.number(at: row + 8) : Int(dependent)
      let isKey = index > 0 && sampleFlags == Int(independent)
      samples.append(
        try Sample(taking: run.number(at: row + 4), from: &rest, lasting: Int64(run.number(at: row)), isKey: isKey))
    }
    return samples
  }
}
