// `session.json` and `session.ffconcat`, made by adding a segment at a time: behind a day's segments one more costs what it
// costs behind none. Pure.

struct SessionView {
  let session: SessionID
  let startMs: Int64
  private var last: PublishedSegment
  private var frames: Int
  private var bytes: Int
  /// Between segments.
  private var gaps: [SessionManifest.Gap]
  /// What stands between the brackets of `segments`.
  private var list: [UInt8]
  /// The script up to the last segment, whose length depends on what follows.
  private var script: [UInt8]

  private static let scriptHead = Array("ffconcat version 1.0\n".utf8)

  init(session: SessionID, first: PublishedSegment) {
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
  init?(session: SessionID, segments: [PublishedSegment]) {
    guard let first = segments.first else { return nil }
    self.init(session: session, first: first)
    for segment in segments.dropFirst() { append(segment) }
  }

  /// The view that wrote these files.
  ///
  /// - Parameter last: the last segment they tell of.
  /// - Returns: nil when they are not of this form, or end with another segment.
  init?(session: SessionID, last: PublishedSegment, json: [UInt8], script: [UInt8]) {
    let (opening, closing) = (Array(Self.listOpening.utf8), Self.listClosing(session))
    guard let start = json.offset(of: opening), let end = json.lastOffset(of: closing), start + opening.count <= end,
      let head = try? JSONParser.parse(json[..<start] + [UInt8(ascii: "}")]),
      let tail = try? JSONParser.parse([UInt8(ascii: "{")] + json[(end + 2)...]),
      let frames = head.object?["frames"]?.integer, let bytes = head.object?["bytes"]?.integer,
      let startMs = tail.object?["startMs"]?.integer
    else { return nil }
    var gaps = (head.object?["gaps"]?.array ?? []).compactMap(SessionManifest.Gap.init)
    if last.gapAfterMs > 0 { gaps.removeLast(min(1, gaps.count)) }
    self.init(
      session: session, startMs, last, Int(frames), Int(bytes), gaps, Array(json[(start + opening.count)..<end]), script
    )
    let ending = Self.scriptEntry(last, lengthMs: last.durationMs)
    // What lies between is as it was written, or the note would not hold.
    guard list.ends(with: Self.entry(last)), self.script.ends(with: ending) else { return nil }
    self.script.removeLast(ending.count)
    guard json.starts(with: self.head), json.ends(with: self.tail) else { return nil }
  }

  private init(
    session: SessionID, _ startMs: Int64, _ last: PublishedSegment, _ frames: Int, _ bytes: Int,
    _ gaps: [SessionManifest.Gap], _ list: [UInt8], _ script: [UInt8]
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
  mutating func append(_ segment: PublishedSegment) {
    script += Self.scriptEntry(last, lengthMs: segment.startMs - last.startMs)
    if let gap = last.gap(before: segment) { gaps.append(gap) }
    list += [UInt8(ascii: ",")] + Self.entry(segment)
    frames += segment.capturedFrames
    bytes += segment.bytes
    last = segment
  }

  /// Takes the last segment out again.
  ///
  /// - Parameter previous: the one before it.
  /// - Returns: whether the two were what the view ends with; when not, it is of no use any more.
  mutating func removeLast(before previous: PublishedSegment) -> Bool {
    let entry = [UInt8(ascii: ",")] + Self.entry(last)
    let ending = Self.scriptEntry(previous, lengthMs: last.startMs - previous.startMs)
    guard list.ends(with: entry), script.ends(with: ending) else { return false }
    list.removeLast(entry.count)
    script.removeLast(ending.count)
    if previous.gap(before: last) != nil { gaps.removeLast() }
    frames -= last.capturedFrames
    bytes -= last.bytes
    last = previous
    return true
  }

  /// Both forms, by file name.
  var files: [(name: String, bytes: [UInt8])] {
    [
      (Self.jsonFile, json),
      (Self.scriptFile, script + Self.scriptEntry(last, lengthMs: last.durationMs)),
    ]
  }

  static let jsonFile = "session.json"
  static let scriptFile = "session.ffconcat"

  private var endMs: Int64 { last.endMs + last.gapAfterMs }

  /// Keys in their order: what comes before the list of segments and after it is made anew each time.
  private var json: [UInt8] {
    let (head, tail) = (head, tail)
    var text: [UInt8] = []
    text.reserveCapacity(head.count + list.count + tail.count)
    text += head
    text += list
    text += tail
    return text
  }

  private var head: [UInt8] {
    let closing = last.gapAfterMs > 0 ? [SessionManifest.Gap(startMs: last.endMs, endMs: endMs)] : []
    let members = JSONValue.object([
      "bytes": .number(bytes), "complete": .bool(last.isFinal), "durationMs": .number(endMs - startMs),
      "endMs": .number(endMs), "format": .string("session-manifest/1"), "frames": .number(frames),
      "gaps": .array((gaps + closing).map(\.json)),
    ])
    return members.bytes().dropLast() + Array(Self.listOpening.utf8)
  }

  private var tail: [UInt8] { Self.listClosing(session) + Array("\"startMs\":\(startMs)}\n".utf8) }

  private static let listOpening = ",\"segments\":["

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

  /// For stock ffmpeg: each file lasts until the next one starts, so that seams close and gaps are held. Where the next
  /// one starts early, `outpoint` leaves out what would lie behind its start.
  private static func scriptEntry(_ segment: PublishedSegment, lengthMs: Int64) -> [UInt8] {
    let outpoint = lengthMs < segment.durationMs ? "outpoint \(lengthMs.secondsText)\n" : ""
    return Array("file \(segment.file)\n\(outpoint)duration \(lengthMs.secondsText)\n".utf8)
  }
}

extension PublishedSegment {
  /// Continued ones belong to the segment before.
  fileprivate var capturedFrames: Int { frames.count { $0.isCaptured } }
}

extension SessionManifest.Gap {
  fileprivate var json: JSONValue { .object(["startMs": .number(startMs), "endMs": .number(endMs)]) }

  fileprivate init?(_ json: JSONValue) {
    guard let start = json.object?["startMs"]?.integer, let end = json.object?["endMs"]?.integer else { return nil }
    self.init(startMs: start, endMs: end)
  }
}

extension [UInt8] {
  fileprivate func ends(with ending: [UInt8]) -> Bool { suffix(ending.count).elementsEqual(ending) }

  /// Where these bytes are first.
  fileprivate func offset(of text: [UInt8]) -> Int? {
    guard text.count <= count else { return nil }
    return (0...(count - text.count)).first { self[$0] == text[0] && self[$0..<($0 + text.count)].elementsEqual(text) }
  }

  /// Where these bytes are last.
  fileprivate func lastOffset(of text: [UInt8]) -> Int? {
    guard text.count <= count else { return nil }
    return (0...(count - text.count)).last { self[$0] == text[0] && self[$0..<($0 + text.count)].elementsEqual(text) }
  }
}
