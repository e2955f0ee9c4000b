// A session as HLS: a playlist, a fragment a segment, and what is needed to decode them. Like session.json a view that
// can be made anew at any time: a name says what is in the file, so what is there already is not written again, and the
// playlist comes last.

import Glibc

struct HLSPackage {
  /// Where a growing session has its own.
  static let directory = "hls"

  /// The directory it is in; made when it is missing.
  let path: String
  /// Whether the session may grow.
  let isLive: Bool
  /// A path to write files under that nobody else uses, on the same file system.
  let temporary: String

  /// Brings all files up to date.
  ///
  /// - Parameters:
  ///   - segments: at least one, in the order of their starts.
  ///   - progress: called with the segments done and their number; what it throws ends the work.
  /// - Returns: the size of all fragments, in bytes.
  /// - Throws: ``BadSession``, ``DiskError``.
  @discardableResult
  func update(
    _ segments: [PublishedSegment], from session: SessionDirectory, progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> Int {
    let parts = FilmPlan(segments, gaps: .hold).parts
    let media = try parts.map { try HLSPlaylist.Media($0) }
    try DurableFile.makeDirectories(path)
    let directory = try Directory(opening: path)
    let present = Set(try directory.entries().map(\.name))
    var size = 0
    for (index, (part, media)) in zip(parts, media).enumerated() {
      if !present.contains(media.file) || !present.contains(media.initialization) {
        try write(part, number: index + 1, as: media, from: session)
      }
      size += try DurableFile.size(of: path + "/" + media.file)
      try progress(index + 1, parts.count)
    }
    let entries = Self.entries(parts, media)
    if entries.contains(where: { $0.media == nil }), !present.contains(HLSPlaylist.gapFile) {
      try replace(HLSPlaylist.gapFile, MP4Fragment.empty)
    }
    try directory.sync()
    let playlist = HLSPlaylist(
      isLive: isLive, isComplete: !isLive || segments.last?.isFinal == true, entries: entries)
    let old = try listed(in: directory)
    try replace(HLSPlaylist.file, Array(playlist.text.utf8))
    try directory.sync()
    // Players may still ask for what the playlist before this one lists.
    let known = old.union(media.flatMap { [$0.file, $0.initialization] })
    for name in present where !known.contains(name) && HLSPlaylist.Media.isName(name) { unlink(path + "/" + name) }
    return size
  }

  private static func entries(_ parts: [FilmPlan.Part], _ media: [HLSPlaylist.Media]) -> [HLSPlaylist.Entry] {
    zip(parts, media).flatMap { part, media in
      let (startMs, shownMs) = (part.segment.startMs, part.lengthMs - part.gapMs)
      let shown = HLSPlaylist.Entry(media: media, startMs: startMs, lengthMs: shownMs)
      let gap = HLSPlaylist.Entry(media: nil, startMs: startMs + shownMs, lengthMs: part.gapMs)
      // Behind the last one there is nothing to skip to.
      return part.gapMs > 0 && part.startMs != parts[parts.count - 1].startMs ? [shown, gap] : [shown]
    }
  }

  private func write(
    _ part: FilmPlan.Part, number: Int, as media: HLSPlaylist.Media, from session: SessionDirectory
  ) throws {
    var samples = try SegmentSamples(of: part.segment, in: session)
    try samples.stretch(toMs: part.lengthMs - part.gapMs, gapMs: 0, file: part.segment.file)
    // Stock ffmpeg does not take another initialization's parameter sets when the size changes; it takes these.
    samples.carryParameterSets()
    let initialization = MP4Fragment.initialization(
      width: part.segment.codedWidth, height: part.segment.codedHeight, parameterSets: samples.parameterSets)
    let target = path + "/" + media.initialization
    if let there = try DurableFile.contents(of: target) {
      guard there == initialization else {
        throw BadSession(
          part.segment.file, "other parameter sets than its manifest makes one expect",
          advice: "write into an empty directory, and see what verify says of the session")
      }
    } else {
      try replace(media.initialization, initialization)
    }
    let start = MediaTime.ticks(ms: part.startMs)
    let fragment = MP4Fragment(
      number: number, start: start, samples: samples.video, events: samples.events(of: part.segment, from: start))
    try replace(media.file, fragment.bytes)
  }

  private func replace(_ name: String, _ bytes: [UInt8]) throws(DiskError) {
    try DurableFile.replace(path + "/" + name, bytes, temporary: temporary)
  }

  /// The files that the playlist there is lists.
  private func listed(in directory: Directory) throws -> Set<String> {
    guard let bytes = try DurableFile.contents(of: path + "/" + HLSPlaylist.file) else { return [] }
    let text = String(decoding: bytes, as: UTF8.self)
    let maps = text.split(separator: "\"").filter { $0.hasPrefix("init-") }
    return Set((text.split(separator: "\n").filter { !$0.hasPrefix("#") } + maps).map(String.init))
  }
}

extension HLSPlaylist.Media {
  /// Names that change when what is in the files would.
  init(_ part: FilmPlan.Part) throws {
    let segment = part.segment
    let place = "\(segment.sha256) \(part.startMs) \(part.lengthMs - part.gapMs)"
    file = SegmentName.fragment(segment.startMs, digest: try Self.digest(place))
    initialization = "init-\(segment.codedWidth)x\(segment.codedHeight)-\(try Self.digest(segment.pictureKind)).mp4"
  }

  private static func digest(_ text: String) throws -> String { String(try SHA256.hex(of: Array(text.utf8)).prefix(8)) }

  /// Whether a file is called as ours are.
  static func isName(_ name: String) -> Bool {
    name.hasPrefix("segment-") && name.hasSuffix(".m4s") || name.hasPrefix("init-") && name.hasSuffix(".mp4")
  }
}
