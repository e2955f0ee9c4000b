// One session in an object store. Segments are published if `index/SESSION/head.json` or one of its pages lists them. The head is
// written only if it is unchanged since it was read. It lists the last segments and names pages with the earlier ones, so that it
// stays small. Pages are never replaced. `session.json` and `session.ffconcat` are views, as in a directory.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

struct ObjectSession: Sendable {
  let id: SessionID
  let objects: any ObjectClient
  /// The store's name in messages.
  let name: String
  /// Watches the writes of a process that publishes.
  var watch: ConditionWatch?

  /// The head at a moment.
  struct Head {
    /// Nil if nothing is published.
    fileprivate(set) var published: Published?
    /// The tag of the head object; nil if there is none yet.
    fileprivate(set) var tag: ObjectTag?
    /// The identity of the session since it was allowed again after a deletion; nil before any.
    fileprivate(set) var generation: String?
    /// The record of the session's end; nil if it has not ended.
    fileprivate(set) var end: SessionEnd?
    /// Whether nothing is published because retention has removed all, and objects may still be there.
    fileprivate(set) var isRemoving = false
    /// The reason of the tombstone that follows that removal; nil for none.
    fileprivate(set) var tombstoneReason: String?
  }

  /// The published segments at a moment.
  struct Published: Sendable {
    /// The totals, and the segments that no page lists.
    var index: SessionIndex
    /// The pages with the segments before those, in order.
    var pages: [Page] = []
    /// The record of removed first segments; nil if none was removed.
    var retention: SessionRetention?
    /// The part that compaction has seen; nil if there is none.
    var compaction: CompactedPart?
    /// Counts up when labels come after their pictures; 0 if none came.
    var labels = 0
    /// The tag of the head object; nil if there is none yet.
    fileprivate(set) var tag: ObjectTag?

    /// Whether its views are too long to be written for each batch.
    var isLong: Bool { !pages.isEmpty }

    /// Whether its last batch is packed.
    var isPacked: Bool { index.last.pack != nil }

    /// Whether it has `session.json` and `session.ffconcat`: those of packs come with the session's end.
    var hasViews: Bool { index.isComplete || !isPacked }
  }

  /// A part of the index that does not change: `index/SESSION/<start of its first segment>-<digest>.json`.
  struct Page: Sendable {
    let file: String
    let startMs: Int64

    /// The number of segments in a page, and the maximum number in the head.
    static let (size, maximumInHead) = (64, 96)

    init?(_ file: String) {
      guard let start = Int64(file.prefix(13)), start >= 0, file.utf8.count == 13 + 1 + 16 + 5,
        file.utf8.allSatisfy({ $0 != UInt8(ascii: "/") })
      else { return nil }
      (self.file, startMs) = (file, start)
    }

    private init(_ entries: [SessionEntry], _ bytes: [UInt8]) {
      startMs = entries[0].startMs
      file = "\(SegmentName.video(startMs).dropFirst(8).prefix(13))-\(SHA256.hex(of: bytes).prefix(16)).json"
    }

    /// Returns the page of segments, and its text.
    static func of(_ entries: [SessionEntry]) -> (page: Page, bytes: [UInt8]) {
      let bytes = JSONValue.array(entries.map(\.json)).bytes()
      return (Page(entries, bytes), bytes)
    }
  }

  /// Maximum size of a view in bytes: a week in segments of five seconds has some 28 MB.
  static let viewBytes = 32 << 20
  /// Maximum size of the head and of a page in bytes, far above that of a session of a week.
  static let indexBytes = 4 << 20

  /// The member of the head that counts up when labels come.
  private static let labelsKey = "addedLabels"

  func key(_ file: String) -> String { "output/\(id)/\(file)" }

  func contested(_ key: String) -> SegmentWriteConflict { SegmentWriteConflict(name: name, key: key) }

  func indexKey(_ file: String) -> String { "index/\(id)/\(file)" }
  var headKey: String { indexKey("head.json") }
  var playlistKey: String { key(HLSPackage.directory + "/" + HLSPlaylist.file) }

  // MARK: - The index

  /// Returns the published segments; nil if there are none.
  ///
  /// - Throws: ``SessionDeleted``.
  func published() throws -> Published? { try head().published }

