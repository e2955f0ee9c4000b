// A session as an HLS playlist (RFC 8216 and its second edition, draft-pantos-hls-rfc8216bis). The player's time is session
// time: the durations of the entries before a segment add up to its distance from the session's start, because each hold lasts
// until the next segment, and unrecorded time is listed as a gap. Pure.

import Encoding
import FrameBatches
import ISOMedia

/// The text of a media playlist, built entry by entry. A live playlist only grows at its end.
package struct HLSPlaylist {
  package enum Kind: String {
    /// Players reload it for new entries.
    case live = "EVENT"
    case complete = "VOD"
    /// Players reload it; its first entries go when segments are removed.
    case window = ""
  }

  /// A fragment in a playlist.
  package struct Entry {
    package let file: String
    /// The file that initializes its decoder.
    package let initialization: String
    /// Unix milliseconds.
    let startMs: Int64
    /// When the last picture leaves the screen.
    let endMs: Int64
    /// Its start in the time of its fragment, in milliseconds.
    var mediaMs: Int64 = 0
    /// nil if it is not known yet.
    package var layout: HLSLayout?
    /// The value of `EXT-X-MAP:URI` if it is more than the name of the initialization.
    var map: String?
    /// Its bytes in a pack, and the kind of that; nil for a file of its own.
    var range: Range<Int>?
    var packKind: String?

    package init(file: String, initialization: String, startMs: Int64, endMs: Int64, layout: HLSLayout? = nil) {
      self.file = file
      self.initialization = initialization
      self.startMs = startMs
      self.endMs = endMs
      self.layout = layout
    }
  }

  package static let file = "session.m3u8"
  /// The file of every gap.
  package static let gapFile = "gap.m4s"
  /// In the place of `segment-` in the name of a fragment that goes on with the last picture of the segment before it.
  static let holdPrefix = "hold-"
  /// Comments for our own readers; players ignore them.
  static let sessionMark = "# session "
  private static let overlapMark = "# overlap "
  private static let pressMark = "# press "
  private static let noteMark = "# note "
  /// The start of a segment in a pack, in unix milliseconds, and the kind of that.
  static let packedMark = "# segment "

  static let targetTag = "#EXT-X-TARGETDURATION:"
  static let mapTag = "#EXT-X-MAP:URI="
  private static let dateTag = "#EXT-X-PROGRAM-DATE-TIME:"
  private static let durationTag = "#EXTINF:"
  static let rangeTag = "#EXT-X-BYTERANGE:"
  package static let endTag = "#EXT-X-ENDLIST\n"

  /// In seconds: that of sessions with a picture a second. Players look for new entries once in this time.
  private static let minimumTargetS: Int64 = 6
  /// A longer gap is not listed: the player's time skips it.
  package static let maximumGapMs: Int64 = 3_600_000
  /// A longer playlist gets no further chapters, in bytes. A day of segments of five seconds has 3 MB without chapters. A chapter has 130
  /// bytes and its title, of at most 200: with the most and the longest in each segment, the limit is met after three hours.
  private static let maximumBytesWithChapters = 12 << 20

  package internal(set) var text: String
  /// The maximum duration of an entry, rounded to seconds. It never changes.
  private let targetS: Int64
  /// The end of the last entry, in unix milliseconds.
  package private(set) var endMs: Int64
  /// The initialization of the last segment, and whether the segments have more than one.
  private var initialization: String?
  private(set) var isMixed = false
  private var isBehindJump = false
  /// The last press of a pointer, in unix milliseconds.
  private var lastPressMs: Int64?
  /// The note of the last frame.
  private var lastNote: String?
  /// Whether it can be continued: then it has marks for that.
  private let isLive: Bool
  /// The captions of the entries to come.
  var captions = HLSCaptions()
  /// The files of captions by their names, since the playlist was created or read.
  package private(set) var captionSegments: [String: HLSCaptionSegment] = [:]
  /// Whether a gap was listed since the playlist was created or read.
  private(set) var hasGaps = false

  /// The playlist of a finished session, without its entries.
  ///
  /// - Parameters:
  ///   - parts: all of the session, at least one.
  ///   - dates: tags that name instants.
  package init(of session: SessionID, _ parts: [HLSSegment], dates: String = "") {
    self.init(
      of: session, .complete, startMs: parts[0].segment.startMs, maximumMs: parts.map(\.lengthMs).max() ?? 0)
    text += dates
  }

  /// - Parameters:
  ///   - startMs: the session's start, in unix milliseconds.
  ///   - maximumMs: the duration of the longest entry.
  ///   - sequence: the numbers of the first entry.
  package init(of session: SessionID, _ kind: Kind, startMs: Int64, maximumMs: Int64, sequence: Sequence = Sequence()) {
    targetS = max((maximumMs + 999) / 1_000, Self.minimumTargetS)
    endMs = startMs
    isLive = kind != .complete
    text = "#EXTM3U\n\(Self.sessionMark)\(session)\n#EXT-X-VERSION:8\n\(HLSViews.independenceTag)"
    text += "\(Self.targetTag)\(targetS)\n\(sequence.text)"
    if kind != .window { text += "#EXT-X-PLAYLIST-TYPE:\(kind.rawValue)\n" }
  }

  /// A live playlist that can grow.
  ///
  /// - Returns: nil if the text is not a playlist of this session, has no entry, has ended, or was written by an older version,
  ///   without the layouts of fragments.
  init?(of session: SessionID, continuing text: [UInt8]) {
    guard Self.session(of: text) == session.description, let start = Self.lastStart(in: text),
      let target = Self.last(Self.targetTag, in: text).flatMap({ Int64($0) }), (1...1_000_000).contains(target),
      let map = Self.last(Self.mapTag, in: text), let date = Self.last(Self.dateTag, in: text),
      date == start.dateText,
      // The lines of the last entry follow its date.
      case let entry = text.suffix(600).split(separator: UInt8(ascii: "\n")).suffix(8),
      let layout = entry.compactMap({ $0.withUnsafeBufferPointer { HLSLayout($0[...]) } }).last,
      let duration = Self.last(Self.durationTag, in: text).flatMap({ Int64(milliseconds: $0.dropLast()) })
    else { return nil }
    let overlap = entry.drop { !$0.elementsEqual("\(Self.dateTag)\(date)".utf8) }
      .first { $0.starts(with: Self.overlapMark.utf8) }
      .flatMap { Int64(milliseconds: String(decoding: $0.dropFirst(Self.overlapMark.utf8.count), as: UTF8.self)) }
    self.text = String(decoding: text, as: UTF8.self)
    targetS = target
    endMs = start + (overlap ?? 0) + duration
    initialization = Self.initialization(of: Array(entry)) ?? String(map.dropFirst().dropLast())
    // After segments of another kind each fragment carries its parameter sets.
    isMixed = layout.isInBand
    isLive = true
    // Sums with instants of this range do not overflow.
    lastPressMs = Self.last(Self.pressMark, in: text).flatMap { Int64($0) }.flatMap {
      (0...1 << 43).contains($0) ? $0 : nil
    }
    lastNote = Self.last(Self.noteMark, in: text).flatMap { $0.isEmpty ? nil : $0 }
    captions = HLSCaptions(continuing: text, from: endMs)
  }

  /// Returns the name of the initialization of packs; nil if the last entry is a file of its own.
  private static func initialization(of lines: [ArraySlice<UInt8>]) -> String? {
    guard let last = lines.last, HLSPackPart.isNamed(in: last),
      let mark = lines.last(where: { $0.starts(with: packedMark.utf8) }), let startMs = start(of: mark)
    else { return nil }
    let kind = String(decoding: mark, as: UTF8.self).split(separator: " ").last ?? ""
    return HLSPackPart.initialization(kind: kind, startMs)
  }

  /// Returns the value in the last line that begins with a tag.
  private static func last(_ tag: String, in text: [UInt8]) -> String? {
    text.withUnsafeBytes { bytes in
      bytes.offsets(behind: "\n\(tag)").last
        .map { String(decoding: bytes[$0...].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self) }
    }
  }

  /// Returns the session that a playlist of ours names.
  package static func session(of text: [UInt8]) -> String? {
    // Only the first lines: the playlist of a day has many.
    text.split(separator: UInt8(ascii: "\n"), maxSplits: 8).first { $0.starts(with: sessionMark.utf8) }
      .map { String(decoding: $0.dropFirst(sessionMark.utf8.count), as: UTF8.self) }
  }

  /// Returns the start of the last segment of a playlist, in unix milliseconds; nil if its last line names no segment.
  package static func lastStart(in text: [UInt8]) -> Int64? {
    let lines = text.suffix(200).split(separator: UInt8(ascii: "\n"))
    guard let last = lines.last, HLSPackPart.isNamed(in: last) else { return lines.last.flatMap(start(of:)) }
    return lines.last { $0.starts(with: packedMark.utf8) }.flatMap(start(of:))
  }

  /// Returns the starts of the segments of a playlist, in order.
  static func starts(in text: [UInt8]) -> [Int64] {
    text.split(separator: UInt8(ascii: "\n")).compactMap(start(of:))
  }

  /// Returns whether a playlist has its end tag, so that players do not reload it.
  package static func hasEnded(_ text: [UInt8]) -> Bool { text.suffix(endTag.utf8.count).elementsEqual(endTag.utf8) }

  /// Returns the files beside it that a playlist names. Packs are none of them.
  package static func files(in text: [UInt8]) -> Set<String> {
    let lines = text.split(separator: UInt8(ascii: "\n")).compactMap { (line) -> String? in
      if line.first != UInt8(ascii: "#") { return file(named: line) }
      if let captions = captionFile(of: line) { return captions }
      guard line.starts(with: mapTag.utf8) else { return nil }
      return file(named: line.dropFirst(mapTag.utf8.count + 1).dropLast())
    }
    return Set(lines).union(HLSCaptions.areIn(text) ? [HLSCaptionSegment.emptyFile] : [])
  }

  /// Returns the file of captions that a line names; nil for any other line.
  static func captionFile(of line: some Collection<UInt8>) -> String? {
    guard line.starts(with: HLSCaptions.fileMark.utf8) else { return nil }
    return String(decoding: line.dropFirst(HLSCaptions.fileMark.utf8.count), as: UTF8.self)
  }

  private static func file(named line: ArraySlice<UInt8>) -> String? {
    HLSPackPart.isNamed(in: line) ? nil : String(decoding: line, as: UTF8.self)
  }

  /// Whether a playlist lists segments in packs.
  static func hasPacks(_ text: [UInt8]) -> Bool {
    text.withUnsafeBytes { !$0.offsets(behind: "\n\(HLSPackPart.prefix)").isEmpty }
  }

  /// Returns the start of the segment that a line names. That of a segment in a pack is a line of its own.
  static func start(of line: ArraySlice<UInt8>) -> Int64? {
    for mark in ["segment-", packedMark] where line.starts(with: mark.utf8) {
      return Int64(String(decoding: line.dropFirst(mark.utf8.count).prefix(13), as: UTF8.self))
    }
    return nil
  }

  package var hasEntries: Bool { initialization != nil }

  var targetMs: Int64 { targetS * 1_000 }

  /// The maximum duration of an entry, in milliseconds. It is rounded to the target.
  var maximumMs: Int64 { targetS * 1_000 + 499 }

  /// Returns whether a segment of another kind comes before one with this initialization.
  func isMixed(before initialization: String) -> Bool {
    isMixed || self.initialization.map { $0 != initialization } ?? false
  }

  /// Returns whether an entry can be added: it ends behind all others, and none has to change for it.
  package func hasRoom(for entry: Entry) -> Bool {
    entry.endMs > max(endMs, entry.startMs) && entry.endMs - entry.startMs <= maximumMs
  }

  /// Adds an entry for which ``hasRoom(for:)``, and a gap if the last entry ends before its start.
  ///
  /// - Parameters:
  ///   - marks: the chapters of the segment; nil for a hold.
  ///   - gap: the gap before it, by the manifests.
  package mutating func append(
    _ entry: Entry, _ marks: SegmentMarks? = SegmentMarks(), behind gap: SessionIndex.Gap? = nil
  ) {
    if entry.startMs > endMs { appendGap(untilMs: entry.startMs) }
    let (lines, captionFile) = nextCaptions(of: entry, marks?.captions ?? [])
    if initialization != nil, entry.initialization != initialization || isBehindJump {
      text += HLSViews.discontinuityTag
    }
    isBehindJump = false
    if entry.initialization != initialization {
      isMixed = isMixed(before: entry.initialization)
      text += "\(Self.mapTag)\(entry.map ?? "\"\(entry.initialization)\"")\n"
      initialization = entry.initialization
    }
    if let marks { appendChapters(of: entry, marks, gap) }
    text += lines
    text += "\(Self.dateTag)\(entry.startMs.dateText)\n"
    // The last entry listed the end of the session, and a segment follows that begins a little earlier.
    if entry.startMs < endMs { text += "\(Self.overlapMark)\((endMs - entry.startMs).secondsText)\n" }
    if let captionFile { text += "\(HLSCaptions.fileMark)\(captionFile)\n" }
    if let layout = entry.layout { text += layout.comment }
    if let kind = entry.packKind { text += "\(Self.packedMark)\(entry.startMs) \(kind)\n" }
    text += "\(Self.durationTag)\((entry.endMs - endMs).secondsText),\n"
    if let range = entry.range { text += "\(Self.rangeTag)\(range.count)@\(range.lowerBound)\n" }
    text += "\(entry.file)\n"
    endMs = entry.endMs
  }

  /// Adds the chapters of an entry, once and for ever: a later entry does not change them.
  private mutating func appendChapters(of entry: Entry, _ marks: SegmentMarks, _ gap: SessionIndex.Gap?) {
    guard text.utf8.count < Self.maximumBytesWithChapters else { return }
    let chapters = marks.chapters(afterPressMs: lastPressMs, note: lastNote)
    text += (gap.map { [FilmChapter.gap($0)] } ?? []).dateRanges()
    text += chapters.filter { $0.unixMs < entry.endMs }.dateRanges()
    // The next segment may have others at the same instants.
    text += chapters.filter { $0.unixMs >= entry.endMs }.dateRanges(of: "-\(entry.startMs)")
    if marks.lastNote != lastNote {
      lastNote = marks.lastNote
      if isLive { text += "\(Self.noteMark)\(lastNote ?? "")\n" }
    }
    guard let pressMs = marks.lastPressMs else { return }
    lastPressMs = pressMs
    if isLive { text += "\(Self.pressMark)\(pressMs)\n" }
  }

  /// Returns the lines of captions that go on behind an entry, and the file of those that it shows; nil if it shows none.
  private mutating func nextCaptions(of entry: Entry, _ new: [Caption]) -> (lines: String, file: String?) {
    let hasRoom = text.utf8.count < Self.maximumBytesWithChapters
    let (shown, lines) = captions.next(
      hasRoom ? new : [], in: entry.startMs..<max(entry.startMs, entry.endMs), isFirst: !hasEntries)
    if shown.isEmpty { return (isLive ? lines : "", nil) }
    let segment = HLSCaptionSegment(captions: shown, startMs: entry.startMs, mediaMs: entry.mediaMs)
    let name = segment.name(of: segment.bytes)
    captionSegments[name] = segment
    return (isLive ? lines : "", name)
  }

  /// Ends the playlist.
  ///
  /// - Parameter endMs: the end of the session, in unix milliseconds; a gap is listed up to there.
  package mutating func end(atMs endMs: Int64) {
    if endMs > self.endMs { appendGap(untilMs: endMs) }
    text += Self.endTag
  }

  private mutating func appendGap(untilMs: Int64) {
    var restMs = untilMs - endMs
    let startMs = endMs
    endMs = untilMs
    isBehindJump = restMs > Self.maximumGapMs
    if isBehindJump { return }
    hasGaps = true
    text += "\(Self.dateTag)\(startMs.dateText)\n"
    while restMs > 0 {
      let lengthMs = min(restMs, targetMs)
      text += "#EXT-X-GAP\n\(Self.durationTag)\(lengthMs.secondsText),\n\(Self.gapFile)\n"
      restMs -= lengthMs
    }
  }
}

extension Int64 {
  /// Reads seconds with three decimals, as ``secondsText`` writes them.
  fileprivate init?(milliseconds text: some StringProtocol) {
    let parts = text.split(separator: ".")
    guard parts.count == 2, parts[1].utf8.count == 3, parts[0].utf8.count <= 10,
      text.utf8.allSatisfy({ (48...57).contains($0) || $0 == UInt8(ascii: ".") })
    else { return nil }
    self.init("\(parts[0])\(parts[1])")
  }
}
