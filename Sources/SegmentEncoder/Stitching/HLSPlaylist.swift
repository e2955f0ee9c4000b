// A session as an HLS playlist (RFC 8216 and its second edition, draft-pantos-hls-rfc8216bis): players' time is session
// time, each segment says its wall-clock time, and what nobody recorded is a gap that players skip. Pure.

import Glibc

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
  private static let liveTargetMs: Int64 = 10_000

  /// Whether players come back for what follows, for as long as it is not complete.
  let isLive: Bool
  let isComplete: Bool
  let entries: [Entry]

  var text: String {
    let target = (targetMs + 999) / 1_000
    var text = "#EXTM3U\n#EXT-X-VERSION:8\n#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-TARGETDURATION:\(target)\n"
    text += "#EXT-X-PLAYLIST-TYPE:\(isLive ? "EVENT" : "VOD")\n"
    var initialization: String?
    for entry in entries {
      guard let media = entry.media else {
        text += Self.gap(entry, pieceMs: target * 1_000)
        continue
      }
      if media.initialization != initialization {
        if initialization != nil { text += "#EXT-X-DISCONTINUITY\n" }
        text += "#EXT-X-MAP:URI=\"\(media.initialization)\"\n"
        initialization = media.initialization
      }
      text += "#EXT-X-PROGRAM-DATE-TIME:\(Self.date(entry.startMs))\n"
      text += "#EXTINF:\(entry.lengthMs.secondsText),\n\(media.file)\n"
    }
    return isComplete ? text + "#EXT-X-ENDLIST\n" : text
  }

  /// The longest entry. In a live playlist gaps come in pieces instead: it must not change, and players come back as
  /// often.
  private var targetMs: Int64 {
    let entries = isLive ? entries.filter { $0.media != nil } : entries
    return entries.reduce(isLive ? Self.liveTargetMs : 1_000) { max($0, $1.lengthMs) }
  }

  private static func gap(_ entry: Entry, pieceMs: Int64) -> String {
    var text = "#EXT-X-PROGRAM-DATE-TIME:\(date(entry.startMs))\n"
    var restMs = entry.lengthMs
    while restMs > 0 {
      text += "#EXT-X-GAP\n#EXTINF:\(min(restMs, pieceMs).secondsText),\n\(gapFile)\n"
      restMs -= pieceMs
    }
    return text
  }

  /// ISO 8601, UTC, with milliseconds.
  private static func date(_ unixMs: Int64) -> String {
    var seconds = time_t(unixMs / 1_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    func digits(_ value: Int32, _ count: Int) -> String {
      let text = String(value)
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    return "\(digits(parts.tm_year + 1_900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
      + "T\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))"
      + ".\(digits(Int32(unixMs % 1_000), 3))Z"
  }
}
