import Foundation
import Testing

extension Conformance {
  /// Returns the faults of a directory's playlists and of the files that they name. Sources: RFC 8216 and its second
  /// edition (draft-pantos-hls-rfc8216bis, "8216bis"). Empty if all conform.
  ///
  /// - Parameter isWindow: whether first entries have been removed, so that the playlist has no type.
  public static func faults(ofPlaylistsIn directory: String, isWindow: Bool = false) throws -> [String] {
    var checker = PlaylistChecker(directory: directory, isWindow: isWindow)
    try checker.check()
    return checker.faults
  }
}

extension Conformance {
  /// Returns the captions of a directory's playlists, each once: its span in unix milliseconds and its text. They conform.
  public static func captions(ofPlaylistsIn directory: String, isWindow: Bool = false) throws -> [String] {
    var checker = PlaylistChecker(directory: directory, isWindow: isWindow)
    try checker.check()
    #expect(checker.faults == [])
    return checker.captions.map { "\($0.fromMs)–\($0.untilMs) \($0.text)" }
  }
}

private struct PlaylistChecker {
  let directory: String
  let isWindow: Bool
  private(set) var faults: [String] = []

  init(directory: String, isWindow: Bool) { (self.directory, self.isWindow) = (directory, isWindow) }

  /// A media segment in a playlist.
  private struct Segment {
    let uri: String
    let durationMs: Int
    let dateMs: Int?
    let map: String?
    let isGap: Bool
    let isBehindDiscontinuity: Bool
    let range: Range<Int>?

    /// Whether it lies in a pack, with others.
    var isPacked: Bool { uri.hasPrefix("../pack-") }
  }

  private struct Playlist {
    var tags: [String: [String]] = [:]
    var segments: [Segment] = []
    var targetMs = 0
  }

  private mutating func require(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds { faults.append(what()) }
  }

