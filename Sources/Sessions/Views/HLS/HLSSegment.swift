// A segment in a session's HLS stream: its time, its fragment, and the key frame in that. Nothing is written here.

import Encoding
import FileSystem
import ISOMedia

package struct HLSSegment {
  package let segment: PublishedSegment
  /// See ``PublishedSegment/pictureKind``.
  package let kind: String
  /// From the session's start.
  let startMs: Int64
  /// The duration of the fragment. Seams are closed: the last picture is held until the next segment, or cut short.
  package private(set) var lengthMs: Int64
  /// Whether the fragment carries its parameter sets. It does so after segments of another kind, because stock ffmpeg keeps the
  /// parameter sets of the first initialization.
  package var carriesParameterSets = false
  /// When the fragment begins, in unix milliseconds, if it shows the last picture of the segment only, behind the segment's own
  /// fragment; nil for the segment's own.
  private(set) var holdStartMs: Int64?

  package var isHold: Bool { holdStartMs != nil }

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

  /// The fragment as it was before a later segment closed its seam.
  package var withOwnEnd: HLSSegment {
    var part = self
    part.lengthMs = segment.durationMs
    return part
  }

  /// A fragment that goes on with the last picture of a segment.
  ///
  /// - Parameters:
  ///   - range: in unix milliseconds.
  ///   - startMs: the instant that the times in fragments count from.
  init(holding segment: PublishedSegment, kind: String? = nil, in range: Range<Int64>, sessionStartMs startMs: Int64) {
    self.segment = segment
    self.kind = kind ?? segment.pictureKind
    self.startMs = range.lowerBound - startMs
    lengthMs = Int64(range.count)
    holdStartMs = range.lowerBound
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
    if !segment.isImported { samples.addRepeatsOfFragment() }
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
  /// Returns the entries of all parts.
  package static func all(_ parts: [HLSSegment]) -> [HLSPlaylist.Entry] {
    var names = InitializationNames()
    return parts.map { HLSPlaylist.Entry($0, initialization: names.name(of: $0)) }
  }

  /// Its layout is not known yet. The names of its files change with their contents.
  package init(_ part: HLSSegment, initialization: String) {
    let segment = part.segment
    let startMs = part.holdStartMs ?? segment.startMs
    // The 3 stands for samples of at most a second.
    let content = "\(segment.sha256) \(part.startMs) \(part.lengthMs)\(part.setsMark) 3"
    let file = SegmentName.fragment(startMs, digest: Self.digest(content))
    self.init(
      file: part.isHold ? HLSPlaylist.holdPrefix + file.dropFirst(8) : file, initialization: initialization,
      startMs: startMs, endMs: startMs + part.lengthMs)
    mediaMs = part.startMs
  }

  /// Names of initializations that were made. Most segments have the picture kind of the one before.
  struct InitializationNames {
    private var names: [String: String] = [:]

    mutating func name(of part: HLSSegment) -> String {
      let key = part.kind + part.setsMark
      if let name = names[key] { return name }
      let name = HLSPlaylist.Entry.initialization(of: part)
      names[key] = name
      return name
    }
  }

  private static func initialization(of part: HLSSegment) -> String {
    let segment = part.segment
    return "init-\(segment.codedWidth)x\(segment.codedHeight)-\(digest("\(part.kind) 2\(part.setsMark)")).mp4"
  }

  private static func digest(_ text: String) -> String { String(SHA256.hex(of: Array(text.utf8)).prefix(8)) }
}
