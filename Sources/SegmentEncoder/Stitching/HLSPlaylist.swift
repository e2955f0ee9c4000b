// A session as an HLS playlist (RFC 8216 and its second edition, draft-pantos-hls-rfc8216bis): players' time is session
// time, each segment says its wall-clock time, and what nobody recorded is a gap that players skip. Pure.

struct HLSPlaylist {
  struct Entry: Equatable {
    /// nil for a gap.
    let media: Media?
    /// Unix milliseconds.
    let startMs: Int64
    let lengthMs: Int64
  }

  struct Media: Equatable {
    let file: String
    /// The file that says how to decode it.
    let initialization: String
  }

  static let file = "session.m3u8"
  /// What stands in a gap's place.
  static let gapFile = "gap.m4s"
  private static let targetS: Int64 = 10
  /// A longer one is not laid out; players' time goes on right behind it.
  private static let longestGapMs: Int64 = 3_600_000
  /// A comment to players.
  private static let sessionMark = "# session "

  let session: SessionID
  /// Whether players come back for what follows, for as long as it is not complete.
  let isLive: Bool
  let isComplete: Bool
  let entries: [Entry]

  var text: String {
    // The longest segment's, but no shorter than what most sessions need, so that a live one's need not change. Gaps come
    // in pieces of it.
    let target = entries.lazy.filter { $0.media != nil }.reduce(Self.targetS) { max($0, ($1.lengthMs + 999) / 1_000) }
    var text = "#EXTM3U\n\(Self.sessionMark)\(session)\n#EXT-X-VERSION:8\n#EXT-X-INDEPENDENT-SEGMENTS\n"
    text += "#EXT-X-TARGETDURATION:\(target)\n#EXT-X-PLAYLIST-TYPE:\(isLive ? "EVENT" : "VOD")\n"
    var initialization: String?
    var isBehindJump = false
    for entry in entries {
      guard let media = entry.media else {
        isBehindJump = entry.lengthMs > Self.longestGapMs
        if !isBehindJump { text += Self.gap(entry, pieceMs: target * 1_000) }
        continue
      }
      if initialization != nil, media.initialization != initialization || isBehindJump {
        text += "#EXT-X-DISCONTINUITY\n"
      }
      isBehindJump = false
      if media.initialization != initialization {
        text += "#EXT-X-MAP:URI=\"\(media.initialization)\"\n"
        initialization = media.initialization
      }
      text += "#EXT-X-PROGRAM-DATE-TIME:\(entry.startMs.dateText)\n"
      text += "#EXTINF:\(entry.lengthMs.secondsText),\n\(media.file)\n"
    }
    return isComplete ? text + "#EXT-X-ENDLIST\n" : text
  }

  /// The session that a playlist of ours is about.
  static func session(of text: String) -> String? {
    text.split(separator: "\n").first { $0.hasPrefix(sessionMark) }.map { String($0.dropFirst(sessionMark.count)) }
  }

  private static func gap(_ entry: Entry, pieceMs: Int64) -> String {
    var text = "#EXT-X-PROGRAM-DATE-TIME:\(entry.startMs.dateText)\n"
    var restMs = entry.lengthMs
    while restMs > 0 {
      text += "#EXT-X-GAP\n#EXTINF:\(min(restMs, pieceMs).secondsText),\n\(gapFile)\n"
      restMs -= pieceMs
    }
    return text
  }
}