  private func file(_ name: String) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name))
  }

  mutating func check() throws {
    let media = try playlist("session.m3u8")
    // That of packs comes with the session's end.
    let isOpen = media.segments.contains(where: \.isPacked) && media.tags["EXT-X-ENDLIST"] == nil
    let keyFrames = isOpen ? nil : try playlist("iframes.m3u8")
    try checkMedia(media)
    if let keyFrames { try checkKeyFrames(keyFrames, of: media) }
    try checkMultivariant(media, keyFrames)
    try checkCaptions(of: media)
  }

  /// Returns the bytes of a map: the name of a file, or of a pack with a range.
  private func initialization(_ map: String) throws -> Data {
    let parts = map.split(separator: " ")
    let bytes = try file(String(parts[0]))
    return parts.count > 1 ? bytes.prefix(Int(parts[1]) ?? 0) : bytes
  }

  /// Returns the bytes of a media segment.
  private func bytes(of segment: Segment) throws -> Data {
    let bytes = try file(segment.uri)
    guard segment.isPacked, let range = segment.range else { return bytes }
    return Data(bytes.dropFirst(range.lowerBound).prefix(range.count))
  }

  // MARK: - Text

  private static let known = [
    "EXTM3U", "EXT-X-VERSION", "EXT-X-INDEPENDENT-SEGMENTS", "EXT-X-I-FRAMES-ONLY", "EXT-X-TARGETDURATION",
    "EXT-X-PLAYLIST-TYPE", "EXT-X-MAP", "EXT-X-PROGRAM-DATE-TIME", "EXT-X-BYTERANGE", "EXTINF", "EXT-X-GAP",
    "EXT-X-DISCONTINUITY", "EXT-X-ENDLIST", "EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE",
    "EXT-X-DATERANGE",
  ]

  private mutating func playlist(_ name: String) throws -> Playlist {
    let text = String(decoding: try file(name), as: UTF8.self)
    let lines = text.components(separatedBy: "\n")
    require(lines.first == "#EXTM3U", "8216, 4.3.1.1: \(name) does not begin with EXTM3U")
    require(lines.last == "", "8216, 4.1: the last line of \(name) has no end")
    var playlist = Playlist()
    var (duration, date, map, range) = (nil as Int?, nil as Int?, nil as String?, nil as Range<Int>?)
    var (isGap, isBehindDiscontinuity) = (false, false)
    var ids: Set<String> = []
    for line in lines.dropLast() {
      require(!line.isEmpty || line == lines.last, "an empty line in \(name)")
      if line.hasPrefix("#EXT") {
        let tag = String(line.dropFirst().prefix { $0 != ":" })
        let value = String(line.dropFirst(tag.count + 2))
        require(Self.known.contains(tag), "\(name): \(tag) is no tag of a media playlist")
        playlist.tags[tag, default: []].append(value)
        switch tag {
        case "EXT-X-TARGETDURATION": playlist.targetMs = (Int(value) ?? 0) * 1_000
        case "EXTINF":
          // The duration is in seconds, and the title is empty.
          require(value.wholeMatch(of: /\d+\.\d{3},/) != nil, "8216, 4.3.2.1: EXTINF:\(value)")
          duration = Int(value.filter(\.isNumber))
        case "EXT-X-PROGRAM-DATE-TIME":
          let formatter = ISO8601DateFormatter()
          formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
          date = formatter.date(from: value).map { Int(($0.timeIntervalSince1970 * 1_000).rounded()) }
          require(date != nil, "8216, 4.3.2.6: the date \(value)")
        case "EXT-X-MAP":
          let parts = value.wholeMatch(of: /URI="([^"]+)"(,BYTERANGE="(\d+)@0")?/)
          map = parts.map { "\($0.1)" + ($0.3.map { " \($0)" } ?? "") }
          require(map != nil, "8216, 4.3.2.5: MAP:\(value)")
        case "EXT-X-BYTERANGE":
          let numbers = value.split(separator: "@").compactMap { Int($0) }
          require(numbers.count == 2, "8216, 4.3.2.2: BYTERANGE:\(value)")
          range = numbers.count == 2 ? numbers[1]..<numbers[1] + numbers[0] : nil
        case "EXT-X-DATERANGE":
          let pattern = /ID="([^"]+)",CLASS="[^"]+",START-DATE="[^"]+Z"(,DURATION=\d+\.\d{3})?(,X-[A-Z-]+="[^"]*")*/
          let named = value.wholeMatch(of: pattern)
          require(named != nil, "8216bis, 4.4.5.1: DATERANGE:\(value)")
          require(named.map { ids.insert(String($0.1)).inserted } ?? true, "8216bis, 4.4.5.1: an ID twice: \(value)")
        case "EXT-X-GAP": isGap = true
        case "EXT-X-DISCONTINUITY": isBehindDiscontinuity = true
        default: break
        }
      } else if !line.hasPrefix("#") {
        require(duration != nil, "8216, 4.3.2.1: \(line) has no EXTINF")
        require(map != nil || isGap || name == "captions.m3u8", "8216, 3.3: no MAP before \(line)")
        playlist.segments.append(
          Segment(
            uri: line, durationMs: duration ?? 0, dateMs: date, map: map, isGap: isGap,
            isBehindDiscontinuity: isBehindDiscontinuity, range: range))
        (duration, date, range, isGap, isBehindDiscontinuity) = (nil, nil, nil, false, false)
      }
    }
    let isOver = playlist.tags["EXT-X-ENDLIST"] != nil
    let once = ["EXT-X-VERSION", "EXT-X-TARGETDURATION"] + (isWindow ? [] : ["EXT-X-PLAYLIST-TYPE"])
    for tag in once {
      require(playlist.tags[tag]?.count == 1, "8216, 4.3.3: not exactly one \(tag) in \(name)")
    }
    let version = playlist.tags["EXT-X-VERSION"]?.first.flatMap { Int($0) } ?? 0
    // 8216bis, 8: MAP outside playlists of key frames requires version 6, and GAP requires version 8.
    let needed = playlist.tags["EXT-X-GAP"] != nil ? 8 : 6
    require(version >= needed, "8216bis, 8: version \(version) of \(name)")
    for segment in playlist.segments {
      require(
        (segment.durationMs + 500) / 1_000 * 1_000 <= playlist.targetMs,
        "8216, 4.3.3.1: \(segment.uri) of \(name) lasts longer than the target duration")
    }
    require(
      playlist.tags["EXT-X-PLAYLIST-TYPE"]?.first.map { !isWindow && ($0 == "EVENT" || $0 == "VOD" && isOver) }
        ?? isWindow,
      "8216, 4.3.3.5: \(name) may change")
    return playlist
  }

  // MARK: - Media

  private mutating func checkMedia(_ playlist: Playlist) throws {
    require(playlist.tags["EXT-X-I-FRAMES-ONLY"] == nil, "8216, 4.3.3.6: session.m3u8 has key frames only")
    guard let startMs = playlist.segments.first(where: { $0.dateMs != nil })?.dateMs else {
      return require(playlist.segments.isEmpty, "8216, 4.3.2.6: no segment has a date")
    }
    var nowMs = startMs
    // Times in the fragments of a window count from the start of the session before anything was removed.
    var originMs = isWindow ? nil : startMs as Int?
    let hasPacks = playlist.segments.contains(where: \.isPacked)
    for segment in playlist.segments {
      // 8216bis, 4.4.4.6: dates agree with durations, except after discontinuities.
      if let dateMs = segment.dateMs, !segment.isBehindDiscontinuity {
        require(dateMs == nowMs, "8216, 6.2.1: \(segment.uri) is at \(dateMs), and \(nowMs) by the durations before")
      }
      nowMs = (segment.dateMs ?? nowMs) + segment.durationMs
      guard !segment.isGap, let map = segment.map else { continue }
      if segment.isPacked {
        try checkPacked(segment)
        continue
      }
      // A hold behind a pack, which is on the timeline of packs.
      if map.contains(" ") { continue }
      faults += try Conformance.faults(ofFragment: directory + "/" + segment.uri, initialization: directory + "/" + map)
        .map { "\(segment.uri): \($0)" }
      let fragment = Fragment(try file(segment.uri))
      require(
        fragment.ticks == UInt64(segment.durationMs) * 90,
        "8216, 4.3.2.1: \(segment.uri) lasts \(fragment.ticks) ticks, its EXTINF \(segment.durationMs) ms")
      // A copy of a segment in a pack has the times of packs.
      if hasPacks, fragment.start == UInt64((segment.dateMs ?? 0) % (1 << 36)) * 90 { continue }
      originMs = originMs ?? (segment.dateMs ?? 0) - Int(fragment.start / 90)
      require(
        fragment.start == UInt64((segment.dateMs ?? 0) - (originMs ?? startMs)) * 90,
        "8216, 3.3: \(segment.uri) begins at \(fragment.start) ticks")
    }
    for (before, after) in zip(playlist.segments, playlist.segments.dropFirst())
    where !before.isGap && !after.isGap && before.map != after.map {
      require(after.isBehindDiscontinuity, "8216, 4.3.2.3: another format without a discontinuity: \(after.uri)")
    }
  }

  /// Seams of packs are holes of half a second at most.
  private mutating func checkPacked(_ segment: Segment) throws {
    let bytes = try bytes(of: segment)
    let boxes = MP4Boxes.read(bytes)
    require(
      boxes.map(\.type) == ["moof", "mdat"] && boxes.reduce(0) { $0 + $1.size } == bytes.count,
      "8216, 4.3.2.2: the range of \(segment.uri) at \(segment.dateMs ?? 0) is no fragment")
    let fragment = Fragment(bytes)
    require(
      abs(Int(fragment.ticks) / 90 - segment.durationMs) <= 500,
      "8216, 4.3.2.1: \(segment.uri) lasts \(fragment.ticks) ticks, its EXTINF \(segment.durationMs) ms")
    require(
      segment.dateMs.map { fragment.start == UInt64($0 % (1 << 36)) * 90 } ?? false,
      "8216, 3.3: \(segment.uri) begins at \(fragment.start) ticks")
  }

  private mutating func checkKeyFrames(_ playlist: Playlist, of media: Playlist) throws {
    require(playlist.tags["EXT-X-I-FRAMES-ONLY"]?.count == 1, "8216, 4.3.3.6: iframes.m3u8 does not say what it is")
    func places(_ playlist: Playlist) -> [String] {
      playlist.segments.map { "\($0.uri) \($0.durationMs) \($0.dateMs ?? 0) \($0.map ?? "") \($0.isGap)" }
    }
    // Each fragment has exactly one key frame, at its start.
    require(places(playlist) == places(media), "8216, 4.3.3.6: a key frame does not last until the next")
    for segment in playlist.segments where !segment.isGap {
      guard let range = segment.range else {
        faults.append("8216, 4.3.3.6: no byte range for \(segment.uri)")
        continue
      }
      let bytes = try file(segment.uri)
      guard range.upperBound <= bytes.count else {
        faults.append("8216, 4.3.2.2: a byte range beyond the end of \(segment.uri)")
        continue
      }
      let start = segment.isPacked ? range.lowerBound : 0
      let fragment = Fragment(Data(bytes.dropFirst(start)))
      require(
        range == start + fragment.keyFrame.lowerBound..<start + fragment.keyFrame.upperBound,
        "8216, 4.3.3.6: \(segment.uri) has its key frame at \(fragment.keyFrame), the playlist says \(range)")
    }
  }

  private mutating func checkMultivariant(_ media: Playlist, _ keyFrames: Playlist?) throws {
    let lines = String(decoding: try file("multivariant.m3u8"), as: UTF8.self).components(separatedBy: "\n")
    require(lines.first == "#EXTM3U" && lines.last == "", "8216, 4.3.1.1: multivariant.m3u8")
    var codecs: Set<String> = []
    var largest = (width: 0, height: 0)
    // In playlist order: of sizes with equal pixel counts, the first one is the maximum.
    for map in media.segments.compactMap(\.map) {
      let entry = try #require(MP4Boxes.read(try initialization(map)).first { $0.type == "moov" }?.sampleEntry)
      codecs.insert(entry.codec)
      if entry.width * entry.height > largest.width * largest.height { largest = (entry.width, entry.height) }
    }
    for (tag, next, playlist) in [
      ("#EXT-X-STREAM-INF:", "session.m3u8", media), ("#EXT-X-I-FRAME-STREAM-INF:", nil, keyFrames),
    ] {
      guard let playlist else {
        require(!lines.contains { $0.hasPrefix(tag) }, "8216, 4.3.4.3: there is no playlist of key frames")
        continue
      }
      let places = lines.indices.filter { lines[$0].hasPrefix(tag) }
      guard let place = places.first, places.count == 1 else {
        faults.append("8216, 4.3.4: not exactly one \(tag)")
        continue
      }
      let line = String(lines[place].dropFirst(tag.count))
      let pairs = line.matches(of: /([A-Z-]+)=("[^"]*"|[^,]*)/).map { (String($0.1), String($0.2)) }
      let attributes = Dictionary(pairs) { first, _ in first }
      if let next {
        require(lines[place + 1] == next, "8216, 4.3.4.2: STREAM-INF is not followed by its playlist")
      } else {
        require(attributes["URI"] == "\"iframes.m3u8\"", "8216, 4.3.4.3: \(line)")
      }
      let named = attributes["CODECS"]?.filter { $0 != "\"" }.split(separator: ",").map(String.init) ?? []
      require(Set(named) == codecs && named.count == codecs.count, "8216, 4.3.4.2: CODECS \(named) of \(codecs)")
      require(attributes["RESOLUTION"] == "\(largest.width)x\(largest.height)", "8216, 4.3.4.2: \(line)")
      let bandwidth = attributes["BANDWIDTH"].flatMap { Int($0) } ?? 0
      let peak = try peakRate(of: playlist)
      // That of a growing playlist of packs is written again when it has doubled.
      require((keyFrames == nil ? 2 : 1) * bandwidth >= peak, "8216bis, 4.4.6.2: BANDWIDTH \(bandwidth) of \(peak)")
    }
  }

  // MARK: - Captions

  /// A caption of an entry, with its instants in unix milliseconds.
  private(set) var captions: [(fromMs: Int, untilMs: Int, text: String)] = []

  /// Checks that the playlist of captions agrees with that of the video, and that each file has the times of its fragment.
  private mutating func checkCaptions(of media: Playlist) throws {
    let multivariant = String(decoding: try file("multivariant.m3u8"), as: UTF8.self)
    let isThere = FileManager.default.fileExists(atPath: directory + "/captions.m3u8")
    require(
      multivariant.contains("#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"captions\"") == isThere
        && multivariant.contains(",SUBTITLES=\"captions\"") == isThere, "8216, 4.3.4.1: captions are not named")
    guard isThere else { return }
    let list = try playlist("captions.m3u8")
    for tag in [
      "EXT-X-TARGETDURATION", "EXT-X-PLAYLIST-TYPE", "EXT-X-ENDLIST", "EXT-X-MEDIA-SEQUENCE",
      "EXT-X-DISCONTINUITY-SEQUENCE",
    ] {
      require(list.tags[tag] == media.tags[tag], "8216, 6.2.4: \(tag) differs in captions.m3u8")
    }
    func places(_ playlist: Playlist) -> [String] {
      playlist.segments.map { "\($0.durationMs) \($0.dateMs ?? 0) \($0.isGap) \($0.isBehindDiscontinuity)" }
    }
    require(places(list) == places(media), "8216, 6.2.4: the entries of captions.m3u8 differ")
    for (entry, video) in zip(list.segments, media.segments) where !video.isGap {
      let start = video.isPacked || video.map?.contains(" ") ?? false ? nil : Fragment(try file(video.uri)).start
      try checkCaptions(entry, start: try start ?? Fragment(bytes(of: video)).start)
    }
  }

  private mutating func checkCaptions(_ entry: Segment, start: UInt64) throws {
    let parts = String(decoding: try file(entry.uri), as: UTF8.self).components(separatedBy: "\n\n")
    let head = try #require(
      parts[0].wholeMatch(of: /WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:(\d+),LOCAL:([\d:.]+)\n?/), "8216, 3.5: \(parts[0])")
    if entry.uri == "captions-none.vtt" { return require(parts.count == 1, "\(entry.uri) has cues") }
    require(
      UInt64(head.1) == start % (1 << 33), "8216, 3.5: \(entry.uri) is at \(head.1), its fragment at \(start)")
    let (dateMs, localMs) = (entry.dateMs ?? 0, Self.milliseconds(head.2))
    require(parts.count > 1, "\(entry.uri) has no cue")
    for part in parts.dropFirst() {
      let cue = try #require(part.wholeMatch(of: /([\d:.]+) --> ([\d:.]+)\n((?s).+?)\n?/), "no cue: \(part)")
      let (fromMs, untilMs) = (Self.milliseconds(cue.1) - localMs + dateMs, Self.milliseconds(cue.2) - localMs + dateMs)
      require(
        fromMs < untilMs && fromMs < dateMs + entry.durationMs && untilMs > dateMs,
        "8216, 3.5: \(entry.uri) has a cue that it does not show: \(part)")
      if !captions.contains(where: { $0 == (fromMs, untilMs, String(cue.3)) }) {
        captions.append((fromMs, untilMs, String(cue.3)))
      }
    }
  }

  private static func milliseconds(_ clock: some StringProtocol) -> Int {
    let parts = clock.split { ":.".contains($0) }.compactMap { Int($0) }
    return parts.count == 4 ? ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1_000 + parts[3] : -1
  }

  /// The largest bit rate of adjacent segments whose total duration is 0.5 to 1.5 target durations.
  private func peakRate(of playlist: Playlist) throws -> Int {
    let segments = try playlist.segments.map { segment in
      (bits: 8 * (segment.isGap ? 0 : try segment.range?.count ?? bytes(of: segment).count), ms: segment.durationMs)
    }
    var peak = 0
    for first in segments.indices {
      var (bits, ms) = (0, 0)
      for segment in segments[first...] {
        (bits, ms) = (bits + segment.bits, ms + segment.ms)
        if 2 * ms > 3 * playlist.targetMs { break }
        if 2 * ms >= playlist.targetMs { peak = max(peak, bits * 1_000 / ms) }
      }
    }
    return peak
  }
}

