// The text of `session.json` and `session.ffconcat`. That of a long session is read from the files, and segments are added at its
// end, or taken out at its beginning. Pure.

import CLinux
import Encoding
import FrameBatches
import ISOMedia
import JSON

package struct IndexText {
  package static let jsonFile = "session.json"
  package static let scriptFile = "session.ffconcat"
  /// Maximum size of a view's file in bytes: some 300 000 segments.
  package static let maximumBytes = 64 << 20

  /// The totals, and the last segments that the view lists, at least one: all, unless it was read from files.
  var index: SessionIndex
  /// The text between the brackets of `gaps`, without the one behind the last segment.
  var gaps: [UInt8] = []
  /// The length of those gaps in milliseconds.
  private var gapsMs: Int64 = 0
  /// The figures of the gaps between batches, which segments do not have.
  private var between = HealthFigures()
  /// The text between the brackets of `segments`.
  var list: [UInt8] = []
  /// The script up to the last segment, whose length depends on what follows.
  var script = scriptHead
  static let scriptHead = Array("ffconcat version 1.0\n".utf8)

  /// - Parameter index: lists all segments of the session.
  package init(_ index: SessionIndex) {
    self.index = index
    write(index.entries[0], after: nil)
    for (previous, entry) in zip(index.entries, index.entries.dropFirst()) { write(entry, after: previous) }
  }

  /// Returns the size of all videos and whether the session is complete, from the beginning of `session.json`; nil if it is no such
  /// file of ours.
  static func head(of json: [UInt8]) -> (bytes: Int, isComplete: Bool)? {
    let words = String(decoding: json.prefix(64), as: UTF8.self).split { "{\":,".contains($0) }
    guard words.count > 3, words[0] == "bytes", let bytes = Int(words[1]), bytes >= 0, words[2] == "complete" else {
      return nil
    }
    return (bytes, words[3] == "true")
  }

  /// Returns the names of the videos that `session.json` lists; none if it is another session's. They are found by how we write
  /// them, since a long file takes much memory as JSON.
  package static func videos(in json: [UInt8], of session: SessionID) -> [String] {
    json.offset(of: Array("\"session\":\"\(session)\"".utf8)) == nil ? [] : videos(in: json)
  }

  private static func videos(in json: [UInt8]) -> [String] {
    // A quote in a string has a backslash before it, so no other text looks like this.
    let opening = Array("\"file\":\"".utf8)
    var names: [String] = []
    var end = 0
    while let start = json.offset(of: opening, from: end) {
      end = start + opening.count
      let name = String(decoding: json[end..<min(json.count, end + 25)], as: UTF8.self)
      if SegmentName.start(ofVideo: name) != nil { names.append(name) }
    }
    return names
  }

  /// Whether `session.ffconcat` names a file.
  static func names(_ file: String, in script: [UInt8]) -> Bool {
    script.offset(of: Array("file \(file)\n".utf8)) != nil
  }

  /// Returns the starts of the last segments that `session.json` lists, in order.
  ///
  /// - Parameter count: the least number to return, if there are as many.
  static func lastStarts(in json: some Collection<UInt8>, _ count: Int) -> [Int64] {
    // An entry takes some 220 bytes.
    videos(in: Array(json.suffix(300 * (count + 2)))).compactMap { SegmentName.start(ofVideo: $0) }
  }

  /// Returns the view that wrote these files, brought up to date: without the segments behind the first that is not listed, and
  /// with those that follow.
  ///
  /// - Parameters:
  ///   - starts: of the session's last segments, in order. Earlier segments are kept as they are listed.
  ///   - entry: returns the segment that starts then. It is called for those that are taken out and added, and one before.
  /// - Returns: the view, and the number of `starts` that stayed as they were; nil if the files are not of this form, or do not
  ///   list the first of `starts`.
  static func extending(
    json: [UInt8], script: [UInt8], of session: SessionID, to starts: [Int64], _ entry: (Int64) throws -> SessionEntry
  ) rethrows -> (view: IndexText, kept: Int)? {
    guard let parts = parts(of: json, session: session), let first = starts.first else { return nil }
    let listed = lastStarts(in: parts.list, starts.count + 64).filter { $0 >= first }
    let kept = zip(listed, starts).prefix { $0 == $1 }.count
    guard kept > 0,
      var view = try IndexText(parts, listed[(kept - 1)...].map(entry), of: session, json: json, script: script)
    else { return nil }
    // Without a final segment the session may not be complete any more.
    for _ in kept..<listed.count where view.index.last.isFinal || !view.removeLast() { return nil }
    let added = try starts[kept...].map(entry)
    for (previous, entry) in zip([view.index.last] + added, added) { view.write(entry, after: previous) }
    view.index.add(added)
    return (view, kept)
  }

  /// - Parameter entries: the last segments that the files list, at least one.
  /// - Returns: nil if the files are not of this form, or end with another segment.
  init?(_ parts: Parts, _ entries: [SessionEntry], of session: SessionID, json: [UInt8], script: [UInt8]) {
    let last = entries[entries.count - 1]
    let health = parts.members.object?[SegmentHealth.key]
    guard
      let totals = try? RecordingTotals(
        counts: health?.object?["counts"], labels: parts.members.object?[SegmentLabels.key]),
      let frames = try? parts.members.count("frames"), let bytes = try? parts.members.count("bytes"),
      let startMs = try? parts.members.count("startMs"),
      let isComplete = try? parts.members.required("complete", .bool)
    else { return nil }
    index = SessionIndex(
      session: session, startMs: startMs, count: parts.segmentCount, frames: Int(frames), bytes: Int(bytes),
      totals: totals, entries: entries, isComplete: isComplete)
    if let figures = health?.object?[Self.betweenKey] {
      guard let between = try? HealthFigures(figures) else { return nil }
      self.between = between
    }
    (gaps, gapsMs) = (Array(parts.gaps), Self.lengthMs(ofGaps: parts.gaps) - (last.closingGap?.lengthMs ?? 0))
    list = Array(parts.list)
    self.script = script
    guard list.ends(with: Self.entry(last)),
      self.script.remove(ending: Self.scriptEntry(last, lengthMs: last.durationMs)),
      last.closingGap.map({ gaps.remove(ending: Self.item($0.json.bytes(), after: $0.json.bytes() != gaps)) }) ?? true,
      json.starts(with: head), json.ends(with: tail), parts.middle.elementsEqual(middle)
    else { return nil }
  }

  /// `session.json` in parts.
  package struct Parts {
    /// The members without the lists.
    package let members: JSONValue
    /// The texts between the brackets of the lists.
    let gaps: ArraySlice<UInt8>
    /// The text between the lists, with the brackets around it.
    let middle: ArraySlice<UInt8>
    let list: ArraySlice<UInt8>

    package var gapCount: Int { gaps.count { $0 == UInt8(ascii: "{") } }
    package var segmentCount: Int { list.count { $0 == UInt8(ascii: "{") } }
  }

  /// Returns the parts of `session.json`; nil if it is not in the form that we write.
  package static func parts(of json: [UInt8], session: SessionID) -> Parts? {
    let tail = json.suffix(tailBytes)
    guard let gaps = json.offset(of: gapsOpening), let closing = json.offset(of: gapsClosing, from: gaps),
      let list = json.offset(of: listOpening, from: closing),
      let end = json.offset(of: listClosing(session), from: tail.startIndex), list + listOpening.count <= end,
      let head = try? JSONParser.parse(json[..<gaps] + [UInt8(ascii: "}")]),
      let middle = try? JSONParser.parse(json[(closing + 1)..<list].bracketed),
      let tail = try? JSONParser.parse([UInt8(ascii: "{")] + json[(end + 2)...]), let rest = tail.object,
      let facts = middle.object
    else { return nil }
    return Parts(
      members: head.setting(rest).setting(facts), gaps: json[(gaps + gapsOpening.count)..<closing],
      middle: json[closing..<(list + listOpening.count)],
      list: json[(list + listOpening.count)..<end])
  }

  /// Writes a segment that starts after the last one.
  private mutating func write(_ entry: SessionEntry, after last: SessionEntry?) {
    if let last {
      script += Self.scriptEntry(last, before: entry)
      if let gap = last.gap(before: entry) {
        gaps += Self.item(gap.json.bytes(), after: !gaps.isEmpty)
        gapsMs += gap.lengthMs
      }
      if let figures = last.figures(before: entry) { between.add(figures) }
    }
    list += Self.item(Self.entry(entry), after: last != nil)
  }

  /// Takes out the last segment. The one before it must be listed.
  ///
  /// - Returns: whether the view ended with the two; if not, it is of no use any more.
  private mutating func removeLast() -> Bool {
    let (last, previous) = (index.removeLast(), index.last)
    let unrecorded = previous.gap(before: last)
    let gap = unrecorded?.json.bytes()
    gapsMs -= unrecorded?.lengthMs ?? 0
    if let figures = previous.figures(before: last) { between.remove(figures) }
    return list.remove(ending: Self.item(Self.entry(last), after: true))
      && script.remove(ending: Self.scriptEntry(previous, before: last))
      && gap.map { gaps.remove(ending: Self.item($0, after: $0 != gaps)) } ?? true
  }

  /// Both files, by name.
  package var files: [(name: String, bytes: [UInt8])] {
    [
      (IndexText.jsonFile, json),
      (IndexText.scriptFile, script + Self.scriptEntry(index.last, lengthMs: index.last.durationMs)),
    ]
  }

  /// Keys in their order: what comes before the lists and after them is made anew each time.
  private var json: [UInt8] {
    let (head, middle, tail) = (head, middle, tail)
    let closing = index.last.closingGap.map { Self.item($0.json.bytes(), after: !gaps.isEmpty) } ?? []
    var text: [UInt8] = []
    text.reserveCapacity(head.count + gaps.count + middle.count + list.count + tail.count + 200)
    for part in [head, gaps, closing, middle, list, tail] { text += part }
    return text
  }

  private var head: [UInt8] {
    let members: [String: JSONValue] = [
      "bytes": .number(index.bytes), "complete": .bool(index.isComplete), "durationMs": .number(index.durationMs),
      "endMs": .number(index.endMs), "format": .string("session-manifest/1"), "frames": .number(index.frames),
    ]
    return JSONValue.object(members).bytes().dropLast() + Self.gapsOpening
  }

  /// The text between the lists.
  private var middle: [UInt8] {
    var members: [String: JSONValue] = [:]
    members[SegmentHealth.key] = health?.extensibleJSON
    if !index.totals.labels.isEmpty { members[SegmentLabels.key] = index.totals.labels.json }
    let text = JSONValue.object(members).bytes().dropFirst().dropLast()
    return Self.gapsClosing + (text.isEmpty ? [] : text + [UInt8(ascii: ",")]) + Self.listOpening
  }

  /// The health of the session; nil if it is unknown.
  private var health: HealthSummary? {
    index.health(between: between, gapsMs: gapsMs + (index.last.closingGap?.lengthMs ?? 0))
  }

  /// The member of `health` with the figures of the gaps between batches.
  private static let betweenKey = "between"

  /// Returns the length of all gaps of the text between the brackets of `gaps`: `{"endMs":9,"startMs":4},…`.
  private static func lengthMs(ofGaps text: ArraySlice<UInt8>) -> Int64 {
    var (lengthMs, sign): (Int64, Int64) = (0, 1)
    var number: Int64?
    for byte in text {
      if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
        number = (number ?? 0) &* 10 &+ Int64(byte - UInt8(ascii: "0"))
      } else if let found = number {
        (lengthMs, sign, number) = (lengthMs &+ sign &* found, -sign, nil)
      }
    }
    return lengthMs
  }

  private var tail: [UInt8] { Self.listClosing(index.session) + Array("\"startMs\":\(index.startMs)}\n".utf8) }
  /// More bytes than a tail has: a session's name has 128 at most.
  private static let tailBytes = 256

  private static let gapsOpening = Array(",\"gaps\":[".utf8)
  private static let gapsClosing = Array("],".utf8)
  private static let listOpening = Array("\"segments\":[".utf8)

  /// A list's item, behind others.
  static func item(_ text: [UInt8], after others: Bool) -> [UInt8] {
    others ? [UInt8(ascii: ",")] + text : text
  }

  private static func listClosing(_ session: SessionID) -> [UInt8] {
    Array("],\"session\":".utf8) + JSONValue.string(session.description).bytes() + [UInt8(ascii: ",")]
  }

  static func entry(_ segment: SessionEntry) -> [UInt8] {
    var members: [String: JSONValue] = [
      "file": .string(segment.file), "startMs": .number(segment.startMs), "durationMs": .number(segment.durationMs),
      "width": .number(segment.width), "height": .number(segment.height), "bytes": .number(segment.bytes),
      "sha256": .string(segment.sha256), "frames": .number(segment.frames),
    ]
    members["pack"] = segment.pack?.json
    return JSONValue.object(members).bytes()
  }

  /// Returns the lines of a segment that another one follows: none if both are in one pack, which is one file.
  private static func scriptEntry(_ segment: SessionEntry, before next: SessionEntry) -> [UInt8] {
    if let pack = segment.pack, pack.isInFile(of: next.pack) { return [] }
    return scriptEntry(segment, lengthMs: next.startMs - segment.startMs)
  }

  /// For stock ffmpeg: each file lasts until the next one starts, so that seams close and gaps are held. Where the next
  /// one starts early, `outpoint` leaves out what would lie behind its start.
  static func scriptEntry(_ segment: SessionEntry, lengthMs: Int64) -> [UInt8] {
    let allMs = segment.startMs - (segment.pack?.startMs ?? segment.startMs) + lengthMs
    // By the clock of the file.
    let endMs = (segment.pack?.clockMs ?? 0) + allMs
    let outpoint = lengthMs < segment.durationMs ? "outpoint \(endMs.secondsText)\n" : ""
    return Array("file \(segment.pack?.file ?? segment.file)\n\(outpoint)duration \(allMs.secondsText)\n".utf8)
  }
}

