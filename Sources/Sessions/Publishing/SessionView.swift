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
  private(set) var frames = 0
  private(set) var bytes = 0
  /// The last segments that it lists, at least one: all, unless it was read from files.
  private var entries: [SessionEntry]
  /// The text between the brackets of `gaps`, without the one behind the last segment.
  private var gaps: [UInt8] = []
  /// The text between the brackets of `segments`.
  private var list: [UInt8] = []
  /// The script up to the last segment, whose length depends on what follows.
  private var script = Array("ffconcat version 1.0\n".utf8)

  /// Of one of the files, in bytes: some 300 000 segments.
  package static let maximumBytes = 64 << 20

  /// - Parameter entries: of all segments, in the order of their starts.
  /// - Returns: nil when there is none.
  init?(session: SessionID, entries: [SessionEntry]) {
    guard let first = entries.first else { return nil }
    self.session = session
    startMs = first.startMs
    self.entries = []
    for entry in entries { append(entry) }
  }

  /// - Parameter segments: in the order of their starts.
  /// - Returns: nil when there is none.
  package init?(session: SessionID, segments: [PublishedSegment]) {
    self.init(session: session, entries: segments.map(\.entry))
  }

  /// The videos that `session.json` lists; found by how we write it, since a long one takes much memory as JSON.
  ///
  /// - Returns: none where it is another session's.
  package static func videos(in json: [UInt8], of session: SessionID) -> [String] {
    json.withUnsafeBytes { json in
      places(of: "\"session\":\"\(session)\"", in: json).isEmpty ? [] : videos(in: json)
    }
  }

  private static func videos(in list: UnsafeRawBufferPointer) -> [String] {
    // A quote in a string has a backslash before it, so no other text looks like this.
    places(of: "\"file\":\"", in: list).compactMap { start in
      let name = String(decoding: list[start..<min(list.count, start + 25)], as: UTF8.self)
      return SegmentName.start(ofVideo: name) == nil ? nil : name
    }
  }

  /// The starts of the last segments that `session.json` lists, in order: `most` of them, or some more.
  static func lastStarts(in json: some Collection<UInt8>, most: Int) -> [Int64] {
    // An entry takes some 220 bytes.
    Array(json.suffix(300 * (most + 2))).withUnsafeBytes { videos(in: $0) }.compactMap {
      SegmentName.start(ofVideo: $0)
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

  /// Brings the view that wrote these files up to date: it takes out the segments behind the first that is not listed, and adds
  /// what follows.
  ///
  /// - Parameters:
  ///   - starts: of the session's last segments, in order. Earlier segments are kept as they are listed.
  ///   - entry: returns the segment that starts then. It is asked for those that are taken out and added, and one before.
  /// - Returns: the view, and how many of `starts` stayed as they were; nil when the files are not of this form, or do not list the
  ///   first of `starts`.
  package static func extending(
    json: [UInt8], script: [UInt8], of session: SessionID, to starts: [Int64], _ entry: (Int64) throws -> SessionEntry
  ) rethrows -> (view: SessionView, kept: Int)? {
    guard let parts = parts(of: json, session: session), let first = starts.first else { return nil }
    let listed = lastStarts(in: parts.list, most: starts.count + 64).filter { $0 >= first }
    let kept = zip(listed, starts).prefix { $0 == $1 }.count
    guard kept > 0,
      var view = try SessionView(
        session: session, entries: listed[(kept - 1)...].map(entry), parts, json: json, script: script)
    else { return nil }
    for _ in kept..<listed.count where !view.removeLast() { return nil }
    for start in starts[kept...] { view.append(try entry(start)) }
    return (view, kept)
  }

  /// - Parameter entries: the last segments that the files list, at least one.
  /// - Returns: nil when the files are not of this form, or end with another segment.
  private init?(
    session: SessionID, entries: [SessionEntry],
    _ parts: (members: JSONValue, gaps: ArraySlice<UInt8>, list: ArraySlice<UInt8>), json: [UInt8], script: [UInt8]
  ) {
    let last = entries[entries.count - 1]
    guard let frames = parts.members.object?["frames"]?.integer, let bytes = parts.members.object?["bytes"]?.integer,
      // Files of another form cannot be extended.
      (0...(1 << 52)).contains(frames), (0...(1 << 52)).contains(bytes),
      let startMs = parts.members.object?["startMs"]?.integer, (0...last.startMs).contains(startMs)
    else { return nil }
    self.session = session
    self.startMs = startMs
    self.frames = Int(frames)
    self.bytes = Int(bytes)
    self.entries = entries
    gaps = Array(parts.gaps)
    list = Array(parts.list)
    self.script = script
    // The rest is as it was written, or the cache would not be valid.
    guard list.ends(with: Self.entry(last)),
      self.script.remove(ending: Self.scriptEntry(last, lengthMs: last.durationMs)),
      last.closingGap.map({ gaps.remove(ending: Self.item($0.json.bytes(), after: $0.json.bytes() != gaps)) }) ?? true,
      json.starts(with: head), json.ends(with: tail)
    else { return nil }
  }

  /// The parts of `session.json`: its members without the lists, and the text between the lists' brackets.
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

  /// Adds a segment that starts after the last one.
  private mutating func append(_ entry: SessionEntry) {
    if let last = entries.last {
      script += Self.scriptEntry(last, lengthMs: entry.startMs - last.startMs)
      if let gap = last.gap(before: entry) { gaps += Self.item(gap.json.bytes(), after: !gaps.isEmpty) }
    }
    list += Self.item(Self.entry(entry), after: !entries.isEmpty)
    frames += entry.captured
    bytes += entry.bytes
    entries.append(entry)
  }

  /// Takes the last segment out again. The one before it is known.
  ///
  /// - Returns: whether the two were what the view ends with; when not, it is of no use any more.
  private mutating func removeLast() -> Bool {
    let last = entries.removeLast()
    guard let previous = entries.last else { return false }
    let gap = previous.gap(before: last)?.json.bytes()
    frames -= last.captured
    bytes -= last.bytes
    return list.remove(ending: Self.item(Self.entry(last), after: true))
      && script.remove(ending: Self.scriptEntry(previous, lengthMs: last.startMs - previous.startMs))
      && gap.map { gaps.remove(ending: Self.item($0, after: $0 != gaps)) } ?? true
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

  private var last: SessionEntry { entries[entries.count - 1] }
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

  private static func entry(_ segment: SessionEntry) -> [UInt8] {
    JSONValue.object([
      "file": .string(segment.file), "startMs": .number(segment.startMs), "durationMs": .number(segment.durationMs),
      "width": .number(segment.width), "height": .number(segment.height), "bytes": .number(segment.bytes),
      "sha256": .string(segment.sha256), "frames": .number(segment.frames),
    ]).bytes()
  }

  /// For stock ffmpeg: each file lasts until the next one starts, so that seams close and gaps are held. Where the next
  /// one starts early, `outpoint` leaves out what would lie behind its start.
  private static func scriptEntry(_ segment: SessionEntry, lengthMs: Int64) -> [UInt8] {
    let outpoint = lengthMs < segment.durationMs ? "outpoint \(lengthMs.secondsText)\n" : ""
    return Array("file \(segment.file)\n\(outpoint)duration \(lengthMs.secondsText)\n".utf8)
  }
}

extension SessionIndex.Gap {
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
