// The playlists beside the media playlist: the playlist of key frames, for fast seeking, and the multivariant playlist, which
// names both and their requirements (draft-pantos-hls-rfc8216bis, 4.4.3.6, 4.4.6). Both are made from a media playlist with
// comments on the layout of each fragment. Pure.

import Encoding
import ISOMedia

/// The key frame of a fragment, and its codec.
package struct HLSLayout: Equatable {
  /// The fragment's size, in bytes.
  let bytes: Int
  /// The range of `moof` and the key frame behind it.
  let keyFrame: Range<Int>
  /// The coded size, in pixels.
  let width: Int
  let height: Int
  /// As in RFC 6381.
  let codec: String

  private static let mark = "# fragment "

  /// Whether the fragment carries its parameter sets (ISO/IEC 14496-15, 5.4.2).
  var isInBand: Bool { codec.hasPrefix("avc3") }

  /// A line for ``HLSPlaylist``.
  var comment: String {
    "\(Self.mark)\(bytes) \(keyFrame.count)@\(keyFrame.lowerBound) \(width)x\(height) \(codec)\n"
  }

  /// The line of the playlist of key frames.
  fileprivate var byteRange: String { "#EXT-X-BYTERANGE:\(keyFrame.count)@\(keyFrame.lowerBound)\n" }
}

extension HLSLayout {
  init(of fragment: MP4Fragment, _ description: VideoDescription) {
    self.init(
      bytes: fragment.size, keyFrame: fragment.keyFrame, width: description.width, height: description.height,
      codec: description.codec)
  }

  /// Reads a comment; returns nil for any other line.
  init?(_ line: Slice<UnsafeBufferPointer<UInt8>>) {
    guard line.starts(with: Self.mark.utf8) else { return nil }
    var rest = line.dropFirst(Self.mark.utf8.count)
    var numbers: [Int] = []
    for separator in " @ x ".utf8 {
      var number = 0
      // Far below the overflow of a sum of two.
      while let digit = rest.first, (48...57).contains(digit), number < 1 << 40 {
        number = number * 10 + Int(digit - 48)
        rest.removeFirst()
      }
      guard rest.popFirst() == separator else { return nil }
      numbers.append(number)
    }
    // More than a segment may have, and far below the overflow of a rate.
    guard numbers[0] <= 1 << 28 else { return nil }
    self.init(
      bytes: numbers[0], keyFrame: numbers[2]..<numbers[2] + numbers[1], width: numbers[3], height: numbers[4],
      codec: String(decoding: rest, as: UTF8.self))
  }
}

