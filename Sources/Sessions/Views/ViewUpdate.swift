// One update of a session's views, with the session locked: from the files that are there if the cache of the session is valid,
// else from all manifests.

import Encoding
import FileSystem
import Glibc

struct ViewUpdate {
  /// The result of an update.
  struct Outcome {
    /// Warnings about segments whose events are new.
    var warnings: [String] = []
    /// The segments that the live playlist holds back; nil if it lists all.
    var heldBack: HLSPackage.HeldBack?
    /// The new cache of the session; nil if it stays as it is.
    var cache: SessionIndexCache?
  }

  let directory: SessionDirectory
  /// A live playlist holds back no segment that starts by then, in unix milliseconds.
  let releasedMs: Int64
  /// A file name to write under, on the same file system.
  let temporary: String
  /// Unix milliseconds.
  let nowMs: Int64
  /// Called between files; throws if the worker has to stop.
  let progress: (_ done: Int, _ total: Int) throws -> Void

  private var playlist: HLSPackage {
    HLSPackage(path: directory.path + "/" + HLSPackage.directory, temporary: temporary, nowMs: nowMs)
  }

  /// Adds the segments that the views lack.
  ///
  /// - Parameter cache: the cache before `new` was added.
  /// - Returns: nil if all manifests are needed.
  func add(_ new: [PublishedSegment], to cache: SessionIndexCache) throws -> Outcome? {
    let behind = Set(cache.behind + new.map(\.startMs))
    var outcome = Outcome()
    if behind.isEmpty && !cache.hasHLS { return outcome }
    var read = Dictionary(uniqueKeysWithValues: new.map { ($0.startMs, $0) })
    func segment(_ startMs: Int64) throws -> PublishedSegment {
      if let known = read[startMs] { return known }
      let segment = try directory.segment(startMs)
      read[startMs] = segment
      return segment
    }
    let starts = (cache.recent + new.map(\.startMs)).sorted()
    let listed = starts.filter { !behind.contains($0) }
    guard let last = listed.last, case let first = behind.min() ?? .max, listed[0] < first,
      !(cache.hasHLS || cache.hasThumbnails) || last < first,
      let json = try contents(of: SessionView.jsonFile), let script = try contents(of: SessionView.scriptFile),
      let (view, kept) = try SessionView.extending(
        json: json, script: script, of: directory.session, to: starts, { try segment($0).entry })
    else { return nil }
    let added = behind.isEmpty ? [] : try starts[kept...].map(segment)
    if cache.hasEvents {
      let firstOrdinal = view.index.count - added.count
      for (index, segment) in added.enumerated() {
        try write(SentryEvent(segment, ordinal: firstOrdinal + index).text, to: SegmentName.event(segment.startMs))
      }
      outcome.warnings = warnings(of: new)
    }
    if !behind.isEmpty {
      for (name, bytes) in view.files {
        try DurableFile.replace(directory.path + "/" + name, bytes, temporary: temporary)
      }
      try Directory(opening: directory.path).sync()
    }
    if cache.hasHLS {
      guard let end = try playlist.lastStart(), let index = starts.lastIndex(of: end),
        let extended = try playlist.extend(
          by: starts[index...].map(segment), sessionStartMs: view.index.startMs, releasedMs: releasedMs, from: directory
        )
      else { return nil }
      outcome.heldBack = extended.heldBack
    }
    if behind.isEmpty { return outcome }
    if cache.hasThumbnails,
      try !ThumbnailPackage(of: directory, temporary: temporary).extend(
        by: added, after: segment(last), sessionStartMs: view.index.startMs)
    {
      return nil
    }
    outcome.cache = cache.adding(new.map(\.startMs), areBehind: false)
    return outcome
  }

  /// Makes all views from the manifests.
  ///
  /// - Parameters:
  ///   - events: whether to write events even if the session has none; the others likewise.
  func rebuild(events: Bool, hls: Bool, thumbnails hasThumbnails: Bool) throws -> Outcome {
    var outcome = Outcome()
    let entries = try Directory(opening: directory.path, followingLinks: false).entries()
    let segments = try entries.compactMap { SegmentName.start(ofManifest: $0.name) }.sorted().map(directory.segment)
    // Before session.json, so that readers of a segment there find its event, too.
    let hasEvents = try updateEvents(entries, of: segments, areWanted: events, &outcome)
    guard let index = SessionIndex(session: directory.session, segments: segments) else {
      for name in [SessionView.jsonFile, SessionView.scriptFile] { unlink(directory.path + "/" + name) }
      for name in [HLSPackage.directory, ThumbnailPackage.directory] {
        try DurableFile.removeTree(directory.path + "/" + name)
      }
      return Outcome()
    }
    for (name, bytes) in SessionView(index).files { try write(bytes, to: name) }
    try Directory(opening: directory.path).sync()
    // Every worker keeps existing views up to date.
    let hasHLS = try hls || DurableFile.isDirectory(playlist.path)
    if hasHLS {
      outcome.heldBack = try playlist.update(
        segments, releasedMs: releasedMs, from: directory, progress: progress
      ).heldBack
    }
    let thumbnails = ThumbnailPackage(of: directory, temporary: temporary)
    let hasThumbnails = try hasThumbnails || DurableFile.isDirectory(thumbnails.path)
    if hasThumbnails { try thumbnails.update(segments, progress: progress) }
    // Videos that the cache does not list do not exist.
    let starts = Set(segments.map(\.startMs))
    if entries.allSatisfy({ SegmentName.start(ofVideo: $0.name).map(starts.contains) ?? true }) {
      outcome.cache = SessionIndexCache(
        count: segments.count, recent: segments.suffix(SessionIndexCache.recentCount).map(\.startMs), behind: [],
        hasEvents: hasEvents, hasHLS: hasHLS, hasThumbnails: hasThumbnails)
    }
    return outcome
  }

  /// Writes missing and outdated events.
  ///
  /// - Returns: whether the session has events.
  private func updateEvents(
    _ entries: [Directory.Entry], of segments: [PublishedSegment], areWanted: Bool, _ outcome: inout Outcome
  ) throws -> Bool {
    let present = Set(entries.filter { $0.kind == .file }.compactMap { SegmentName.start(ofEvent: $0.name) })
    // Every worker keeps existing events up to date.
    guard areWanted || !present.isEmpty else { return false }
    for (name, text) in SentryEvent.files(of: segments) { try write(text, to: name) }
    // Remove events of segments that were rolled back. Do this last: existing events tell the next worker that events are wanted.
    for start in present.subtracting(segments.map(\.startMs)) {
      let file = directory.path + "/" + SegmentName.event(start)
      try check("unlink", file) { unlink(file) }
    }
    outcome.warnings = warnings(of: segments.filter { !present.contains($0.startMs) })
    return true
  }

  private func warnings(of new: [PublishedSegment]) -> [String] {
    new.compactMap { SentryEvent.warning(of: $0, in: directory.session) }
  }

  private func contents(of name: String) throws -> [UInt8]? {
    try DurableFile.contents(of: directory.path + "/" + name, limit: SessionView.maximumBytes)
  }

  /// Writes a file unless it has these bytes.
  private func write(_ bytes: [UInt8], to name: String) throws {
    let path = directory.path + "/" + name
    if try DurableFile.contents(of: path, limit: bytes.count) == bytes { return }
    try DurableFile.replace(path, bytes, temporary: temporary)
  }
}
