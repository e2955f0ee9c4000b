// How many bytes the objects of the sessions of a store take. The heads of the index tell the bytes of all videos. All other objects are an
// estimate: the last segments of some sessions are listed, and stand for the others. So the number of requests has a bound.

import Encoding
import FileSystem
import FrameBatches
import Synchronization

/// Estimates the bytes of sessions. For any thread.
final class StoredBytes: Sendable {
  /// Maximum number of sessions that are measured for one answer, with some four requests each.
  static let maximumMeasured = 100
  /// Maximum number of objects that are listed of one folder of a session: a head has at most 96 segments.
  private static let maximumListed = 4_000
  /// A session is measured again when its videos have grown or shrunk by one part of so many.
  private static let tolerance = 4

  private let store: StoredSessions
  /// The sessions that were measured.
  private let known = Mutex<[SessionID: SessionBytes]>([:])

  init(of store: StoredSessions) { self.store = store }

  /// Returns the bytes of sessions.
  ///
  /// - Parameter sessions: all of the store. Others are forgotten.
  /// - Throws: ``Cancelled``; an error of the store.
  func bytes(
    of sessions: [SessionID: StoredHeads.Totals], _ cancellation: Cancellation
  ) throws -> [SessionID: SessionBytes] {
    var measured = known.withLock { $0.filter { sessions[$0.key] != nil } }
    let wanted = sessions.compactMap { id, totals -> (id: SessionID, totals: StoredHeads.Totals, change: Int)? in
      let before = measured[id]
      let change = abs(totals.bytes - (before?.videos ?? 0))
      return before == nil || Self.tolerance * change > before?.videos ?? 0 ? (id, totals, change) : nil
    }.sorted { $0.change > $1.change }.prefix(Self.maximumMeasured)
    let found = try ParallelFetch.map(Array(wanted)) { [self] in
      try measure($0.id, $0.totals)
    } progress: { _ in
      try cancellation.check()
    }
    for (session, bytes) in zip(wanted, found) { measured[session.id] = bytes }
    known.withLock { [measured] in $0 = measured }
    let all = measured.values.reduce(into: SessionBytes()) { $0 += $1 }
    return sessions.reduce(into: [:]) { bytes, session in
      let (id, totals) = session
      bytes[id] = (measured[id] ?? all).scaled(toVideos: totals.bytes, segments: totals.segments)
    }
  }

  /// Lists the objects of the last segments of a session.
  ///
  /// - Returns: the bytes of the session; nil if it is gone, or cannot be read.
  private func measure(_ id: SessionID, _ totals: StoredHeads.Totals) throws -> SessionBytes? {
    let session = store.session(id)
    let entries: [SessionEntry]
    do {
      guard let published = try session.published() else { return nil }
      entries = published.index.entries
    } catch let error where error.isOfOneSession {
      return nil
    }
    var sample = SessionBytes()
    (sample.segments, sample.videos) = (entries.count, entries.reduce(0) { $0 + $1.bytes })
    // A pack has the manifests, and some bytes more than the videos.
    sample.described = entries.reduce(0) { sum, entry in
      sum + (entry.pack.map { $0.manifest.count + max(0, $0.fragment.count - entry.bytes) } ?? 0)
    }
    let firstMs = entries[0].startMs
    for folder in ["", ThumbnailPackage.directory + "/"] {
      for object in try objects(in: folder, of: session, from: firstMs) {
        switch SessionBytes.Kind(ofFile: object.name) {
        case .described: sample.described += object.size
        case .shared: sample.shared += object.size
        case .video, .live, .superseded: continue
        }
      }
    }
    let stream = try objects(in: HLSPackage.directory + "/", of: session, from: firstMs)
    let stems = Set(entries.map { StoredPublications.stem($0.startMs) })
    let fragments = stream.filter { stems.contains(String($0.name.prefix(8 + 13))) }
    // Most sessions have a fragment for each segment, and no superseded ones.
    let superseded = fragments.count > entries.count ? try SupersededObjects(of: session).names() : []
    sample.live = fragments.filter { !superseded.contains($0.name) }.reduce(0) { $0 + $1.size }
    sample.shared += stream.filter { !$0.name.hasPrefix("segment-") }.reduce(0) { $0 + $1.size }
    var bytes = sample.scaled(toVideos: totals.bytes, segments: totals.segments)
    bytes.shared = sample.shared
    return bytes
  }

  /// Returns the objects of a folder of a session whose names come behind a segment's, but not those of folders in it.
  private func objects(
    in folder: String, of session: ObjectSession, from startMs: Int64
  ) throws -> [(name: String, size: Int)] {
    let prefix = session.key(folder)
    var walk = store.walk(prefix, after: prefix + StoredPublications.stem(startMs))
    var found: [(name: String, size: Int)] = []
    while found.count < Self.maximumListed, let page = try walk.next() {
      for object in page {
        let name = String(object.key.dropFirst(prefix.count))
        if let slash = name.firstIndex(of: "/") {
          walk.skip(folder: prefix + name[..<slash])
        } else {
          found.append((name, object.size))
        }
      }
    }
    return found
  }
}

extension Error {
  /// Whether it says that one session cannot be read, and nothing of the store.
  var isOfOneSession: Bool {
    self is SessionDeleted || self is DamagedOutput || self is ObjectTooLarge
      || (self as? ObjectStoreError)?.isOfOneObject == true
  }
}
