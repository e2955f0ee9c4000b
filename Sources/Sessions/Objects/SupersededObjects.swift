// `superseded/SESSION` in an object store: the files of the session's HLS stream that its playlist no longer names. There is no lock.
// Both sides change the list on the condition that it is unchanged: a publisher takes out the files that it names again, and a worker
// marks files before it removes them. A publisher that finds its file marked waits until it is gone, and creates it again.

import Encoding
import FileSystem
import FrameBatches

struct SupersededObjects {
  static let prefix = "superseded/"

  private let session: ObjectSession
  private var objects: any ObjectClient { session.objects }
  private var key: String { Self.prefix + session.id.description }
  /// Maximum size of a list or a playlist, in bytes.
  private static let limit = 32 << 20

  init(of session: ObjectSession) { self.session = session }

  /// Returns the names of all files of the stream.
  func files() throws -> [String] {
    let folder = session.key(HLSPackage.directory + "/")
    var (last, names): (String?, [String]) = (nil, [])
    while true {
      let page = try objects.list(folder, after: last)
      guard let end = page.last else { return names }
      names += page.map { String($0.key.dropFirst(folder.count)) }
      last = end.key
    }
  }

  /// Adds the files that the next playlist does not name, and takes out those that it names. Call it before the playlist is replaced.
  ///
  /// - Returns: false if a file that it names is being removed.
  func add(_ names: [String], dueMs: Int64, keeping named: Set<String>) throws -> Bool {
    var isFree = true
    try change { list in
      isFree = !list.isRemoving(any: named)
      guard isFree else { return }
      list.keep(named)
      list.add(names.filter { !named.contains($0) }, dueMs: dueMs)
    }
    return isFree
  }

  /// Removes the files whose time has come.
  func removeDue(atMs nowMs: Int64) throws {
    // Another worker takes over later than this.
    let deadlineMs = MonotonicClock.milliseconds() + Int(SupersededFiles.takeoverMs / 2)
    var due: [String] = []
    try change { list in
      due = list.due(atMs: nowMs)
      if due.isEmpty { return }
      // Read after the list: a publisher changes the list first.
      let playlist = try objects.get(session.key(HLSPackage.directory + "/" + HLSPlaylist.file), limit: Self.limit)
      list.keep(playlist.map { HLSPlaylist.files(in: $0.bytes) } ?? [])
      due = list.due(atMs: nowMs)
      list.beginRemoval(of: due, atMs: nowMs)
    }
    if due.isEmpty { return }
    for name in due {
      if MonotonicClock.milliseconds() >= deadlineMs { return }
      try objects.delete(session.key(HLSPackage.directory + "/" + name), nil)
    }
    try change { $0.endRemoval(of: due) }
  }

  /// Removes the list.
  func remove() throws { try objects.delete(key, nil) }

  private func change(_ body: (inout SupersededFiles) throws -> Void) throws {
    for attempt in 0..<20 {
      SegmentWriteConflict.pause(attempt)
      let there = try objects.get(key, limit: Self.limit)
      let old = SupersededFiles(there?.bytes ?? [])
      var list = old
      try body(&list)
      if list == old { return }
      if let there, list.isEmpty { return try objects.delete(key, there.tag) }
      if try objects.put(key, .bytes(list.text), .text, when: .unchanged(since: there?.tag)) != nil { return }
    }
    throw session.contested(key)
  }
}
