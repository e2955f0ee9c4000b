// What players can have beside the media playlist: the playlist of key frames, for fast seeking, and the multivariant
// playlist, which names both and says what it takes to play them (draft-pantos-hls-rfc8216bis, 4.4.3.6, 4.4.6). Both are
// made from a media playlist whose comments tell the layout of each fragment. Pure.

/// Where a fragment's key frame lies, and what decodes it.
struct HLSLayout: Equatable {
  /// The fragment's size, in bytes.
  let bytes: Int
  /// The box that describes the fragment, and the key frame behind it: a range of the fragment's bytes.
  let keyFrame: Range<Int>
  /// The coded size, in pixels.
  let width: Int
  let height: Int
  /// As in RFC 6381.
  let codec: String

  private static let mark = "# fragment "

  /// A line for ``HLSPlaylist``.
  var comment: String {
    "\(Self.mark)\(bytes) \(keyFrame.count)@\(keyFrame.lowerBound) \(width)x\(height) \(codec)\n"
  }

  /// Reads a line; nil where it is another one.
  init?(_ line: Substring) {
    guard line.hasPrefix(Self.mark) else { return nil }
    let words = line.dropFirst(Self.mark.count).split(separator: " ")
    guard words.count == 4, let bytes = Int(words[0]) else { return nil }
    let (range, size) = (words[1].split(separator: "@"), words[2].split(separator: "x"))
    guard range.count == 2, size.count == 2, let length = Int(range[0]), let offset = Int(range[1]),
      let width = Int(size[0]), let height = Int(size[1]),
      [bytes, length, offset, width, height].allSatisfy({ (0...1 << 40).contains($0) })
    else { return nil }
    self.init(
      bytes: bytes, keyFrame: offset..<offset + length, width: width, height: height, codec: String(words[3]))
  }

  init(bytes: Int, keyFrame: Range<Int>, width: Int, height: Int, codec: String) {
    self.bytes = bytes
    self.keyFrame = keyFrame
    self.width = width
    self.height = height
    self.codec = codec
  }

  /// The bytes of the playlist of key frames that say where this one is.
  fileprivate var byteRange: String { "#EXT-X-BYTERANGE:\(keyFrame.count)@\(keyFrame.lowerBound)\n" }
}

/// The playlists that are made from a media playlist.
struct HLSViews {
  static let keyFramesFile = "iframes.m3u8"
  static let multivariantFile = "multivariant.m3u8"
  static let independenceTag = "#EXT-X-INDEPENDENT-SEGMENTS\n"
  static let discontinuityTag = "#EXT-X-DISCONTINUITY\n"

  /// The media playlist without our comments on fragments.
  private(set) var media = ""
  /// Each entry is one key frame, shown until the next.
  private(set) var keyFrames = ""
  /// Names the other two.
  private(set) var multivariant: String

  /// - Parameter text: a playlist by ``HLSPlaylist``, each fragment with its layout.
  init(of text: String) {
    var (pictures, rate, keyFrameRate) = (Pictures(), PeakRate(), PeakRate())
    var durationMs: Int64 = 0
    var layout: HLSLayout?
    for line in text.split(separator: "\n") {
      if let found = HLSLayout(line) {
        layout = found
        pictures.note(found)
        keyFrames += found.byteRange
        continue
      }
      media += line + "\n"
      keyFrames += line + "\n"
      if line + "\n" == Self.independenceTag { keyFrames += "#EXT-X-I-FRAMES-ONLY\n" }
      if line.hasPrefix("#EXTINF:") { durationMs = Int64(line.filter(\.isNumber)) ?? 0 }
      if line.hasPrefix("#EXT-X-TARGETDURATION:"), let target = Int64(line.filter(\.isNumber)) {
        (rate.targetMs, keyFrameRate.targetMs) = (target * 1_000, target * 1_000)
      }
      if !line.hasPrefix("#") {
        rate.note(bytes: layout?.bytes ?? 0, durationMs)
        keyFrameRate.note(bytes: layout?.keyFrame.count ?? 0, durationMs)
        layout = nil
      }
    }
    multivariant = "#EXTM3U\n#EXT-X-VERSION:8\n\(Self.independenceTag)"
    multivariant += "#EXT-X-STREAM-INF:BANDWIDTH=\(rate.bitsPerSecond)\(pictures.attributes)\n\(HLSPlaylist.file)\n"
    multivariant += "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=\(keyFrameRate.bitsPerSecond)\(pictures.attributes),"
    multivariant += "URI=\"\(Self.keyFramesFile)\"\n"
  }

  /// The codecs of all fragments, and their largest picture.
  private struct Pictures {
    private var codecs: [String] = []
    private var width = 0
    private var height = 0

    mutating func note(_ layout: HLSLayout) {
      if !codecs.contains(layout.codec) { codecs.append(layout.codec) }
      if layout.width * layout.height > width * height { (width, height) = (layout.width, layout.height) }
    }

    var attributes: String {
      codecs.isEmpty ? "" : ",CODECS=\"\(codecs.joined(separator: ","))\",RESOLUTION=\(width)x\(height)"
    }
  }
}

/// The largest bit rate of neighbouring entries that last between half a target duration and one and a half: the
/// BANDWIDTH of a playlist (draft-pantos-hls-rfc8216bis, 4.4.6.2).
private struct PeakRate {
  var targetMs: Int64 = 0
  private var window: [(bytes: Int, durationMs: Int64)] = []
  private var peak = 0
  private var bytes = 0
  private var durationMs: Int64 = 0

  mutating func note(bytes: Int, _ durationMs: Int64) {
    self.bytes += bytes
    self.durationMs += durationMs
    window.append((bytes, durationMs))
    var (size, lengthMs, kept) = (0, Int64(0), 0)
    for entry in window.reversed() {
      guard 2 * (lengthMs + entry.durationMs) <= 3 * targetMs else { break }
      size += entry.bytes
      lengthMs += entry.durationMs
      kept += 1
      if 2 * lengthMs >= targetMs { peak = max(peak, Self.rate(size, lengthMs)) }
    }
    // Entries of no length would make the window grow without end.
    window.removeFirst(window.count - min(max(kept, 1), 1_000))
  }

  /// Rounded up, so that it seldom changes while a session grows.
  var bitsPerSecond: Int { (max(peak, Self.rate(bytes, durationMs), 1) + 9_999) / 10_000 * 10_000 }

  private static func rate(_ bytes: Int, _ durationMs: Int64) -> Int { bytes * 8_000 / Int(max(durationMs, 1)) }
}
