// A segment as a fragment of a pack, and back. The fragment is what players in browsers need; the segment's own file can be made from
// it again, byte for byte. Pure.

import Encoding
import FileSystem
import ISOMedia

enum PackedSegment {
  /// Returns the fragment of a segment.
  ///
  /// - Parameters:
  ///   - file: of the segment.
  ///   - lengthMs: how long it lasts in milliseconds; nil for as long as the segment.
  ///   - isInBand: whether its key frames carry their parameter sets, because segments of another kind come before it.
  /// - Throws: ``SegmentMismatch`` if the file could not be made again from it.
  static func fragment(
    of segment: PublishedSegment, _ file: [UInt8], lastingMs lengthMs: Int64? = nil, isInBand: Bool = false
  ) throws(SegmentMismatch) -> (fragment: MP4PackFragment, description: VideoDescription) {
    let source = try MP4File(reading: file)
    func description(_ sets: ParameterSets) -> VideoDescription {
      VideoDescription(
        width: source.width, height: source.height, parameterSets: sets, colour: source.colour, isInBand: isInBand)
    }
    var samples = SegmentSamples(source)
    let ownEnd = try lengthMs.map { (lengthMs) throws(SegmentMismatch) in
      try samples.end(atMs: lengthMs, of: segment)
    }
    if !segment.isImported { samples.addRepeatsOfFragment() }
    let starts = Set(Self.starts(of: source.video))
    let added = Self.starts(of: samples.video).enumerated().filter { !starts.contains($1) }.map(\.offset)
    samples.parameterSets = samples.parameterSets.atOneFrameASecond
    if isInBand { samples.carryParameterSets() }
    let fragment = MP4PackFragment(
      source: description(source.parameterSets), video: samples.video, timing: samples.timing, added: added,
      ownEnd: ownEnd)
    guard try Self.file(of: fragment) == file else { throw SegmentMismatch("a fragment loses something of it") }
    return (fragment, description(samples.parameterSets))
  }

  /// Returns the segment's own file.
  ///
  /// - Parameter bytes: the fragment.
  /// - Throws: ``SegmentMismatch`` for bytes that are no fragment of ours.
  static func file(of bytes: [UInt8]) throws(SegmentMismatch) -> [UInt8] {
    try file(of: MP4PackFragment(reading: bytes))
  }

  private static func file(of fragment: MP4PackFragment) throws(SegmentMismatch) -> [UInt8] {
    let (source, added) = (fragment.source, Set(fragment.added))
    let sets = source.isInBand ? source.parameterSets.atOneFrameASecond.lengthPrefixed : []
    var video: [Sample] = []
    for (index, sample) in fragment.video.enumerated() {
      if let last = video.last, added.contains(index) {
        let duration = last.duration + sample.duration
        // A file counts with 32 bits.
        guard duration <= Int64(Int32.max) else { throw SegmentMismatch("a sample that lasts too long") }
        video[video.count - 1] = last.lasting(duration)
      } else if index == 0 || sample.isKey {
        guard sample.data.starts(with: sets) else { throw SegmentMismatch("a key frame without parameter sets") }
        video.append(
          Sample(duration: sample.duration, data: Array(sample.data.dropFirst(sets.count)), isKey: sample.isKey))
      } else {
        video.append(sample)
      }
    }
    var timing = fragment.timing
    if let own = fragment.ownEnd {
      guard let picture = video.last, let text = timing.last else {
        throw SegmentMismatch("a fragment without samples")
      }
      video[video.count - 1] = picture.lasting(own.video[0])
      timing[timing.count - 1] = text.lasting(own.timing)
      if own.video.count > 1 {
        let repeated = try SkipSliceWriter(after: source.parameterSets).picture(1)
        video += own.video.dropFirst().map { Sample(duration: $0, data: repeated) }
      }
    }
    if !added.isEmpty || fragment.ownEnd?.video.count ?? 1 > 1 {
      let writer = try SkipSliceWriter(after: source.parameterSets)
      for index in video.indices.dropFirst() {
        var data = video[index].data
        try writer.renumber(&data, index)
        video[index] = Sample(duration: video[index].duration, data: data)
      }
    }
    return MP4File(
      width: source.width, height: source.height, parameterSets: source.parameterSets, colour: source.colour,
      video: video, timing: timing
    ).bytes
  }

  /// Returns the kind of a pack: packs of one kind have the same initialization.
  static func kind(of description: VideoDescription) -> String {
    kind(ofInitialization: MP4PackFragment.initialization(description)[...], isInBand: description.isInBand)
  }

  /// - Parameter bytes: the beginning of the pack.
  static func kind(ofInitialization bytes: ArraySlice<UInt8>, isInBand: Bool) -> String {
    "\(isInBand ? inBandMark : "")\(SHA256.hex(of: Array(bytes)).prefix(8))"
  }

  /// The first letter of the kind of a pack whose key frames carry their parameter sets.
  private static let inBandMark = "b"

  /// Whether the key frames of a pack carry their parameter sets, behind one of this kind. Stock ffmpeg keeps the parameter sets of a
  /// stream's first initialization.
  static func isInBand(_ kind: String, behind last: String?) -> Bool {
    last.map { PackPlace.isInBand($0) || $0.suffix(8) != kind.suffix(8) } ?? false
  }

  /// Returns how long the fragment of a segment lasts in a pack that goes on with the next one, in milliseconds; nil if that needs a pack of
  /// its own. Batches of a recorder meet with some jitter: the last picture stays until the next one is there, as in a film.
  static func lengthMs(of segment: SessionEntry, before next: SessionEntry) -> Int64? {
    let isNear = next.startMs - segment.endMs <= HLSPackPart.maximumHoleMs
    return segment.gapAfterMs == 0 && segment.gap(before: next) == nil && isNear && next.startMs > segment.startMs
      ? next.startMs - segment.startMs : nil
  }

  private static func starts(of samples: [Sample]) -> [Int64] {
    var now: Int64 = 0
    return samples.map { sample in
      defer { now += sample.duration }
      return now
    }
  }
}

extension SegmentSamples {
  /// Makes the segment last until an instant, counted from its start.
  ///
  /// - Returns: how it ends without that.
  fileprivate mutating func end(
    atMs lengthMs: Int64, of segment: PublishedSegment
  ) throws(SegmentMismatch) -> MP4PackFragment.OwnEnd {
    let (pictures, text) = (video, timing.last?.duration ?? 0)
    do throws(BadSession) {
      try stretch(toMs: lengthMs, gapMs: 0, file: segment.file)
    } catch {
      throw SegmentMismatch(error.cause)
    }
    let kept = min(video.count, pictures.count)
    guard kept > 0 else { throw SegmentMismatch("a segment without a picture") }
    return MP4PackFragment.OwnEnd(timing: text, video: pictures[(kept - 1)...].map(\.duration))
  }
}