extension SessionIndex.Gap {
  package var json: JSONValue { .object(["startMs": .number(startMs), "endMs": .number(endMs)]) }
}

extension ArraySlice<UInt8> {
  /// An object of the members between two commas: `,"a":1,` is `{"a":1}`, and `,` is `{}`.
  fileprivate var bracketed: [UInt8] { [UInt8(ascii: "{")] + dropFirst().dropLast() + [UInt8(ascii: "}")] }
}

extension [UInt8] {
  fileprivate func ends(with ending: [UInt8]) -> Bool { suffix(ending.count).elementsEqual(ending) }

  /// Removes an ending.
  ///
  /// - Returns: whether it was there.
  mutating func remove(ending: [UInt8]) -> Bool {
    guard ends(with: ending) else { return false }
    removeLast(ending.count)
    return true
  }

  /// Returns where a text is first.
  fileprivate func offset(of text: [UInt8], from start: Int = 0) -> Int? {
    withUnsafeBytes { bytes in
      guard let first = bytes.baseAddress, let found = memmem(first + start, count - start, text, text.count) else {
        return nil
      }
      return UnsafeRawPointer(found) - first
    }
  }
}

// MARK: - Without the first segments

extension IndexText {
  /// Returns the view that wrote these files, without its first segments.
  ///
  /// - Parameters:
  ///   - removed: the first segments of the session, in order.
  ///   - first: the segment behind them.
  ///   - last: the session's last segment.
  /// - Returns: nil if the files are not of this form, or list other segments.
  static func removing(
    _ removed: [SessionEntry], before first: SessionEntry, last: SessionEntry, json: [UInt8], script: [UInt8],
    of session: SessionID
  ) -> IndexText? {
    guard let parts = parts(of: json, session: session),
      var view = IndexText(parts, [last], of: session, json: json, script: script),
      view.removeFirst(removed, before: first)
    else { return nil }
    return view
  }

