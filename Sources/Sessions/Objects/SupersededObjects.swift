// `superseded/SESSION` in an object store: the files of the session's HLS stream that its playlist no longer names. There is no lock.
// Both sides change the list on the condition that it is unchanged: a publisher takes out the files that it names again, and a worker
// marks files before it removes them. A publisher that finds its file marked tries again later, when the file is gone.

import Encoding
import FileSystem
import FrameBatches

struct SupersededObjects {
  static let prefix = "superseded/"

  private let session: ObjectSession
  private var objects: any ObjectClient { session.objects }
  private var key: String { Self.prefix + session.id.description }
  /// The number of files that a scan removes at most, and the time that it has for them, so that batches do not wait for long.
  private static let (removals, removalMs) = (100, 5_000)
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

  /// Returns the names of the files that the list has.
  func names() throws -> Set<String> {
    try objects.get(key, limit: Self.limit).map { SupersededFiles($0.bytes).names } ?? []
  }

  /// Takes out files that the next playlist names. Call it before they are created: from then on no worker removes them.
  ///
  /// - Throws: ``SegmentWriteConflict`` if one of them is being removed.
  func keep(_ named: Set<String>) throws {
    try change { list in
      if list.isRemoving(any: named) { throw session.contested(key) }
      list.keep(named)
    }
  }

  /// Like ``keep(_:)``, and lists the files that only the published playlist names, and `files` that no playlist names.
  func replace(_ published: Set<String>, with named: Set<String>, among files: [String], dueMs: Int64) throws {
    try change { list in
      if list.isRemoving(any: named) { throw session.contested(key) }
      list.replace(published, with: named, among: files, dueMs: dueMs)
    }
  }

  /// Removes files whose time has come, of all sessions.
  ///
  /// - Returns: `isComplete` is false if a later scan has to remove more.
  static func removeDue(
    in objects: any ObjectClient, atMs nowMs: Int64, of session: (SessionID) -> ObjectSession
  ) -> (failures: [ViewUpdateFailure], isComplete: Bool) {
    var (last, failures): (String?, [ViewUpdateFailure]) = (nil, [])
    var left = removals
    let deadlineMs = MonotonicClock.milliseconds() + removalMs
    // An unreachable store fails the next batch; the lists stay.
    while let lists = try? objects.list(prefix, after: last), let end = lists.last {
      last = end.key
      for list in lists {
        guard let id = SessionID(String(list.key.dropFirst(prefix.count))) else { continue }
        do {
          left -= try SupersededObjects(of: session(id)).removeDue(atMs: nowMs, limit: left, until: deadlineMs)
        } catch {
          failures.append(ViewUpdateFailure(id, .removal, error))
        }
        if left == 0 || MonotonicClock.milliseconds() >= deadlineMs { return (failures, false) }
      }
    }
    return (failures, true)
  }

  /// Removes files of the session whose time has come.
  ///
  /// - Parameters:
  ///   - limit: the number of files, at most. The others stay for a later call.
  ///   - deadlineMs: after this monotonic time no further file is removed. It is before another worker takes over.
  /// - Returns: the number of removed files.
  private func removeDue(atMs nowMs: Int64, limit: Int, until deadlineMs: Int) throws -> Int {
    var due: [String] = []
    try change { list in
      due = list.due(atMs: nowMs, limit: limit)
      if due.isEmpty { return }
      // Read after the list: a publisher changes the list first.
      let playlist = try objects.get(session.key(HLSPackage.directory + "/" + HLSPlaylist.file), limit: Self.limit)
      list.keep(playlist.map { HLSPlaylist.files(in: $0.bytes) } ?? [])
      due = list.due(atMs: nowMs, limit: limit)
      list.beginRemoval(of: due, atMs: nowMs)
    }
    var removed = 0
    do {
      while removed < due.count, removed == 0 || MonotonicClock.milliseconds() < deadlineMs {
        try objects.delete(session.key(HLSPackage.directory + "/" + due[removed]), nil)
        removed += 1
      }
    } catch {
      // The store may still remove the file of the failed request, so that one stays marked. No publisher has to wait for the others.
      try? change { list in
        list.endRemoval(of: due.prefix(removed))
        list.giveUpRemoval(of: due.dropFirst(removed + 1), atMs: nowMs)
      }
      throw error
    }
    try change { list in
      list.endRemoval(of: due.prefix(removed))
      list.giveUpRemoval(of: due.dropFirst(removed), atMs: nowMs)
    }
    return removed
  }

  /// A line that makes the bytes of a list unique: two workers may mark the same files in the same millisecond, and only one of them
  /// may remove them. Readers leave it out.
  private static func signature() -> [UInt8] { Array("write \(WorkerID())\n".utf8) }

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
      if let there, list.isEmpty {
        try objects.delete(key, there.tag)
        // Another worker may have changed it before.
        if try objects.head(key) == nil { return }
        continue
      }
      if try objects.putOwn(key, list.text + Self.signature(), .text, when: .unchanged(since: there?.tag)) != nil {
        return
      }
    }
    throw session.contested(key)
  }
}
