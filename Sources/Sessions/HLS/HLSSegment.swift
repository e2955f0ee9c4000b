// A segment in a session's HLS stream: its place, its fragment, and where the key frame lies in that. Nothing is written here.

import Encoding
import FileSystem
import ISOMedia

struct HLSSegment {
  package let segment: PublishedSegment
  /// From the session's start.
  package let startMs: Int64
  /// How long the fragment lasts. Seams are closed: the last picture is held until the next segment, or cut short.
  let lengthMs: Int64
  /// Whether segments of another kind come before it: then it carries its parameter sets itself, because stock ffmpeg
  /// keeps those of the first initialization.
  let carriesParameterSets: Bool

  /// All segments of a session.
  ///
  /// - Parameter longestMs: in a live playlist no fragment lasts longer; the rest of a longer hold is a gap.
  package static func all(_ segments: [PublishedSegment], maximumMs: Int64 = .max) -> [HLSSegment] {
    guard let first = segments.first else { return [] }
    var isMixed = false
    return segments.enumerated().map { index, segment in
      isMixed = isMixed || segment.pictureKind != first.pictureKind
      let next = index + 1 < segments.count ? segments[index + 1] : nil
      return HLSSegment(
        segment, before: next, sessionStartMs: first.startMs, maximumMs: maximumMs, carriesParameterSets: isMixed)
    }
  }

  init(
    _ segment: PublishedSegment, before next: PublishedSegment?, sessionStartMs: Int64, maximumMs: Int64,
    carriesParameterSets: Bool
  ) {
    self.segment = segment
    startMs = segment.startMs - sessionStartMs
    lengthMs = min(segment.shownUntilMs(before: next) - segment.startMs, maximumMs)
    self.carriesParameterSets = carriesParameterSets
  }

  /// Returns its place in a playlist.
  package func entry(_ media: HLSPlaylist.Media) -> HLSPlaylist.Entry {
    HLSPlaylist.Entry(media: media, startMs: segment.startMs, endMs: segment.startMs + lengthMs)
  }

  /// The files that a player needs.
  struct Files {
    package let initialization: [UInt8]
    package let fragment: [UInt8]
    let layout: HLSLayout
  }

  /// Returns the initialization and the fragment.
  ///
  /// - Throws: ``BadSession`` when its video is missing or damaged.
  package func files(from session: SessionDirectory) throws -> Files {
    let samples = try placed(SegmentSamples(of: segment, in: session))
    let fragment = fragment(samples)
    return Files(
      initialization: MP4Fragment.initialization(samples.description(of: segment)), fragment: fragment.bytes,
      layout: layout(of: fragment, samples))
  }

  /// Returns where the fragment's key frame lies. Only the tables of its video are read.
  ///
  /// - Throws: ``BadSession`` when its video is missing, or has other tables than ours.
  func layout(from session: SessionDirectory) throws -> HLSLayout {
    let samples = try placed(SegmentSamples(outlineOf: segment, in: session))
    return layout(of: fragment(samples), samples)
  }

  private func layout(of fragment: MP4Fragment, _ samples: SegmentSamples) -> HLSLayout {
    HLSLayout(
      bytes: fragment.size, keyFrame: fragment.keyFrame, width: segment.codedWidth, height: segment.codedHeight,
      codec: samples.description(of: segment).codec)
  }

  private func placed(_ samples: consuming SegmentSamples) throws(BadSession) -> SegmentSamples {
    var samples = samples
    try samples.stretch(toMs: lengthMs, gapMs: 0, file: segment.file)
    samples.parameterSets = samples.parameterSets.atOneFrameASecond
    if carriesParameterSets { samples.carryParameterSets() }
    return samples
  }

  private func fragment(_ samples: SegmentSamples) -> MP4Fragment {
    MP4Fragment(
      startMs: startMs, samples: samples.video, events: samples.events(from: MediaTime.ticks(ms: startMs)))
  }
}

extension PublishedSegment {
  /// Returns when its last picture leaves the screen, in unix milliseconds, given the segment that follows.
  func shownUntilMs(before next: PublishedSegment?) -> Int64 {
    guard let next else { return endMs }
    return gap(before: next)?.startMs ?? next.startMs
  }

  /// Whether its own manifest tells when its last picture leaves the screen: no batch can follow at a seam.
  var hasKnownEnd: Bool { isFinal || 2 * gapAfterMs >= intervalMs }
}

extension HLSPlaylist.Media {
  /// Names that change when the contents of the files would.
  init(_ part: HLSSegment, layout: HLSLayout? = nil) {
    let segment = part.segment
    // Parameter sets with one frame a second are their second form.
    let sets = part.carriesParameterSets ? " in band 2" : ""
    let place = "\(segment.sha256) \(part.startMs) \(part.lengthMs)\(sets)"
    let kind = "\(segment.pictureKind) 2\(sets)"
    self.init(
      file: SegmentName.fragment(segment.startMs, digest: Self.digest(place)),
      initialization: "init-\(segment.codedWidth)x\(segment.codedHeight)-\(Self.digest(kind)).mp4", layout: layout)
  }

  private static func digest(_ text: String) -> String { String(SHA256.hex(of: Array(text.utf8)).prefix(8)) }
}
