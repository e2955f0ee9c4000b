// A session as an HLS playlist (RFC 8216 and its second edition, draft-pantos-hls-rfc8216bis). The player's time is session
// time: the durations of all entries before a segment add up to the segment's distance from the session's start, because
// each hold lasts until the next segment and time that nobody recorded is laid out as a gap. Pure.

/// The text of a media playlist, built entry by entry. A live playlist only grows at its end.
struct HLSPlaylist {
  enum Kind: String {
    /// Players load it again for the entries that follow.
    case live = "EVENT"
    case complete = "VOD"
  }

  /// A fragment, the file that initializes its decoder, and its size where that is known.
  struct Media: Equatable {
    let file: String
    let initialization: String
    var layout: HLSLayout? = nil
  }

  struct Entry: Equatable {
    let media: Media
    /// Unix milliseconds.
    let startMs: Int64
    /// When the picture of the last frame leaves the screen.
    let endMs: Int64
  }

  static let file = "session.m3u8"
  /// The file that stands in a gap's place.
  static let gapFile = "gap.m4s"
  /// Comments to our own readers; players ignore them.
  private static let sessionMark = "# session "
  private static let overlapMark = "# overlap "

  private static let targetTag = "#EXT-X-TARGETDURATION:"
  private static let mapTag = "#EXT-X-MAP:URI="
  private static let dateTag = "#EXT-X-PROGRAM-DATE-TIME:"
  private static let durationTag = "#EXTINF:"
  private static let endTag = "#EXT-X-ENDLIST\n"

  /// In seconds. No shorter one is written, so that one target serves nearly every session.
  private static let minimumTargetS: Int64 = 10
  /// A longer gap is not laid out: the player's time continues right behind it.
  private static let maximumGapMs: Int64 = 3_600_000

  private(set) var text: String
  /// No entry lasts longer than this many seconds. It never changes.
  private let targetS: Int64
  /// The instant that the entries reach, in unix milliseconds.
  private(set) var endMs: Int64
  /// The initialization of the last segment, and whether the segments have more than one.
  private var initialization: String?
  private var isMixed = false
  private var isBehindJump = false
  /// Whether a gap was laid out since the playlist was begun or read.
  private(set) var hasGaps = false

  /// The playlist of a session that is over, without its entries.
  ///
  /// - Parameter parts: all of the session, at least one.
  init(of session: SessionID, _ parts: [HLSPart]) {
    self.init(
      of: session, .complete, startMs: parts[0].segment.startMs, longestMs: parts.map(\.lengthMs).max() ?? 0)
  }

  /// - Parameters:
  ///   - startMs: the session's start, in unix milliseconds.
  ///   - longestMs: no entry is to last longer.
  init(of session: SessionID, _ kind: Kind, startMs: Int64, longestMs: Int64) {
    targetS = max((longestMs + 999) / 1_000, Self.minimumTargetS)
    endMs = startMs
    text = "#EXTM3U\n\(Self.sessionMark)\(session)\n#EXT-X-VERSION:8\n\(HLSViews.independenceTag)"
    text += "\(Self.targetTag)\(targetS)\n#EXT-X-PLAYLIST-TYPE:\(kind.rawValue)\n"
  }

