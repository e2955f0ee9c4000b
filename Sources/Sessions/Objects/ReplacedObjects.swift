// `replaced/SESSION/<unix ms>.txt` in an object store: objects of a session that go at that time, unless its index lists them then. A list
// is written before anything else, so nothing is left behind by a process that died: neither objects that were replaced, nor new ones that
// no index came to list. Links to replaced objects work until then. A list is never changed, and goes last.

import Encoding
import FileSystem
import FrameBatches

struct ReplacedObjects {
  static let prefix = "replaced/"
  /// The longest lifetime of a presigned URL, in milliseconds: a week. Viewers of a playlist have less.
  static let graceMs: Int64 = 604_800_000
  /// A younger object was written after its list, in seconds: the session was deleted and published again.
  private static let youngS = 86_400
  /// Maximum size of a list, in bytes, and of the lists with one time.
  private static let (limit, lists) = (4 << 20, 1_000)

  private let session: ObjectSession
  private var objects: any ObjectClient { session.objects }
  private var folder: String { "\(Self.prefix)\(session.id)/" }

  init(of session: ObjectSession) { self.session = session }

  /// Whether a list may name a file. No other is ever removed.
  private static func canList(_ name: String) -> Bool {
    SegmentName.start(ofVideo: name) != nil || SegmentName.start(ofManifest: name) != nil
      || SegmentName.pack(named: name) != nil || ObjectSession.Page(name) != nil
  }

  private func key(_ name: String) -> String {
    ObjectSession.Page(name) == nil ? session.key(name) : session.indexKey(name)
  }

  /// Lists objects of the session and pages of its index, by their names.
  ///
  /// - Parameter nowMs: unix milliseconds.
  func add(_ names: [String], nowMs: Int64) throws {
    let text = Array(names.map { $0 + "\n" }.joined().utf8)
    for dueMs in (nowMs + Self.graceMs)..<(nowMs + Self.graceMs + Int64(Self.lists)) {
      if try objects.putOwn("\(folder)\(dueMs).txt", text, .text, when: .absent) != nil { return }
    }
    throw session.contested(folder)
  }

  /// Returns all names that the lists of the session have.
  func names() throws -> Set<String> {
    var walk = ListWalk(folder, of: objects, name: session.name)
    var names: Set<String> = []
    while let page = try walk.next() {
      for list in page { names.formUnion(try self.names(in: list.key)) }
    }
    return names
  }

  private func names(in key: String) throws -> [String] {
    guard let there = try objects.get(key, limit: Self.limit) else { return [] }
    return String(decoding: there.bytes, as: UTF8.self).split(separator: "\n").map(String.init).filter(Self.canList)
  }

  /// Removes all lists of the session, whose objects were removed.
  func removeLists() throws {
    while case let page = try objects.list(folder, after: nil), !page.isEmpty {
      for list in page { try objects.delete(list.key, nil) }
    }
  }

  /// Removes the objects of all lists whose time has come.
  ///
  /// - Returns: the number of removed objects, and the failures of sessions.
  /// - Throws: ``Cancelled``; an error of the store.
  static func removeDue(
    of store: ObjectStore, nowMs: Int64, _ cancellation: Cancellation
  ) throws -> (count: Int, failures: [any Error]) {
    var walk = ListWalk(prefix, of: store.objects, name: store.name)
    var (count, failures): (Int, [any Error]) = (0, [])
    while let page = try walk.next() {
      for list in page {
        try cancellation.check()
        let parts = list.key.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let id = SessionID(String(parts[0])), parts[1].hasSuffix(".txt"),
          let dueMs = Int64(parts[1].dropLast(4)), dueMs <= nowMs
        else { continue }
        do {
          count += try ReplacedObjects(of: store.session(id)).remove(in: list.key, cancellation)
        } catch let error where error.isOfOneSession {
          failures.append(error)
        }
      }
    }
    return (count, failures)
  }

  /// Removes the objects of a list that the index does not list.
  ///
  /// - Returns: their number.
  private func remove(in list: String, _ cancellation: Cancellation) throws -> Int {
    var names = Set(try self.names(in: list))
    do {
      names.subtract(try listedNames())
    } catch is SessionDeleted {
      // The deletion removes all.
      names = []
    }
    var count = 0
    for object in try found(names) {
      try cancellation.check()
      if let ageS = object.ageS, ageS < Self.youngS { continue }
      try objects.delete(object.key, object.tag)
      count += 1
    }
    try objects.delete(list, nil)
    return count
  }

  /// Returns the names of all objects and pages that the index lists.
  private func listedNames() throws -> Set<String> {
    guard let published = try session.published() else { return [] }
    let files = try session.whole(published).entries.flatMap(\.objectNames)
    return Set(files + published.pages.map(\.file))
  }

  /// Returns those of some objects that are there.
  private func found(_ names: Set<String>) throws -> [ObjectInfo] {
    let keys = Set(names.map(key))
    var found: [ObjectInfo] = []
    for prefix in ["segment-", "pack-", ""] {
      let isPages = prefix.isEmpty
      let own = names.filter { isPages ? ObjectSession.Page($0) != nil : $0.hasPrefix(prefix) }.sorted()
      guard let first = own.first else { continue }
      // The key before the first one.
      let start = key(first).dropLast(4)
      var walk = ListWalk(
        isPages ? session.indexKey("") : session.key(prefix), of: objects, name: session.name, after: String(start))
      let last = own.map(key).max() ?? ""
      while let page = try walk.next() {
        found += page.filter { keys.contains($0.key) }
        if let end = page.last, !end.key.utf8.lexicographicallyPrecedes(last.utf8) { break }
      }
    }
    return found
  }
}

extension SessionEntry {
  /// The names of the objects that a segment needs.
  var objectNames: [String] { pack.map { [$0.file] } ?? [file, SegmentName.manifest(startMs)] }
}