  /// - Returns: whether the view began with these segments; if not, it is of no use any more.
  private mutating func removeFirst(_ removed: [SessionEntry], before first: SessionEntry) -> Bool {
    var (entries, lines, unrecorded) = ([UInt8](), Self.scriptHead, [UInt8]())
    for (segment, next) in zip(removed, removed.dropFirst() + [first]) {
      entries += Self.item(Self.entry(segment), after: !entries.isEmpty)
      lines += Self.scriptEntry(segment, before: next)
      if let gap = segment.gap(before: next) {
        unrecorded += Self.item(gap.json.bytes(), after: !unrecorded.isEmpty)
        gapsMs -= gap.lengthMs
      }
      if let figures = segment.figures(before: next) { between.remove(figures) }
    }
    guard list.remove(items: entries), script.starts(with: lines), unrecorded.isEmpty || gaps.remove(items: unrecorded)
    else { return false }
    script.removeSubrange(Self.scriptHead.count..<lines.count)
    index.forget(removed, startMs: first.startMs)
    return true
  }
}

extension [UInt8] {
  /// Removes the first items of a list, with the comma behind them.
  ///
  /// - Returns: whether the list began with them.
  fileprivate mutating func remove(items: [UInt8]) -> Bool {
    guard starts(with: items) else { return false }
    let isAll = count == items.count
    guard isAll || self[items.count] == UInt8(ascii: ",") else { return false }
    removeFirst(isAll ? items.count : items.count + 1)
    return true
  }
}
