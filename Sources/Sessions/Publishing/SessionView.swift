// `session.json` and `session.ffconcat`, made by adding a segment at a time: behind a day's segments one more costs what it
// costs behind none. Pure.

import CLinux
import Encoding
import FrameBatches
import ISOMedia
import JSON

package struct SessionView {
  package let session: SessionID
  package let startMs: Int64
  private var last: PublishedSegment
  private var frames: Int
  private var bytes: Int
  /// What stands between the brackets of `gaps`, but for the one behind the last segment.
  private var gaps: [UInt8]
  /// What stands between the brackets of `segments`.
  private var list: [UInt8]
  /// The script up to the last segment, whose length depends on what follows.
  private var script: [UInt8]

  /// Of one of the files, in bytes: some 300 000 segments.
  package static let mostBytes = 64 << 20

  private static let scriptHead = Array("ffconcat version 1.0\n".utf8)

  package init(session: SessionID, first: PublishedSegment) {
    self.session = session
    startMs = first.startMs
    last = first
    frames = first.capturedFrames
    bytes = first.bytes
    gaps = []
    list = Self.entry(first)
    script = Self.scriptHead
  }

  /// - Parameter segments: in the order of their starts.
  /// - Returns: nil when there is none.
  package init?(session: SessionID, segments: [PublishedSegment]) {
    guard let first = segments.first else { return nil }
    self.init(session: session, first: first)
    for segment in segments.dropFirst() { append(segment) }
  }

  /// The videos that `session.json` lists; found by how we write it, since a long one takes much memory as JSON.
  ///
  /// - Returns: none where it is another session's.
  package static func videos(in json: [UInt8], of session: SessionID) -> [String] {
    json.withUnsafeBytes { json in
      guard !places(of: "\"session\":\"\(session)\"", in: json).isEmpty else { return [] }
      // A quote in a string has a backslash before it, so nobody's text looks like this.
      return places(of: "\"file\":\"", in: json).compactMap { start in
        let name = String(decoding: json[start..<min(json.count, start + 25)], as: UTF8.self)
        return SegmentName.start(ofVideo: name) == nil ? nil : name
      }
    }
  }

  /// Where a text ends, each time that it is there.
  private static func places(of text: String, in bytes: UnsafeRawBufferPointer) -> [Int] {
    guard let start = bytes.baseAddress else { return [] }
    let wanted = Array(text.utf8)
    var (places, offset) = ([Int](), 0)
    while let found = memmem(start + offset, bytes.count - offset, wanted, wanted.count) {
      offset = UnsafeRawPointer(found) - start + wanted.count
      places.append(offset)
    }
    return places
  }

  /// The view that wrote these files.
  ///
  /// - Parameter last: the last segment they tell of.
  /// - Returns: nil when they are not of this form, or end with another segment.
  package init?(session: SessionID, last: PublishedSegment, json: [UInt8], script: [UInt8]) {
    guard let parts = Self.parts(of: json, session: session), let members = parts.members.object,
      let frames = members["frames"]?.integer, let bytes = members["bytes"]?.integer,
      // What somebody else wrote could not be added to.
      (0...(1 << 52)).contains(frames), (0...(1 << 52)).contains(bytes),
      let startMs = members["startMs"]?.integer, (0...last.startMs).contains(startMs)
    else { return nil }
    self.init(
      session: session, startMs, last, Int(frames), Int(bytes),
      gaps: Array(parts.gaps), list: Array(parts.list), script: script)
    // What lies between is as it was written, or the note would not hold.
    guard self.list.ends(with: Self.entry(last)),
      self.script.remove(ending: Self.scriptEntry(last, lengthMs: last.durationMs)),
      last.closingGap.map({ self.gaps.remove(ending: Self.item($0.json.bytes(), after: $0.json.bytes() != self.gaps)) })
        ?? true,
      json.starts(with: self.head), json.ends(with: self.tail)
    else { return nil }
  }

  /// What `session.json` consists of: its members but the lists, and what stands between the lists' brackets.
  ///
  /// - Returns: nil when it is not as we write it.
  package static func parts(
    of json: [UInt8], session: SessionID
  ) -> (members: JSONValue, gaps: ArraySlice<UInt8>, list: ArraySlice<UInt8>)? {
    guard let gaps = json.offset(of: gapsOpening), let list = json.offset(of: listOpening, from: gaps),
      let end = json.lastOffset(of: listClosing(session)), list + listOpening.count <= end,
      let head = try? JSONParser.parse(json[..<gaps] + [UInt8(ascii: "}")]),
      let tail = try? JSONParser.parse([UInt8(ascii: "{")] + json[(end + 2)...]), let rest = tail.object
    else { return nil }
    return (
      head.setting(rest), json[(gaps + gapsOpening.count)..<list], json[(list + listOpening.count)..<end]
    )
  }

  private init(
    session: SessionID, _ startMs: Int64, _ last: PublishedSegment, _ frames: Int, _ bytes: Int, gaps: [UInt8],
    list: [UInt8], script: [UInt8]
  ) {
    self.session = session
    self.startMs = startMs
    self.last = last
    self.frames = frames
    self.bytes = bytes
    self.gaps = gaps
    self.list = list
    self.script = script
  }

  /// Adds a segment that starts after the last one.
  package mutating func append(_ segment: PublishedSegment) {
    script += Self.scriptEntry(last, lengthMs: segment.startMs - last.startMs)
    if let gap = last.gap(before: segment) { gaps += Self.item(gap.json.bytes(), after: !gaps.isEmpty) }
    list += Self.item(Self.entry(segment), after: true)
    frames += segment.capturedFrames
    bytes += segment.bytes
    last = segment
  }

  /// Takes the last segment out again.
  ///
  /// - Parameter previous: the one before it.
  /// - Returns: whether the two were what the view ends with; when not, it is of no use any more.
  package mutating func removeLast(before previous: PublishedSegment) -> Bool {
    let gap = previous.gap(before: last)?.json.bytes()
    guard list.remove(ending: Self.item(Self.entry(last), after: true)),
      script.remove(ending: Self.scriptEntry(previous, lengthMs: last.startMs - previous.startMs)),
      gap.map({ gaps.remove(ending: Self.item($0, after: $0 != gaps)) }) ?? true
    else { return false }
    frames -= last.capturedFrames
    bytes -= last.bytes
    last = previous
    return true
  }

  /// Adds segments wherever they belong behind the first one.
  ///
  /// - Parameters:
  ///   - new: in no order.
  ///   - told: the starts of segments that the view tells of, in order; at least all that come after the first new one, and one
  ///     before it.
  ///   - segment: what is published at a start.
  /// - Returns: the new ones and those behind them, in order; nil when the view is of no use any more.
  package mutating func add(
    _ new: [PublishedSegment], told: [Int64], _ segment: (Int64) throws -> PublishedSegment
  ) throws -> [PublishedSegment]? {
    guard let first = new.map(\.startMs).min(), let least = told.first, least < first else { return nil }
    // What comes after the first new one is taken out and added again.
    let later = try told.filter { $0 > first }.map(segment)
    for previous in told.dropLast().suffix(later.count).reversed() {
      guard removeLast(before: try segment(previous)) else { return nil }
    }
    let added = (later + new).sorted { $0.startMs < $1.startMs }
    for segment in added { append(segment) }
    return added
  }

  /// Both forms, by file name.
  package var files: [(name: String, bytes: [UInt8])] {
    [
      (Self.jsonFile, json),
      (Self.scriptFile, script + Self.scriptEntry(last, lengthMs: last.durationMs)),
    ]
  }

  package static let jsonFile = "session.json"
  static let scriptFile = "session.ffconcat"

  private var endMs: Int64 { last.endMs + last.gapAfterMs }

  /// Keys in their order: what comes before the lists and after them is made anew each time.
  private var json: [UInt8] {
    let (head, tail) = (head, tail)
    let closing = last.closingGap.map { Self.item($0.json.bytes(), after: !gaps.isEmpty) } ?? []
    var text: [UInt8] = []
    text.reserveCapacity(head.count + gaps.count + list.count + tail.count + 200)
    for part in [head, gaps, closing, Self.listOpening, list, tail] { text += part }
    return text
  }

  private var head: [UInt8] {
    let members = JSONValue.object([
      "bytes": .number(bytes), "complete": .bool(last.isFinal), "durationMs": .number(endMs - startMs),
      "endMs": .number(endMs), "format": .string("session-manifest/1"), "frames": .number(frames),
    ])
    return members.bytes().dropLast() + Self.gapsOpening
  }

  private var tail: [UInt8] { Self.listClosing(session) + Array("\"startMs\":\(startMs)}\n".utf8) }

  private static let gapsOpening = Array(",\"gaps\":[".utf8)
  private static let listOpening = Array("],\"segments\":[".utf8)

  /// A list's item, behind others.
  private static func item(_ text: [UInt8], after others: Bool) -> [UInt8] {
    others ? [UInt8(ascii: ",")] + text : text
  }

  private static func listClosing(_ session: SessionID) -> [UInt8] {
    Array("],\"session\":".utf8) + JSONValue.string(session.description).bytes() + [UInt8(ascii: ",")]
  }

  private static func entry(_ segment: PublishedSegment) -> [UInt8] {
    JSONValue.object([
      "file": .string(segment.file), "startMs": .number(segment.startMs), "durationMs": .number(segment.durationMs),
      "width": .number(segment.width), "height": .number(segment.height), "bytes": .number(segment.bytes),
      "sha256": .string(segment.sha256), "frames": .number(segment.frames.count),
    ]).bytes()
  }

  /// The script of segments that are told of like this, in order.
  package static func script(of listed: [(file: String, startMs: Int64, durationMs: Int64)]) -> [UInt8] {
    var script = scriptHead
    for (index, segment) in listed.enumerated() {
      let lengthMs = index + 1 < listed.count ? listed[index + 1].startMs - segment.startMs : segment.durationMs
      script += scriptEntry(segment.file, segment.durationMs, lengthMs: lengthMs)
    }
    return script
  }

  /// For stock ffmpeg: each file lasts until the next one starts, so that seams close and gaps are held. Where the next
  /// one starts early, `outpoint` leaves out what would lie behind its start.
  private static func scriptEntry(_ segment: PublishedSegment, lengthMs: Int64) -> [UInt8] {
    scriptEntry(segment.file, segment.durationMs, lengthMs: lengthMs)
  }

  private static func scriptEntry(_ file: String, _ durationMs: Int64, lengthMs: Int64) -> [UInt8] {
    let outpoint = lengthMs < durationMs ? "outpoint \(lengthMs.secondsText)\n" : ""
    return Array("file \(file)\n\(outpoint)duration \(lengthMs.secondsText)\n".utf8)
  }
}

