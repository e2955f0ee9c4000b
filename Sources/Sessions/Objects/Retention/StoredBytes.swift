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

  private struct Measured {
    let bytes: SessionBytes
    /// Whether the session had ended then, and at the look before, too: files may be made at its end.
    let (isComplete, isSettled): (Bool, Bool)
  }

  private let store: StoredSessions
  /// The sessions that were measured.
  private let known = Mutex<[SessionID: Measured]>([:])

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
      guard let before = measured[id] else { return (id, totals, totals.bytes) }
      let change = abs(totals.bytes - before.bytes.videos)
      let isOld = Self.tolerance * change > before.bytes.videos || totals.isComplete && !before.isSettled
      return isOld ? (id, totals, change) : nil
    }.sorted { $0.change > $1.change }.prefix(Self.maximumMeasured)
    let found = try ParallelFetch.map(Array(wanted)) { [self] in
      try measure($0.id, $0.totals)
    } progress: { _ in
      try cancellation.check()
    }
    for (session, bytes) in zip(wanted, found) {
      let isComplete = session.totals.isComplete
      let isSettled = isComplete && measured[session.id]?.isComplete == true
      measured[session.id] = bytes.map { Measured(bytes: $0, isComplete: isComplete, isSettled: isSettled) }
    }
    known.withLock { [measured] in $0 = measured }
    let all = measured.values.reduce(into: SessionBytes()) { $0 += $1.bytes }
    return sessions.reduce(into: [:]) { bytes, session in
      let (id, totals) = session
      var found = (measured[id]?.bytes ?? all).scaled(toVideos: totals.bytes, segments: totals.segments)
      if let own = measured[id] { found.shared = own.bytes.shared }
      bytes[id] = found
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
    let exported = totals.isComplete ? try objects(in: ExportedFile.directory + "/", of: session) : []
    sample.shared = exported.reduce(0) { $0 + $1.size }
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

  /// Returns the objects of a folder of a session, but not those of folders in it.
  ///
  /// - Parameter startMs: returns those whose names come behind this segment's; nil for all.
  private func objects(
    in folder: String, of session: ObjectSession, from startMs: Int64? = nil
  ) throws -> [(name: String, size: Int)] {
    let prefix = session.key(folder)
    var walk = store.walk(prefix, after: startMs.map { prefix + StoredPublications.stem($0) })
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