  /// Returns the session as it is now.
  ///
  /// - Throws: ``SessionDeleted``; ``ConditionsIgnored``.
  func head() throws -> Head {
    let own = try watch?.known(of: id)
    let head = try readHead()
    if own != nil, head.tag == nil { watch?.forget(id) }
    guard let watch, let own, let published = head.published,
      own.lost(in: published, generation: head.generation) != nil
    else { return head }
    // Another answer may be a stale one of a cache.
    let again = try readHead()
    guard let published = again.published, let lostMs = own.lost(in: published, generation: again.generation) else {
      return again
    }
    throw watch.report(headKey, "it lacks \(SegmentName.video(lostMs)), which this process has published")
  }

  private func readHead() throws -> Head {
    guard let there = try objects.get(headKey, limit: Self.indexBytes) else {
      return Head(published: try importedView())
    }
    do {
      let json = try JSONParser.parse(there.bytes)
      let generation = try json.optional("generation", .string)
      switch try json.required("format", .string) {
      case "session-index/1": break
      case Self.undeletedFormat:
        return Head(
          tag: there.tag, generation: generation, isRemoving: try json.optional("removing", .bool) ?? false,
          tombstoneReason: try json.optional("tombstoneReason", .string))
      case Tombstone.format: throw SessionDeleted(try Tombstone(json, of: id))
      default: throw JSONError("format: another one")
      }
      let pages = try json.required("pages", .array).map { (page) throws(JSONError) in
        guard let page = page.string.flatMap(Page.init) else { throw JSONError("pages: not a page's name") }
        return page
      }
      let retention = try json.object?["retention"].map { (json) throws(JSONError) in
        try SessionRetention(json, of: id)
      }
      let compaction = try json.object?["compaction"].map { (json) throws(JSONError) in try CompactedPart(json) }
      let labels = try json.object?[Self.labelsKey].map { (_) throws(JSONError) in try json.count(Self.labelsKey) } ?? 0
      let published = Published(
        index: try SessionIndex(json, of: id), pages: pages, retention: retention, compaction: compaction,
        labels: Int(labels), tag: there.tag)
      let end = try json.object?["end"].map { (end) throws(JSONError) in try SessionEnd(end, of: id) }
      return Head(published: published, tag: there.tag, generation: generation, end: end)
    } catch let deleted as SessionDeleted {
      throw deleted
    } catch {
      throw DamagedOutput(path: name + headKey, cause: "\(error)")
    }
  }

  /// Returns the index of a session that a worker of an older version published: it listed all segments in `session.json`.
  private func importedView() throws -> Published? {
    guard let there = try objects.get(key(IndexText.jsonFile), limit: Self.viewBytes) else { return nil }
    let entries = try IndexText.videos(in: there.bytes, of: id).compactMap { SegmentName.start(ofVideo: $0) }
      .map { try segment(at: $0).entry }
    guard zip(entries, entries.dropFirst()).allSatisfy({ $0.startMs < $1.startMs }),
      let index = SessionIndex(session: id, entries: entries)
    else { throw DamagedOutput(path: name + key(IndexText.jsonFile), cause: "segments: not in order") }
    return Published(index: index)
  }

  /// Returns the segments of a page, in order.
  func entries(of page: Page) throws -> [SessionEntry] {
    let key = indexKey(page.file)
    guard let there = try objects.get(key, limit: Self.indexBytes) else {
      throw DamagedOutput(path: name + key, cause: "missing")
    }
    do {
      guard let list = try JSONParser.parse(there.bytes).array else { throw JSONError("not a list") }
      return try SessionEntry.all(list)
    } catch {
      throw DamagedOutput(path: name + key, cause: "\(error)")
    }
  }

  /// Returns the segments that start in a range, in order, and one before it.
  func entries(near range: Range<Int64>, in published: Published) throws -> [SessionEntry] {
    var entries = published.index.entries
    if entries[0].startMs >= range.lowerBound {
      let first = published.pages.lastIndex { $0.startMs < range.lowerBound } ?? 0
      entries = try published.pages[first...].prefix { $0.startMs < range.upperBound }.flatMap(self.entries) + entries
    }
    let first = entries.firstIndex { $0.startMs >= range.lowerBound } ?? entries.endIndex
    return Array(entries[max(0, first - 1)...].prefix { $0.startMs < range.upperBound })
  }

  /// Returns the index with all segments.
  func whole(_ published: Published) throws -> SessionIndex {
    published.index.preceded(by: try published.pages.flatMap(entries))
  }

