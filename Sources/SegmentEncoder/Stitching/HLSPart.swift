// What is in the files of a session's HLS stream. Nothing is written here.

/// A segment's fragment and its place.
struct HLSPart {
  let segment: PublishedSegment
  /// From the session's start.
  let startMs: Int64
  let lengthMs: Int64
  let gapAfterMs: Int64
  /// Whether pictures of other kinds come before it: then it carries its parameter sets itself, because stock ffmpeg
  /// keeps those of the first initialization.
  let carriesParameterSets: Bool

  /// Seams are closed where all is known. A live playlist may only be added to: there a segment keeps its own length, and
  /// the next one begins at its own time, a little late or early.
  static func all(_ segments: [PublishedSegment], isLive: Bool) -> [HLSPart] {
    let plan = FilmPlan(segments, gaps: .hold).parts
    guard let first = segments.first?.pictureKind else { return [] }
    var isMixed = false
    return plan.enumerated().map { index, part in
      isMixed = isMixed || part.segment.pictureKind != first
      let lengthMs = isLive ? part.segment.durationMs : part.lengthMs - part.gapMs
      // Behind the last one there is nothing to skip to.
      let gapAfterMs = index + 1 < plan.count ? part.gapMs : 0
      return HLSPart(
        segment: part.segment, startMs: part.startMs, lengthMs: lengthMs, gapAfterMs: gapAfterMs,
        carriesParameterSets: isMixed)
    }
  }

  /// Its place in a playlist; a gap without a fragment.
  func shown(by media: HLSPlaylist.Media?) -> HLSPlaylist.Entry {
    HLSPlaylist.Entry(media: media, startMs: segment.startMs, lengthMs: lengthMs)
  }

  static func entries(_ parts: [HLSPart], _ media: [HLSPlaylist.Media?]) -> [HLSPlaylist.Entry] {
    zip(parts, media).flatMap { part, media in
      let shown = part.shown(by: media)
      let gap = HLSPlaylist.Entry(
        media: nil, startMs: part.segment.startMs + part.lengthMs, lengthMs: part.gapAfterMs)
      return part.gapAfterMs > 0 ? [shown, gap] : [shown]
    }
  }

  /// How to decode it, and its fragment.
  ///
  /// - Throws: ``BadSession`` when its video is missing or damaged.
  func files(from session: SessionDirectory) throws -> (initialization: [UInt8], fragment: [UInt8]) {
    var samples = try SegmentSamples(of: segment, in: session)
    try samples.stretch(toMs: lengthMs, gapMs: 0, file: segment.file)
    if carriesParameterSets { samples.carryParameterSets() }
    let initialization = MP4Fragment.initialization(samples.description(of: segment))
    let fragment = MP4Fragment(
      startMs: startMs, samples: samples.video, events: samples.events(from: MediaTime.ticks(ms: startMs)))
    return (initialization, fragment.bytes)
  }
}

extension HLSPlaylist.Media {
  /// Names that change when what is in the files would.
  init(_ part: HLSPart) {
    let segment = part.segment
    let place = "\(segment.sha256) \(part.startMs) \(part.lengthMs) \(part.carriesParameterSets)"
    file = SegmentName.fragment(segment.startMs, digest: Self.digest(place))
    let kind = segment.pictureKind + (part.carriesParameterSets ? " in band" : "")
    initialization = "init-\(segment.codedWidth)x\(segment.codedHeight)-\(Self.digest(kind)).mp4"
  }

  private static func digest(_ text: String) -> String { String(SHA256.hex(of: Array(text.utf8)).prefix(8)) }
}
