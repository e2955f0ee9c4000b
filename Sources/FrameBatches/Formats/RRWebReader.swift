import JSON

/// The events of one session, in the order of the text.
struct RRWebRecording {
  struct Entry {
    let name: String
    var window: String?
    let event: RRWebEvent
  }

  /// The session; nil if the recording does not name it.
  let session: String?
  var entries: [Entry] = []
  /// Whether an entry concerns pictures.
  var isPictured = false
}

/// Collects the events of a text by sessions.
struct RRWebReader {
  /// A text that starts with this many other records is no recording.
  private static let unknownRecords = 1_000
  /// Maximum number of changes in a batch, as a multiple of ``Limits/entries``.
  private static let changesPerEvent = 16

  private let name: String
  private let limits: Limits
  /// Of all sessions, also of those that have pointer events only.
  private var found: [RRWebRecording] = []
  /// Indices of those that may have a picture, in the order of their first ones.
  private var pictured: [Int] = []
  private var broken: [RefusedFrame] = []
  private var indices: [String?: Int] = [:]
  /// Events of a record that is not read to its end, so that its session is not known yet.
  private var waiting: [RRWebRecording.Entry] = []
  /// Whether the waiting events are part of a request, which names their session.
  private var isRequest = false
  private var pieces = 0
  /// The number of events so far, not counting requests that contain events.
  private var events = 0
  private var changes = 0
  private var touches = 0
  private var lastTimeMs: Int64 = 0
  /// Whether an event was recognised.
  private(set) var isRecording = false

  init(name: String, limits: Limits) { (self.name, self.limits) = (name, limits) }

  /// Events that cannot be read. Most events have no picture; if most are broken, their pictures are missed.
  var refused: [RefusedFrame] {
    2 * broken.count > events
      ? broken.map { RefusedFrame(source: $0.source, reason: $0.reason, kind: .record) } : broken
  }

  /// The recordings that may have a picture.
  var recordings: [RRWebRecording] { pictured.map { found[$0] } }

  /// Takes the next piece of the text.
  ///
  /// - Returns: false to stop reading.
  mutating func take(_ piece: RecordPiece) throws -> Bool {
    pieces += 1
    guard pieces <= limits.entries else {
      throw BadBatch("read", name, "more than \(limits.entries) events", advice: Limits.advice("entries"))
    }
    let number = events
    let frame = "\(name)#\(number)"
    do {
      switch piece {
      case .event(let skeleton, let isOfSession):
        events += 1
        isRequest = !isOfSession
        let (event, window) = Self.event(in: try skeleton.parsed())
        guard RRWebEvent.isEvent(event) else { break }
        isRecording = true
        if let entry = try entry(event, frame, window ?? skeleton.window) { waiting.append(entry) }
      case .record(let skeleton):
        let record = try skeleton.parsed()
        guard isRecording || ScreencastFormat.parameters(of: record) == nil else { return false }
        try take(record, skeleton.window, frame)
      case .broken(let offset, let reason):
        events += 1
        broken.append(RefusedFrame(source: frame, reason: "\(reason) at byte \(offset)"))
        if isRequest { refuseWaiting(frame) }
        try add(waiting + [lost(frame)], to: nil)
      }
    } catch let error as JSONError {
      events = number + 1
      broken.append(RefusedFrame(source: frame, reason: error.description))
      switch piece {
      case .event: waiting.append(lost(frame))
      default:
        refuseWaiting(frame)
        try add([lost(frame)], to: nil)
      }
    }
    return isRecording || pieces < Self.unknownRecords
  }

  private mutating func take(_ record: JSONValue, _ window: String?, _ frame: String) throws {
    let (event, ownWindow) = Self.event(in: record)
    if RRWebEvent.isEvent(event) {
      events += 1
      isRecording = true
      try add(entry(event, frame, ownWindow ?? window).map { [$0] } ?? [], to: nil)
    } else {
      let properties = record.object?["properties"]
      let session = LocatedText(properties?.object?["$session_id"])
      if let session, session.text == nil { throw JSONError("a $session_id that is too long") }
      let window = properties?.text("$window_id") ?? record.text("window_id")
      for index in waiting.indices where waiting[index].window == nil { waiting[index].window = window }
      try add(waiting, to: session?.text)
    }
  }

  /// Returns the event of a list's element, which may be a pair of a window and an event.
  private static func event(in json: JSONValue) -> (event: JSONValue, window: String?) {
    guard let pair = json.array, pair.count == 2, let window = LocatedText(pair[0])?.text else { return (json, nil) }
    return (pair[1], window)
  }

  /// - Returns: nil for an event that changes no picture and has no pointer.
  private mutating func entry(
    _ json: JSONValue, _ frame: String, _ window: String?
  ) throws -> RRWebRecording.Entry? {
    let event = try RRWebEvent(json, limits: limits, touches: limits.touches - touches)
    touches += event.pointers.events.count
    lastTimeMs = event.timeMs
    changes += event.changes.count
    guard changes / Self.changesPerEvent <= limits.entries else {
      throw BadBatch("read", name, "too many changes of pictures", advice: Limits.advice("entries"))
    }
    if event.isEmpty { return nil }
    return RRWebRecording.Entry(name: frame, window: window ?? json.text("windowId"), event: event)
  }

  /// Returns an entry for an event that cannot be read. It gets the instant of the event before it.
  private func lost(_ frame: String) -> RRWebRecording.Entry {
    RRWebRecording.Entry(name: frame, window: nil, event: RRWebEvent(lostAt: lastTimeMs))
  }

  /// Refuses the waiting events, because their session is not known.
  private mutating func refuseWaiting(_ frame: String) {
    guard !waiting.isEmpty else { return }
    broken.append(RefusedFrame(source: frame, reason: "\(waiting.count) events of a request that cannot be read"))
    waiting = []
  }

  func requireFewSessions(_ count: Int) throws {
    guard count <= Limits.maximumSessions else {
      throw BadBatch("read", name, "more than \(Limits.maximumSessions) sessions", advice: "split the batch")
    }
  }

  private mutating func add(_ entries: [RRWebRecording.Entry], to session: String?) throws {
    waiting = []
    guard !entries.isEmpty else { return }
    let index = indices[session] ?? found.count
    if index == found.count {
      indices[session] = index
      found.append(RRWebRecording(session: session))
    }
    if !found[index].isPictured, entries.contains(where: \.event.concernsPictures) {
      try requireFewSessions(pictured.count + 1)
      found[index].isPictured = true
      pictured.append(index)
    }
    found[index].entries += entries
  }
}