  /// Returns the published segments that a batch shown from `range.lowerBound` to `range.upperBound` can touch.
  func segments(near range: Range<Int64>, in published: Published?) throws -> [PublishedSegment] {
    guard let published else { return [] }
    return try segments(entries(near: range, in: published), reachingInto: range)
  }

  /// Returns the segments that end behind the start of a range: the one before it may reach into it.
  func segments(_ entries: [SessionEntry], reachingInto range: Range<Int64>) throws -> [PublishedSegment] {
    try entries.filter { $0.endMs > range.lowerBound }.map(segment)
  }

  /// Publishes placed segments.
  ///
  /// - Parameters:
  ///   - head: the session when the overlaps were checked.
  ///   - end: the record of the session's end, if it ends with these; an earlier record stays.
  /// - Returns: the session after the publication; nil if it has changed meanwhile.
  func publish(_ new: [SessionEntry], after head: Head, end: SessionEnd?) throws -> Published? {
    guard var next = head.published ?? SessionIndex(session: id, entries: new).map({ Published(index: $0) }) else {
      throw JSONError("no segments")
    }
    if head.published != nil { try add(new, to: &next) }
    if head.end ?? end != nil { next.index.isComplete = true }
    if let lateMs = new.map(\.startMs).min() { next.compaction?.take(from: lateMs) }
    if next.index.entries.count > Page.maximumInHead {
      next.pages += try sealed(
        next.index.removeFirst(
          (next.index.entries.count - (Page.maximumInHead - Page.size)) / Page.size * Page.size))
    }
    try watch?.tryWrites()
    guard let written = try write(next, over: head, end: head.end ?? end) else { return nil }
    watch?.note(new, in: id, generation: head.generation)
    return written
  }

  /// Records the end of the session. An earlier record stays.
  ///
  /// - Returns: the record that is there now, and the session; nil if nothing is published.
  /// - Throws: ``SessionDeleted``; ``Cancelled``.
  func recordEnd(
    _ end: SessionEnd, cancellation: Cancellation
  ) throws -> (end: SessionEnd, published: Published)? {
    let changed = try change(cancellation) { published, known in
      guard known == nil else { return false }
      (published.index.isComplete, known) = (true, end)
      return true
    }
    return changed.map { ($0.end ?? end, $0.published) }
  }

  /// Changes the head of a session that has segments. If another process changes it at once, that is done again.
  ///
  /// - Parameter body: changes what is published, or the record of the end; returns false to leave all as it is.
  /// - Returns: the session as it is then; nil if nothing is published.
  /// - Throws: ``SessionDeleted``; ``Cancelled``.
  @discardableResult
  func change(
    _ cancellation: Cancellation, _ body: (inout Published, inout SessionEnd?) throws -> Bool
  ) throws -> (published: Published, end: SessionEnd?)? {
    typealias Changed = (published: Published, end: SessionEnd?)
    return try SegmentWriteConflict.retrying(cancellation) { () -> Changed?? in
      let head = try head()
      guard var published = head.published else { return .some(nil) }
      var end = head.end
      guard try body(&published, &end) else { return (published, end) }
      return try write(published, over: head, end: end).map { ($0, end) }
    }
  }

  /// Writes the head.
  ///
  /// - Returns: the session with the new tag; nil if the head has changed meanwhile.
  func write(_ published: Published, over head: Head, end: SessionEnd?) throws -> Published? {
    var next = published
    var members = next.index.members
    members["end"] = end?.json
    members["format"] = .string("session-index/1")
    members["pages"] = .array(next.pages.map { .string($0.file) })
    members["generation"] = head.generation.map { .string($0) }
    members["retention"] = next.retention?.json(of: id)
    members["compaction"] = next.compaction?.json
    if next.labels > 0 { members[Self.labelsKey] = .number(next.labels) }
    let bytes = JSONValue.object(members).bytes() + [UInt8(ascii: "\n")]
    guard let tag = try objects.put(headKey, .bytes(bytes), .json, when: .unchanged(since: head.tag)) else {
      return nil
    }
    next.tag = tag
    return next
  }