/// The playlists that are made from a media playlist. A growing playlist of packs has no playlist of key frames: each write of a session
/// costs money. That one comes with the end.
package struct HLSViews {
  package static let keyFramesFile = "iframes.m3u8"
  package static let multivariantFile = "multivariant.m3u8"
  static let independenceTag = "#EXT-X-INDEPENDENT-SEGMENTS\n"
  static let discontinuityTag = "#EXT-X-DISCONTINUITY\n"

  /// The media playlist without our comments on fragments.
  let media: [UInt8]
  /// Each entry is one key frame, shown until the next.
  package let keyFrames: [UInt8]
  /// The playlist of captions, entry by entry as the media playlist; nil if that has none.
  package let captions: [UInt8]?
  /// Names the others.
  package let multivariant: [UInt8]
  private let isPacked: Bool
  private let hasKeyFrames: Bool
  private let attributes: String
  private let bitsPerSecond: Int

  /// - Parameter text: a playlist by ``HLSPlaylist`` with the layouts of all fragments, 4 MB for a day.
  package init(of text: [UInt8]) {
    var (pictures, rate, keyFrameRate) = (Pictures(), PeakRate(), PeakRate())
    var (media, keyFrames) = ([UInt8](), [UInt8]())
    media.reserveCapacity(text.count)
    keyFrames.reserveCapacity(text.count)
    var durationMs: Int64 = 0
    var captions = HLSCaptions.areIn(text) ? CaptionList() : nil
    var (layout, isPacked) = (nil as HLSLayout?, false)
    text.withUnsafeBufferPointer { text in
      var start = 0
      while let end = text[start...].firstIndex(of: UInt8(ascii: "\n")) {
        let line = text[start..<end]
        defer { start = end + 1 }
        if let found = HLSLayout(line) {
          layout = found
          pictures.add(found)
          keyFrames += found.byteRange.utf8
          continue
        }
        captions?.add(line)
        if line.starts(with: HLSCaptions.fileMark.utf8) { continue }
        media += text[start...end]
        if line.starts(with: HLSPlaylist.rangeTag.utf8) {
          isPacked = true
          continue
        }
        keyFrames += text[start...end]
        if line.first != UInt8(ascii: "#") {
          rate.add(bytes: layout?.bytes ?? 0, durationMs)
          keyFrameRate.add(bytes: layout?.keyFrame.count ?? 0, durationMs)
          layout = nil
        } else if line.starts(with: "#EXTINF:".utf8) {
          durationMs = line.number
        } else if line.starts(with: "#EXT-X-TARGETDURATION:".utf8) {
          (rate.targetMs, keyFrameRate.targetMs) = (line.number * 1_000, line.number * 1_000)
        } else if text[start...end].elementsEqual(Self.independenceTag.utf8) {
          keyFrames += "#EXT-X-I-FRAMES-ONLY\n".utf8
        }
      }
    }
    self.media = media
    self.keyFrames = keyFrames
    self.captions = captions?.text
    self.isPacked = isPacked
    hasKeyFrames = !isPacked || HLSPlaylist.hasEnded(text)
    (attributes, bitsPerSecond) = (pictures.attributes, rate.bitsPerSecond)
    var (rendition, group) = ("", "")
    if captions != nil {
      rendition = "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"\(HLSCaptions.group)\",NAME=\"Captions\""
      rendition += ",DEFAULT=YES,AUTOSELECT=YES,URI=\"\(HLSCaptions.file)\"\n"
      group = ",SUBTITLES=\"\(HLSCaptions.group)\""
    }
    var lines = """
      #EXTM3U
      #EXT-X-VERSION:8
      \(Self.independenceTag)\(rendition)\
      #EXT-X-STREAM-INF:BANDWIDTH=\(rate.bitsPerSecond)\(pictures.attributes)\(group)
      \(HLSPlaylist.file)

      """
    if hasKeyFrames {
      lines += "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=\(keyFrameRate.bitsPerSecond)\(pictures.attributes)"
      lines += ",URI=\"\(Self.keyFramesFile)\"\n"
    }
    multivariant = Array(lines.utf8)
  }

  /// Returns the playlists to write beside a media playlist: of packs only those that players miss.
  ///
  /// - Parameter replaced: the media playlist before; nil if there is none.
  func files(replacing replaced: [UInt8]?) -> [(name: String, bytes: [UInt8])] {
    let captions = captions.map { [(HLSCaptions.file, $0)] } ?? []
    let all = [(Self.keyFramesFile, keyFrames), (Self.multivariantFile, multivariant)]
    if hasKeyFrames { return captions + all }
    return captions + (replaced.map { isLike(HLSViews(of: $0)) } ?? false ? [] : [all[1]])
  }

  /// Whether players need the same. Rates are taken for the same up to the next power of two.
  private func isLike(_ other: HLSViews) -> Bool {
    func magnitude(_ rate: Int) -> Int { rate.bitWidth - rate.leadingZeroBitCount }
    return other.isPacked && !other.hasKeyFrames && other.attributes == attributes
      && (other.captions == nil) == (captions == nil)
      && magnitude(other.bitsPerSecond) == magnitude(bitsPerSecond)
  }

  /// The playlist of captions: the lines of a media playlist that are about time.
  private struct CaptionList {
    private(set) var text: [UInt8] = []
    private var file: String?

    /// Tags that are about the video only.
    private static let others = ["# ", HLSPlaylist.mapTag, HLSPlaylist.rangeTag, "#EXT-X-DATERANGE:"]

    mutating func add(_ line: Slice<UnsafeBufferPointer<UInt8>>) {
      if let named = HLSPlaylist.captionFile(of: line) {
        file = named
      } else if line.first != UInt8(ascii: "#") {
        text += "\(file ?? HLSCaptionSegment.emptyFile)\n".utf8
        file = nil
      } else if line.starts(with: HLSPlaylist.sessionMark.utf8)
        || !Self.others.contains(where: { line.starts(with: $0.utf8) })
      {
        text += line
        text.append(UInt8(ascii: "\n"))
      }
    }
  }

  /// The codecs of all fragments, and their largest picture.
  private struct Pictures {
    private var codecs: [String] = []
    private var width = 0
    private var height = 0

    mutating func add(_ layout: HLSLayout) {
      if codecs.last != layout.codec && !codecs.contains(layout.codec) { codecs.append(layout.codec) }
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

  mutating func add(bytes: Int, _ durationMs: Int64) {
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
    // Entries of zero length would make the window grow without end.
    window.removeFirst(window.count - min(max(kept, 1), 1_000))
  }

  /// Rounded up, so it seldom changes while a session grows.
  var bitsPerSecond: Int { (max(peak, Self.rate(bytes, durationMs), 1) + 9_999) / 10_000 * 10_000 }

  private static func rate(_ bytes: Int, _ durationMs: Int64) -> Int { bytes * 8_000 / Int(max(durationMs, 1)) }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
  /// The digits of a line as one number.
  fileprivate var number: Int64 {
    reduce(0) { (48...57).contains($1) && $0 < 1 << 40 ? $0 * 10 + Int64($1 - 48) : $0 }
  }
}