extension PublishedSegment {
  /// Continued ones belong to the segment before.
  fileprivate var capturedFrames: Int { frames.count { $0.isCaptured } }

  /// The gap behind the session's last segment.
  fileprivate var closingGap: SessionManifest.Gap? {
    gapAfterMs > 0 ? SessionManifest.Gap(startMs: endMs, endMs: endMs + gapAfterMs) : nil
  }
}

extension SessionManifest.Gap {
  fileprivate var json: JSONValue { .object(["startMs": .number(startMs), "endMs": .number(endMs)]) }
}

extension [UInt8] {
  fileprivate func ends(with ending: [UInt8]) -> Bool { suffix(ending.count).elementsEqual(ending) }

  /// - Returns: whether it was there.
  fileprivate mutating func remove(ending: [UInt8]) -> Bool {
    guard ends(with: ending) else { return false }
    removeLast(ending.count)
    return true
  }

  /// Where these bytes are first.
  fileprivate func offset(of text: [UInt8], from start: Int = 0) -> Int? {
    guard text.count <= count - start else { return nil }
    return (start...(count - text.count)).first { isThere(text, at: $0) }
  }

  /// Where these bytes are last.
  fileprivate func lastOffset(of text: [UInt8]) -> Int? {
    guard text.count <= count else { return nil }
    return (0...(count - text.count)).last { isThere(text, at: $0) }
  }

  private func isThere(_ text: [UInt8], at offset: Int) -> Bool {
    self[offset] == text[0] && self[offset..<(offset + text.count)].elementsEqual(text)
  }
}
