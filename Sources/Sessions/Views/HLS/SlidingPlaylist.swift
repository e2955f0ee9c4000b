// A playlist from which the first segments are taken out: a sliding window, which has no playlist type, because one of the type
// EVENT never loses an entry (RFC 8216, 4.3.3.5 and 6.2.2). The numbers of its first entry and of its first discontinuity count on,
// so that players that reload it stay where they are. Its end adds ENDLIST only. Pure.

import Encoding
import FrameBatches

extension HLSPlaylist {
  static let sequenceTag = "#EXT-X-MEDIA-SEQUENCE:"
  static let discontinuitySequenceTag = "#EXT-X-DISCONTINUITY-SEQUENCE:"
  private static let typeTag = "#EXT-X-PLAYLIST-TYPE:"

  /// The numbers of a playlist's first entry, and of the discontinuities before it.
  package struct Sequence: Equatable {
    var media: Int64
    var discontinuity: Int64

    package init(media: Int64 = 0, discontinuity: Int64 = 0) {
      (self.media, self.discontinuity) = (media, discontinuity)
    }

    var text: String {
      (media > 0 ? "\(HLSPlaylist.sequenceTag)\(media)\n" : "")
        + (discontinuity > 0 ? "\(HLSPlaylist.discontinuitySequenceTag)\(discontinuity)\n" : "")
    }
  }

  /// A playlist without its first entries.
  struct Slid {
    let text: [UInt8]
    /// Whether a segment is left.
    let hasSegments: Bool
    /// The files that the removed entries name. The entries that are left may name some of them, too.
    let files: Set<String>
  }

  /// Returns a playlist without the segments that start before an instant, and without the gaps before the first that stays.
  ///
  /// - Parameter startMs: in unix milliseconds.
  /// - Returns: nil if no entry is taken out.
  static func sliding(_ text: [UInt8], to startMs: Int64) -> Slid? {
    var head = Head(of: text)
    let headBytes = head.bytes
    var (files, map, entryStart, end) = (Set<String>(), nil as ArraySlice<UInt8>?, headBytes, headBytes)
    var own = (media: Int64(0), discontinuity: Int64(0))
    var (isFound, packedMs, captions) = (false, nil as Int64?, nil as String?)
    while let line = nextLine(of: text, from: &end) {
      if line.starts(with: mapTag.utf8) {
        map = line
      } else if line.starts(with: packedMark.utf8) {
        packedMs = start(of: line)
      } else if let file = captionFile(of: line) {
        captions = file
      } else if line.elementsEqual(HLSViews.discontinuityTag.utf8.dropLast()) {
        own.discontinuity += 1
      } else if line.first != UInt8(ascii: "#") {
        if packedMs ?? start(of: line) ?? .min >= startMs {
          isFound = true
          map = map.map { Self.map($0, before: line) }
          break
        }
        files.formUnion(Self.files(in: Array(line) + [UInt8(ascii: "\n")] + (map ?? [])))
        if let captions { files.insert(captions) }
        own.media += 1
        (entryStart, packedMs, captions) = (end, nil, nil)
      }
    }
    guard own.media > 0 else { return nil }
    head.sequence.media += own.media
    head.sequence.discontinuity += own.discontinuity
    head.type = ""
    if HLSCaptions.areIn(text) { head.keepCaptions() }
    var rest = isFound ? entry(text[entryStart...]) : hasEnded(text) ? Array(endTag.utf8) : []
    if isFound, let map { rest = map + [UInt8(ascii: "\n")] + rest }
    return Slid(text: Array(head.text.utf8) + rest, hasSegments: isFound, files: files)
  }

  /// Returns the tag of an initialization before an entry. That of a pack lies in the pack of the entry, since earlier ones go.
  private static func map(_ tag: ArraySlice<UInt8>, before entry: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let value = tag.dropFirst(mapTag.utf8.count + 1)
    guard HLSPackPart.isNamed(in: entry), HLSPackPart.isNamed(in: value) else { return tag }
    return ArraySlice("\(mapTag)\"".utf8 + entry + value.drop { $0 != UInt8(ascii: "\"") })
  }

  /// The number of the first entry behind all that a playlist names.
  static func sequence(behind text: [UInt8]) -> Sequence {
    let head = Head(of: text)
    var (sequence, end) = (head.sequence, head.bytes)
    while let line = nextLine(of: text, from: &end) {
      if line.elementsEqual(HLSViews.discontinuityTag.utf8.dropLast()) { sequence.discontinuity += 1 }
      if line.first != UInt8(ascii: "#") { sequence.media += 1 }
    }
    return sequence
  }

  static func sequence(of text: [UInt8]) -> Sequence { Head(of: text).sequence }

