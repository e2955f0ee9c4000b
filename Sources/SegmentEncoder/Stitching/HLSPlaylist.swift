// A session as an HLS playlist (RFC 8216 and its second edition, draft-pantos-hls-rfc8216bis): players' time is session
// time, each segment says its wall-clock time, and what nobody recorded is a gap that players skip. Pure.

struct HLSPlaylist {
  struct Entry: Equatable {
    /// nil for a gap.
    let media: Media?
    /// Unix milliseconds.
    let startMs: Int64
    let lengthMs: Int64

    /// What it asks of the playlist's target duration.
    fileprivate var targetS: Int64? { media == nil ? nil : (lengthMs + 999) / 1_000 }
  }

  struct Media: Equatable {
    let file: String
    /// The file that says how to decode it.
    let initialization: String
  }

  static let file = "session.m3u8"
  /// What stands in a gap's place.
  static let gapFile = "gap.m4s"
  /// A comment to players.
  fileprivate static let sessionMark = "# session "

  let session: SessionID
  /// Whether players come back for what follows, for as long as it is not complete.
  let isLive: Bool
  let isComplete: Bool
  let entries: [Entry]

  var text: String {
    var text = HLSPlaylistText(session: session, isLive: isLive, targetS: entries.compactMap(\.targetS).max() ?? 0)
    for entry in entries { text.append(entry) }
    return isComplete ? text.ended : text.text
  }

  /// The session that a playlist of ours is about.
  static func session(of text: String) -> String? {
    // It is in one of the first lines, and a day has many.
    text.utf8.split(separator: UInt8(ascii: "\n"), maxSplits: 8).first { $0.starts(with: sessionMark.utf8) }
      .flatMap { String($0.dropFirst(sessionMark.utf8.count)) }
  }
}

/// A playlist's text, to which entries are added; also behind those that are there.
struct HLSPlaylistText {
  private(set) var text: String
  /// The longest segment's, but no shorter than what most sessions need, so that a live one's need not change. Gaps come
  /// in pieces of it.
  private let targetS: Int64
  /// How to decode what was added last, and whether that ever was another.
  private var initialization: String?
  private var isMixed = false
  private var isBehindJump = false

  private static let leastTargetS: Int64 = 10
  /// A longer one is not laid out; players' time goes on right behind it.
  private static let longestGapMs: Int64 = 3_600_000
  private static let target = "#EXT-X-TARGETDURATION:"
  private static let map = "#EXT-X-MAP:URI="
  private static let end = "#EXT-X-ENDLIST\n"

  /// - Parameter targetS: the longest segment's, in seconds, rounded up.
  init(session: SessionID, isLive: Bool, targetS: Int64) {
    self.targetS = max(targetS, Self.leastTargetS)
    text = "#EXTM3U\n\(HLSPlaylist.sessionMark)\(session)\n#EXT-X-VERSION:8\n#EXT-X-INDEPENDENT-SEGMENTS\n"
    text += "\(Self.target)\(self.targetS)\n#EXT-X-PLAYLIST-TYPE:\(isLive ? "EVENT" : "VOD")\n"
  }

  /// A live playlist that is to go on.
  ///
  /// - Returns: nil when it is not one of this session, or has ended.
  init?(of session: SessionID, continuing text: String) {
    let lines = text.utf8.split(separator: UInt8(ascii: "\n"))
    func values(of tag: String) -> [Substring] {
      lines.filter { $0.starts(with: tag.utf8) }.map { Substring($0.dropFirst(tag.utf8.count)) }
    }
    guard HLSPlaylist.session(of: text) == session.description,
      !text.utf8.suffix(Self.end.utf8.count).elementsEqual(Self.end.utf8),
      let target = values(of: Self.target).first.flatMap({ Int64($0) })
    else { return nil }
    self.text = text
    targetS = target
    let maps = values(of: Self.map).map { String($0.dropFirst().dropLast()) }
    initialization = maps.last
    isMixed = Set(maps).count > 1
  }

  /// Whether this is the last thing it tells of.
  func ends(with segment: PublishedSegment) -> Bool {
    text.utf8.split(separator: UInt8(ascii: "\n")).last?.starts(with: SegmentName.fragment(segment.startMs).utf8)
      ?? false
  }

  /// Whether it can tell of this without telling something else of what was there.
  func hasRoom(for entry: HLSPlaylist.Entry) -> Bool { entry.targetS ?? 0 <= targetS }

  /// Whether pictures of another kind come before this.
  func isMixed(before media: HLSPlaylist.Media) -> Bool {
    isMixed || initialization.map { $0 != media.initialization } ?? false
  }

  mutating func append(_ entry: HLSPlaylist.Entry) {
    guard let media = entry.media else {
      isBehindJump = entry.lengthMs > Self.longestGapMs
      if !isBehindJump { appendGap(entry) }
      return
    }
    if initialization != nil, media.initialization != initialization || isBehindJump {
      text += "#EXT-X-DISCONTINUITY\n"
    }
    isBehindJump = false
    if media.initialization != initialization {
      isMixed = isMixed(before: media)
      text += "\(Self.map)\"\(media.initialization)\"\n"
      initialization = media.initialization
    }
    text += "#EXT-X-PROGRAM-DATE-TIME:\(entry.startMs.dateText)\n"
    text += "#EXTINF:\(entry.lengthMs.secondsText),\n\(media.file)\n"
  }

  /// Nothing follows.
  var ended: String { text + Self.end }

  private mutating func appendGap(_ entry: HLSPlaylist.Entry) {
    text += "#EXT-X-PROGRAM-DATE-TIME:\(entry.startMs.dateText)\n"
    var restMs = entry.lengthMs
    while restMs > 0 {
      text += "#EXT-X-GAP\n#EXTINF:\(min(restMs, targetS * 1_000).secondsText),\n\(HLSPlaylist.gapFile)\n"
      restMs -= targetS * 1_000
    }
  }
}