  /// A live playlist that can grow.
  ///
  /// - Returns: nil when the text is not one of this session, has no entry, or has ended; or when it is of an older version,
  ///   which did not tell the layouts of fragments.
  init?(of session: SessionID, continuing text: String) {
    let lines = text.utf8.split(separator: UInt8(ascii: "\n"))
    func last(_ tag: String) -> String? {
      lines.last { $0.starts(with: tag.utf8) }.flatMap { String($0.dropFirst(tag.utf8.count)) }
    }
    guard Self.session(of: text) == session.description, !text.hasSuffix(Self.endTag),
      let target = last(Self.targetTag).flatMap({ Int64($0) }), (1...1_000_000).contains(target),
      let start = Self.lastStart(in: text), last(Self.dateTag) == start.dateText,
      let duration = last(Self.durationTag).flatMap({ Int64(milliseconds: $0.dropLast()) })
    else { return nil }
    // An overlap is told right behind the date of the entry that it belongs to.
    let date = lines.lastIndex { $0.starts(with: Self.dateTag.utf8) } ?? 0
    let overlap = lines[date...].first { $0.starts(with: Self.overlapMark.utf8) }
      .flatMap { String($0.dropFirst(Self.overlapMark.utf8.count)) }.flatMap { Int64(milliseconds: $0) }
    guard lines[date...].contains(where: { HLSLayout(Substring($0)) != nil }) else { return nil }
    self.text = text
    targetS = target
    endMs = start + (overlap ?? 0) + duration
    let maps = lines.filter { $0.starts(with: Self.mapTag.utf8) }.compactMap {
      String($0.dropFirst(Self.mapTag.utf8.count + 1).dropLast())
    }
    initialization = maps.last
    isMixed = Set(maps).count > 1
  }

  /// Returns the session that a playlist of ours names.
  static func session(of text: String) -> String? {
    // It is in one of the first lines, and the playlist of a day has many.
    text.utf8.split(separator: UInt8(ascii: "\n"), maxSplits: 8).first { $0.starts(with: sessionMark.utf8) }
      .flatMap { String($0.dropFirst(sessionMark.utf8.count)) }
  }

  /// Returns the start of the last segment that a playlist lists, in unix milliseconds; nil where its last line names none.
  static func lastStart(in text: String) -> Int64? {
    text.utf8.split(separator: UInt8(ascii: "\n")).last.flatMap(start(of:))
  }

  /// Returns the starts of the segments that a playlist lists, in their order.
  static func starts(in text: String) -> [Int64] {
    text.utf8.split(separator: UInt8(ascii: "\n")).compactMap(start(of:))
  }

  private static func start(of line: Substring.UTF8View) -> Int64? {
    line.starts(with: "segment-".utf8) ? Int64(String(line.dropFirst(8).prefix(13)) ?? "") : nil
  }

  /// The longest that an entry can last, in milliseconds.
  var longestMs: Int64 { targetS * 1_000 }

  /// Returns whether a segment of another kind comes before one with this initialization.
  func isMixed(before initialization: String) -> Bool {
    isMixed || self.initialization.map { $0 != initialization } ?? false
  }

  /// Returns whether an entry can be added: it ends behind all others, and none has to change for it.
  func hasRoom(for entry: Entry) -> Bool {
    entry.endMs > max(endMs, entry.startMs) && entry.endMs - entry.startMs <= longestMs
  }

  /// Adds an entry that ``hasRoom(for:)``. A gap is laid out before it where the entries do not reach its start.
  mutating func append(_ entry: Entry) {
    if entry.startMs > endMs { appendGap(untilMs: entry.startMs) }
    let media = entry.media
    if initialization != nil, media.initialization != initialization || isBehindJump {
      text += HLSViews.discontinuityTag
    }
    isBehindJump = false
    if media.initialization != initialization {
      isMixed = isMixed(before: media.initialization)
      text += "\(Self.mapTag)\"\(media.initialization)\"\n"
      initialization = media.initialization
    }
    text += "\(Self.dateTag)\(entry.startMs.dateText)\n"
    // The end of a session was told already, and more follows that begins a little earlier.
    if entry.startMs < endMs { text += "\(Self.overlapMark)\((endMs - entry.startMs).secondsText)\n" }
    if let layout = media.layout { text += layout.comment }
    text += "\(Self.durationTag)\((entry.endMs - endMs).secondsText),\n\(media.file)\n"
    endMs = entry.endMs
  }

  /// Ends the playlist: nothing follows.
  ///
  /// - Parameter endMs: when the session ends, in unix milliseconds; a gap is laid out up to there.
  mutating func end(atMs endMs: Int64) {
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
      text += "#EXT-X-GAP\n\(Self.durationTag)\(min(restMs, longestMs).secondsText),\n\(Self.gapFile)\n"
      restMs -= longestMs
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
