// One session in an object store: `session.json` says what is published, and is only ever written on the condition that it is
// still what was read.

import Encoding
import FrameBatches
import JSON

struct ObjectSession {
  package let id: SessionID
  package let objects: any ObjectClient
  private let name: String

  init(_ id: SessionID, in objects: any ObjectClient, name: String) {
    self.id = id
    self.objects = objects
    self.name = name
  }

  /// What `session.json` tells, and what it is known by.
  struct View {
    struct Listed {
      package let file: String
      package let startMs: Int64
      package let durationMs: Int64
    }

    package let json: [UInt8]
    package let tag: ObjectTag
    /// In order, at least one.
    package let segments: [Listed]

    /// The `session.ffconcat` that belongs to it.
    package var script: [UInt8] { SessionView.script(of: segments.map { ($0.file, $0.startMs, $0.durationMs) }) }
  }

  /// What was there at a moment.
  package struct Snapshot {
    /// What `session.ffconcat` was known by, before the view was read.
    package let script: ObjectTag?
    let view: View?

    package init(script: ObjectTag?, view: View?) {
      self.script = script
      self.view = view
    }
  }

  /// Longer ones are nobody's: a week in segments of five seconds has some 28 MB.
  private static let viewBytes = 32 << 20

  package func key(_ file: String) -> String { "output/\(id)/\(file)" }

  func contested(_ key: String) -> ContestedSegment { ContestedSegment(name: name, key: key) }

  var viewKey: String { key(SessionView.jsonFile) }
  var scriptKey: String { key(SessionView.scriptFile) }

  /// The script's tag comes first: whoever writes it on that condition knows no less than whoever wrote what was there.
  package func snapshot() throws -> Snapshot { Snapshot(script: try objects.head(scriptKey)?.tag, view: try view()) }

  /// What is published; nil where nothing is.
  func view() throws -> View? {
    guard let there = try objects.get(viewKey, limit: Self.viewBytes) else { return nil }
    do {
      let json = try JSONParser.parse(there.bytes)
      guard try json.required("session", .string) == id.description else { throw JSONError("session: another one") }
      let segments = try json.required("segments", .array).map { (segment) throws(JSONError) in
        View.Listed(
          file: try segment.required("file", .string), startMs: try segment.required("startMs", .integer),
          durationMs: try segment.required("durationMs", .integer))
      }
      let bounds = Int64(0)...(1 << 42)
      guard !segments.isEmpty,
        segments.allSatisfy({
          bounds.contains($0.startMs) && bounds.contains($0.durationMs) && $0.file == SegmentName.video($0.startMs)
        }),
        zip(segments, segments.dropFirst()).allSatisfy({ $0.startMs < $1.startMs })
      else { throw JSONError("segments: not in order") }
      return View(json: there.bytes, tag: there.tag, segments: segments)
    } catch {
      throw DamagedOutput(path: name + viewKey, cause: "\(error)")
    }
  }

  /// A segment, by its manifest.
  package func segment(_ startMs: Int64) throws -> PublishedSegment {
    let key = key(SegmentName.manifest(startMs))
    guard let there = try objects.get(key, limit: 64 << 20) else {
      throw DamagedOutput(path: name + key, cause: "missing")
    }
    return try SegmentManifest.read(there.bytes, of: startMs, path: name + key).segment
  }

  /// Published segments that a batch shown from `range.lowerBound` to `range.upperBound` can touch.
  package func segments(near range: Range<Int64>, in view: View?) throws -> [PublishedSegment] {
    guard let listed = view?.segments else { return [] }
    let first = listed.firstIndex { $0.startMs >= range.lowerBound } ?? listed.endIndex
    // The one before may reach into the range; one that has ended before a seam could begin does not.
    let reach = listed.prefix(first).last.map { $0.startMs + $0.durationMs > range.lowerBound } ?? false
    return try listed[(reach ? first - 1 : first)...].prefix { $0.startMs < range.upperBound }.map {
      try segment($0.startMs)
    }
  }

  /// Publishes segments that are there.
  ///
  /// - Parameter view: what was published when it was decided that these may be, too.
  /// - Returns: what is published now; nil when that was not so any more.
  package func list(_ new: [PublishedSegment], in view: View?) throws -> SessionView? {
    let next = try adding(new, to: view)
    let bytes = next.files[0].bytes
    return try objects.put(viewKey, .bytes(bytes), .json, when: .unchanged(since: view?.tag)) == nil ? nil : next
  }

  private func adding(_ new: [PublishedSegment], to view: View?) throws -> SessionView {
    var known: [Int64: PublishedSegment] = [:]
    func segment(_ startMs: Int64) throws -> PublishedSegment {
      if let read = known[startMs] { return read }
      let read = try self.segment(startMs)
      known[startMs] = read
      return read
    }
    let told = view?.segments.map(\.startMs) ?? []
    if let view, let last = told.last {
      if var next = SessionView(session: id, last: try segment(last), json: view.json, script: view.script),
        try next.add(new, told: told, segment) != nil
      {
        return next
      }
    }
    let all = try (told.map(segment) + new).sorted { $0.startMs < $1.startMs }
    guard let next = SessionView(session: id, segments: all) else { throw JSONError("no segments") }
    return next
  }

  /// Brings `session.ffconcat` up to date.
  ///
  /// - Parameters:
  ///   - tag: what it was before the view was read; nil where there was none.
  ///   - bytes: what it is to be by that view.
  func updateScript(from tag: ObjectTag?, to bytes: [UInt8]) throws {
    // Else somebody was faster, who may have known less, or more.
    if try objects.put(scriptKey, .bytes(bytes), .text, when: .unchanged(since: tag)) == nil { try updateScript() }
  }

  /// Brings `session.ffconcat` up to date with what is published.
  func updateScript() throws {
    for attempt in 0..<20 {
      ContestedSegment.pause(attempt)
      let there = try objects.get(scriptKey, limit: Self.viewBytes)
      guard let view = try view() else { return }
      let bytes = view.script
      if there?.bytes == bytes { return }
      if try objects.put(scriptKey, .bytes(bytes), .text, when: .unchanged(since: there?.tag)) != nil { return }
    }
    throw contested(scriptKey)
  }
}
