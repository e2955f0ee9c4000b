// The captions of a playlist: a WebVTT segment for each entry that shows some (RFC 8216, 3.5). A text that spans entries is in each of them,
// with the same times. A segment follows from its own labels and from earlier ones, so later labels change no listed file. Pure.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// A WebVTT segment of a playlist.
package struct HLSCaptionSegment: Sendable {
  let captions: [Caption]
  /// The start of the entry, in unix milliseconds, and in the time of its fragment.
  let startMs: Int64
  let mediaMs: Int64

  /// The segment of all entries without a caption.
  package static let none = HLSCaptionSegment(captions: [], startMs: 0, mediaMs: 0)

  /// The file of all entries without a caption.
  package static let emptyFile = "captions-none.vtt"

  /// Times of MPEG-2 have 33 bits.
  private static let cycle: Int64 = 1 << 33

  /// The segment as a file. Its times are those of the fragments of its kind, which the map states again.
  package var bytes: [UInt8] {
    let ticks = MediaTime.ticks(ms: mediaMs) % Self.cycle
    var text = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:\(ticks),LOCAL:\(CueTime.clock(mediaMs))\n"
    for caption in captions {
      // A text may begin before the clock of its fragments.
      let unix = caption.unix
      let (fromMs, untilMs) = (unix.lowerBound - startMs + mediaMs, unix.upperBound - startMs + mediaMs)
      text += CueText.cue(max(0, fromMs), max(0, untilMs), caption.text)
    }
    return Array(text.utf8)
  }

  /// The name changes with the contents.
  func name(of bytes: [UInt8]) -> String {
    let fragment = SegmentName.fragment(startMs, digest: String(SHA256.hex(of: bytes).prefix(8)))
    return HLSCaptions.prefix + fragment.dropFirst("segment-".count).dropLast(".m4s".count) + HLSCaptions.suffix
  }
}

/// The captions that the next entries of a playlist may show.
package struct HLSCaptions {
  static let prefix = "captions-"
  static let suffix = ".vtt"
  /// The playlist of captions.
  package static let file = "captions.m3u8"
  /// The name of the group in the multivariant playlist.
  static let group = "captions"

  // Comments for our own readers; players ignore them.
  /// The file of an entry's captions.
  static let fileMark = "# cues "
  /// A caption that goes on behind the entry: its span in unix milliseconds, and its text in JSON.
  private static let openMark = "# caption "
  /// In a playlist whose entries with captions were taken out: players still read the playlist of captions.
  static let keptMark = "# captions"

  /// Maximum number of captions that go on behind an entry: further ones end with it.
  private static let mostOpen = 64
  /// Maximum number of captions of a segment before the first picture.
  private static let mostBefore = 3

  /// Those that go on behind the last entry.
  private var open: [Caption] = []
  /// Those of a finished session, in the order of their starts.
  private var later: ArraySlice<Caption> = []

  init() {}

  /// - Parameter captions: all of a finished session, in the order of their starts.
  init(_ captions: [Caption]) { later = captions[...] }

  /// Reads the captions that go on behind the last entry of a playlist.
  ///
  /// - Parameter endMs: the end of that entry, in unix milliseconds.
  init(continuing text: [UInt8], from endMs: Int64) {
    open = text.withUnsafeBytes { bytes in
      bytes.offsets(behind: "\n\(Self.openMark)").compactMap { offset in
        Self.caption(in: Array(bytes[offset...].prefix { $0 != UInt8(ascii: "\n") }), after: endMs)
      }
    }
  }

  private static func caption(in line: [UInt8], after endMs: Int64) -> Caption? {
    let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
    guard parts.count == 3, let startMs = Int64(String(decoding: parts[0], as: UTF8.self)),
      let untilMs = Int64(String(decoding: parts[1], as: UTF8.self)), (0...1 << 43).contains(startMs),
      (startMs...1 << 43).contains(untilMs), untilMs > endMs,
      let text = try? JSONParser.parse(Array(parts[2])).string
    else { return nil }
    return Caption(unix: startMs..<untilMs, text: text)
  }

  /// Whether players of a playlist may read captions.
  static func areIn(_ text: [UInt8]) -> Bool {
    text.withUnsafeBytes {
      !$0.offsets(behind: "\n\(fileMark)").isEmpty || !$0.offsets(behind: "\n\(keptMark)\n").isEmpty
    }
  }

  /// Returns the captions of the next entry, and the lines that tell those that begin in it and go on behind it.
  ///
  /// - Parameters:
  ///   - new: those of its segment, in the order of their starts.
  ///   - isFirst: whether nothing is listed before. Then it also shows those before the first picture.
  mutating func next(_ new: [Caption], in unix: Range<Int64>, isFirst: Bool) -> (shown: [Caption], lines: String) {
    var new = isFirst ? Self.moved(new, to: unix) : new
    while let caption = later.first, caption.unix.lowerBound < unix.upperBound {
      new.append(caption)
      later = later.dropFirst()
    }
    let shown = (open + new).filter { $0.unix.overlaps(unix) }
    open.removeAll { $0.unix.upperBound <= unix.upperBound }
    let lasting = new.filter { $0.unix.upperBound > unix.upperBound }.prefix(max(0, Self.mostOpen - open.count))
    open += lasting
    var lines: [UInt8] = []
    for caption in lasting {
      lines += "\(Self.openMark)\(caption.unix.lowerBound) \(caption.unix.upperBound) ".utf8
      JSONValue.append(caption.text, to: &lines)
      lines.append(UInt8(ascii: "\n"))
    }
    let ordered = shown.enumerated().sorted {
      ($0.element.unix.lowerBound, $0.offset) < ($1.element.unix.lowerBound, $1.offset)
    }
    return (ordered.map(\.element), String(decoding: lines, as: UTF8.self))
  }

  /// Returns captions with the last of those that end before an entry at its start.
  private static func moved(_ captions: [Caption], to unix: Range<Int64>) -> [Caption] {
    let before = captions.filter { $0.unix.upperBound <= unix.lowerBound }.suffix(mostBefore)
    let lengthMs = min(Int64(unix.count), Caption.longestMs)
    return before.map { Caption(unix: unix.lowerBound..<unix.lowerBound + lengthMs, text: $0.text) }
      + captions.filter { $0.unix.upperBound > unix.lowerBound }
  }
}