/// The contents of a fragment's boxes.
private struct Fragment {
  let start: UInt64
  let ticks: UInt64
  let keyFrame: Range<Int>

  init(_ bytes: Data) {
    let boxes = MP4Boxes.read(bytes)
    let before = boxes.prefix { $0.type != "moof" }.reduce(0) { $0 + $1.size }
    let movie = boxes.first { $0.type == "moof" }
    let run = movie?["traf"]?["trun"]?.body ?? Data()
    let count = Int(run.integer(at: 4, bytes: 4))
    start = movie?["traf"]?["tfdt"]?.body.integer(at: 4, bytes: 8) ?? .max
    // Durations and sizes follow the version and flags, the count, the offset and the first sample's flags.
    ticks = (0..<count).reduce(0) { $0 + run.integer(at: 16 + 8 * $1, bytes: 4) }
    let size = Int(run.integer(at: 20, bytes: 4))
    // The offset counts from `moof`.
    keyFrame = before..<before + Int(run.integer(at: 8, bytes: 4)) + size
  }
}

extension MP4Boxes.Box {
  /// The codec and size of a movie's only track.
  fileprivate var sampleEntry: (codec: String, width: Int, height: Int)? {
    guard let table = self["trak"]?["mdia"]?["minf"]?["stbl"]?["stsd"],
      let entry = MP4Boxes.read(Data(table.body.dropFirst(8))).first
    else { return nil }
    let record = MP4Boxes.read(Data(entry.body.dropFirst(78))).first { $0.type == "avcC" }?.body ?? Data()
    let level = record.dropFirst().prefix(3).map { String(format: "%02X", $0) }.joined()
    return (
      "\(entry.type).\(level)", Int(entry.body.integer(at: 24, bytes: 2)), Int(entry.body.integer(at: 26, bytes: 2))
    )
  }
}