  /// Goes on with the playlist of captions of another playlist, which this one replaces: players may read it, even if no entry has
  /// captions any more.
  mutating func keepCaptions(of replaced: [UInt8]) {
    let bytes = Array(text.utf8)
    guard HLSCaptions.areIn(replaced), !HLSCaptions.areIn(bytes) else { return }
    var head = Head(of: bytes)
    head.keepCaptions()
    text = head.text + String(decoding: bytes[head.bytes...], as: UTF8.self)
  }

  /// Numbers the entries anew, behind all that another playlist names, if a number would name another entry than there. This playlist
  /// replaces that one, and has its sequence. It happens when a late batch belongs before listed segments: a number that players have
  /// seen never names another entry, and numbers do not decrease (RFC 8216, 6.2.2).
  mutating func keepNumbers(of replaced: [UInt8]) {
    let bytes = Array(text.utf8)
    let places = zip(Self.places(in: replaced), Self.places(in: bytes))
    guard places.contains(where: { !$0.elementsEqual($1) }) else { return }
    var head = Head(of: bytes)
    head.sequence = Self.sequence(behind: replaced)
    text = head.text + String(decoding: bytes[head.bytes...], as: UTF8.self)
  }

  /// Returns the names of the entries' files, without the digests of their contents. Those of segments in packs have their starts.
  private static func places(in text: [UInt8]) -> [ArraySlice<UInt8>] {
    var mark: ArraySlice<UInt8> = []
    return text.split(separator: UInt8(ascii: "\n")).compactMap { line in
      if line.starts(with: packedMark.utf8) { mark = line.prefix(packedMark.utf8.count + 13) }
      guard line.first != UInt8(ascii: "#") else { return nil }
      if HLSPackPart.isNamed(in: line) { return mark }
      return line[..<(line.lastIndex(of: UInt8(ascii: "-")) ?? line.endIndex)]
    }
  }

  /// Returns the maximum duration of an entry, in seconds; nil if the text is no playlist of ours.
  static func target(of text: [UInt8]) -> Int64? { Head(of: text).targetS }

  /// Returns the next line, without its end.
  ///
  /// - Parameter offset: of the line; then of the one behind it.
  private static func nextLine(of text: [UInt8], from offset: inout Int) -> ArraySlice<UInt8>? {
    guard let end = text[offset...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    defer { offset = end + 1 }
    return text[offset..<end]
  }

  /// Returns the text from an entry on, without the lines before its date that are written anew or do not count any more.
  private static func entry(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var rest = text
    while rest.starts(with: HLSViews.discontinuityTag.utf8) || rest.starts(with: mapTag.utf8) {
      rest = rest.drop { $0 != UInt8(ascii: "\n") }.dropFirst()
    }
    // The gap before the entry is not listed any more.
    while rest.starts(with: FilmChapter.gapRangeTag.utf8) { rest = rest.drop { $0 != UInt8(ascii: "\n") }.dropFirst() }
    return Array(rest)
  }

  /// The lines before the first entry.
  private struct Head {
    private var lines: [String] = []
    private(set) var bytes = 0
    var sequence = Sequence()
    /// The line of the playlist's type; empty for a window, which has none.
    var type = ""
    private(set) var targetS: Int64?

    init(of text: [UInt8]) {
      var end = 0
      while let line = HLSPlaylist.nextLine(of: text, from: &end), lines.count < 12 {
        let line = String(decoding: line, as: UTF8.self)
        func value(_ tag: String) -> Int64? {
          line.hasPrefix(tag) ? Int64(line.dropFirst(tag.utf8.count)).map { min(max(0, $0), 1 << 50) } : nil
        }
        let others = [
          "#EXTM3U", HLSPlaylist.sessionMark, "#EXT-X-VERSION:", "#EXT-X-INDEPENDENT-SEGMENTS", HLSCaptions.keptMark,
        ]
        if let number = value(HLSPlaylist.sequenceTag) {
          sequence.media = number
        } else if let number = value(HLSPlaylist.discontinuitySequenceTag) {
          sequence.discontinuity = number
        } else if line.hasPrefix(HLSPlaylist.targetTag) {
          targetS = value(HLSPlaylist.targetTag)
          lines.append(line)
        } else if others.contains(where: line.hasPrefix) {
          lines.append(line)
        } else if line.hasPrefix(HLSPlaylist.typeTag) {
          type = line + "\n"
        } else {
          break
        }
        bytes = end
      }
    }

    /// Tells that entries with captions were taken out.
    mutating func keepCaptions() {
      if !lines.contains(HLSCaptions.keptMark) { lines.append(HLSCaptions.keptMark) }
    }

    var text: String { lines.map { $0 + "\n" }.joined() + sequence.text + type }
  }
}