  /// Adds segments to the head, or late ones to their page.
  private func add(_ new: [SessionEntry], to published: inout Published) throws {
    let headMs = published.index.entries[0].startMs
    let late = published.pages.isEmpty ? [] : new.filter { $0.startMs < headMs }
    published.index.add(new.filter { !late.contains($0) }, elsewhere: late)
    let places = Dictionary(grouping: late) { entry in
      published.pages.lastIndex { $0.startMs <= entry.startMs } ?? 0
    }
    // Go backwards, so that earlier indices stay valid.
    for (place, entries) in places.sorted(by: { $0.key > $1.key }) {
      let all = (try self.entries(of: published.pages[place]) + entries).sorted { $0.startMs < $1.startMs }
      published.pages.replaceSubrange(place...place, with: try sealed(all))
    }
  }

  /// Writes pages with these segments. An existing page of the same name has the same content.
  func sealed(_ entries: [SessionEntry]) throws -> [Page] {
    try stride(from: 0, to: entries.count, by: Page.size).map { first in
      let (page, bytes) = Page.of(Array(entries[first..<min(first + Page.size, entries.count)]))
      _ = try objects.put(indexKey(page.file), .bytes(bytes), .json, when: .absent)
      return page
    }
  }

  // MARK: - Its views

  /// Whether the views show that the session has ended. They do not if a failure came between the head and them.
  func showsEnd() throws -> Bool {
    guard let json = try objects.get(key(IndexText.jsonFile), limit: Self.viewBytes)?.bytes,
      IndexText.head(of: json)?.isComplete == true
    else { return false }
    return try objects.get(playlistKey, limit: Self.viewBytes).map { HLSPlaylist.hasEnded($0.bytes) } ?? true
  }

  /// Brings `session.json` and `session.ffconcat` up to date.
  ///
  /// - Parameters:
  ///   - new: the session after our publication, which the views cannot have yet; nil to read it.
  ///   - events: the events that are brought up to date, too; nil for none.
  ///   - always: whether to write them before the end of a packed session, too.
  func updateViews(_ new: Published?, _ events: ObjectEvents?, always: Bool = false) throws {
    var new = new
    for attempt in 0..<20 {
      SegmentWriteConflict.pause(attempt)
      let isNew = new != nil
      guard let published = try new ?? self.published(), always || published.hasViews else { return }
      new = nil
      try writeViews(of: published, isNew: isNew, events)
      // Another worker may have written newer views meanwhile: the last to write them looks at the index after it.
      if try objects.head(headKey)?.tag == published.tag { return }
    }
    throw contested(headKey)
  }

  private func writeViews(of published: Published, isNew: Bool, _ events: ObjectEvents?) throws {
    let names = [IndexText.jsonFile, IndexText.scriptFile]
    let isNeeded = !isNew || published.isLong || events != nil
    let there = isNeeded ? try names.map { try objects.get(key($0), limit: Self.viewBytes)?.bytes } : [nil, nil]
    let extended = try published.isLong || events != nil ? extended(there, to: published) : nil
    try events?.write(of: published, in: self, behind: extended?.lastMs)
    let view = try extended?.view ?? IndexText(whole(published))
    for (file, (there, kind)) in zip(view.files, zip(there, [ObjectKind.json, .text])) where file.bytes != there {
      _ = try objects.put(key(file.name), .bytes(file.bytes), kind, when: .always)
    }
  }

  /// Returns the views that are there, with the segments that they lack, and the start of the last segment before those; nil if all
  /// entries are needed.
  private func extended(
    _ there: [[UInt8]?], to published: Published
  ) throws -> (view: IndexText, lastMs: Int64)? {
    guard let json = there[0], let script = there[1],
      let lastMs = IndexText.lastStarts(in: json, 1).last
    else { return nil }
    // Views from before a compaction name objects that go.
    if let pack = published.compaction?.pack(from: published.index.startMs), !IndexText.names(pack, in: script) {
      return nil
    }
    let (index, entries) = (published.index, try entries(near: lastMs..<Int64.max, in: published))
    let byStart = Dictionary(uniqueKeysWithValues: entries.map { ($0.startMs, $0) })
    let view = try IndexText.extending(json: json, script: script, of: id, to: entries.map(\.startMs)) {
      guard let entry = byStart[$0] else {
        throw DamagedOutput(path: name + key(IndexText.jsonFile), cause: "lists a segment that is not published")
      }
      return entry
    }?.view
    // A session only grows, so equal totals mean equal lists.
    guard var view,
      view.index.hasTotals(of: index)
    else { return nil }
    // The end may be recorded without a further segment.
    view.index.isComplete = index.isComplete
    return (view, lastMs)
  }
}
