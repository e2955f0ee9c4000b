// A segment in a session's HLS stream: its time, its fragment, and the key frame in that. Nothing is written here.

import Encoding
import FileSystem
import ISOMedia

package struct HLSSegment {
  package let segment: PublishedSegment
  /// See ``PublishedSegment/pictureKind``.
  let kind: String
  /// From the session's start.
  let startMs: Int64
  /// The duration of the fragment. Seams are closed: the last picture is held until the next segment, or cut short.
  package let lengthMs: Int64
  /// Whether the fragment carries its parameter sets. It does so after segments of another kind, because stock ffmpeg keeps the
  /// parameter sets of the first initialization.
  var carriesParameterSets = false
  /// Whether the fragment shows the last picture of the segment only, behind the segment's own fragment.
  private(set) var isHold = false

  /// Returns all segments of a session.
  package static func all(_ segments: [PublishedSegment]) -> [HLSSegment] {
    guard let first = segments.first else { return [] }
    var isMixed = false
    let firstKind = first.pictureKind
    var (kind, before) = (firstKind, first)
    return segments.enumerated().map { index, segment in
      if !segment.hasPictureKind(of: before) { kind = segment.pictureKind }
      before = segment
      isMixed = isMixed || kind != firstKind
      let next = index + 1 < segments.count ? segments[index + 1] : nil
      var part = HLSSegment(segment, kind: kind, before: next, sessionStartMs: first.startMs)
      part.carriesParameterSets = isMixed
      return part
    }
  }

  /// - Parameters:
  ///   - kind: its ``PublishedSegment/pictureKind``, if that is known.
  ///   - maximumMs: of the fragment's duration; a live playlist lists the rest of a longer hold as a gap.
  init(
    _ segment: PublishedSegment, kind: String? = nil, before next: PublishedSegment?, sessionStartMs: Int64,
    maximumMs: Int64 = .max
  ) {
    self.segment = segment
    self.kind = kind ?? segment.pictureKind
    startMs = segment.startMs - sessionStartMs
    let untilMs = next.map { segment.gap(before: $0)?.startMs ?? $0.startMs } ?? segment.endMs
    lengthMs = min(untilMs - segment.startMs, maximumMs)
  }

  /// A fragment that goes on with the last picture of a segment.
  ///
  /// - Parameters:
  ///   - range: in unix milliseconds.
  ///   - startMs: the instant that the times in fragments count from.
  init(holding segment: PublishedSegment, in range: Range<Int64>, sessionStartMs startMs: Int64) {
    self.segment = segment
    kind = segment.pictureKind
    self.startMs = range.lowerBound - startMs
    lengthMs = Int64(range.count)
    isHold = true
  }

  /// Returns the files that a player needs, and the layout of the fragment.
  ///
  /// - Throws: ``BadSession`` when its video is missing or damaged.
  package func files(from session: SessionDirectory) throws -> (
    initialization: [UInt8], fragment: [UInt8], layout: HLSLayout
  ) {
    let (fragment, description) = try placed(SegmentSamples(of: segment, in: session))
    return (MP4Fragment.initialization(description), fragment.bytes, HLSLayout(of: fragment, description))
  }

  /// Returns the layout of the fragment. This reads only the tables of the video.
  ///
  /// - Throws: ``BadSession`` when its video is missing, or has other tables than ours.
  package func layout(from session: SessionDirectory) throws -> HLSLayout {
    let (fragment, description) = try placed(SegmentSamples(outlineOf: segment, in: session))
    return HLSLayout(of: fragment, description)
  }

  private func placed(_ samples: consuming SegmentSamples) throws(BadSession) -> (MP4Fragment, VideoDescription) {
    if isHold {
      try samples.holdLast(forMs: lengthMs, file: segment.file)
    } else {
      try samples.stretch(toMs: lengthMs, gapMs: 0, file: segment.file)
    }
    try samples.requireReadableDurations(segment.file)
    samples.parameterSets = samples.parameterSets.atOneFrameASecond
    if carriesParameterSets { samples.carryParameterSets() }
    let fragment = MP4Fragment(startMs: startMs, video: samples.video, timing: samples.timing)
    return (fragment, samples.description(of: segment))
  }
}

extension HLSSegment {
  /// The 2 stands for parameter sets with one frame a second.
  fileprivate var setsMark: String { carriesParameterSets ? " in band 2" : "" }
}

extension PublishedSegment {
  /// Whether its manifest alone tells when its last picture leaves the screen: no batch can follow at a seam.
  var hasKnownEnd: Bool { isFinal || 2 * gapAfterMs >= intervalMs }
}

extension HLSPlaylist.Entry {
  /// The names of its files change with their contents.
  package init(_ part: HLSSegment, layout: HLSLayout? = nil) {
    self.init(part, initialization: Self.initialization(of: part), layout)
  }

  /// Returns the entries of all parts.
  package static func all(_ parts: [HLSSegment]) -> [HLSPlaylist.Entry] {
    var last: (part: HLSSegment, name: String)?
    return parts.map { part in
      // Most have the kind of the one before.
      if let last, last.part.carriesParameterSets == part.carriesParameterSets,
        last.part.kind.utf8.elementsEqual(part.kind.utf8)
      {
        return HLSPlaylist.Entry(part, initialization: last.name, nil)
      }
      let name = initialization(of: part)
      last = (part, name)
      return HLSPlaylist.Entry(part, initialization: name, nil)
    }
  }

  /// - Parameter holdStartMs: of a fragment that holds a picture, in unix milliseconds.
  private init(_ part: HLSSegment, initialization: String, _ layout: HLSLayout?, holdStartMs: Int64? = nil) {
    let segment = part.segment
    let startMs = holdStartMs ?? segment.startMs
    let content = "\(segment.sha256) \(part.startMs) \(part.lengthMs)\(part.setsMark)"
    let file = SegmentName.fragment(startMs, digest: Self.digest(content))
    self.init(
      file: part.isHold ? HLSPlaylist.holdPrefix + file.dropFirst(8) : file, initialization: initialization,
      startMs: startMs, endMs: startMs + part.lengthMs, layout: layout)
  }

  /// - Parameter startMs: of the hold, in unix milliseconds.
  init(hold part: HLSSegment, startMs: Int64) {
    self.init(part, initialization: Self.initialization(of: part), nil, holdStartMs: startMs)
  }

  private static func initialization(of part: HLSSegment) -> String {
    let segment = part.segment
    return "init-\(segment.codedWidth)x\(segment.codedHeight)-\(digest("\(part.kind) 2\(part.setsMark)")).mp4"
  }

  private static func digest(_ text: String) -> String { String(SHA256.hex(of: Array(text.utf8)).prefix(8)) }
}
