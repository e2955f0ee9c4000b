// All views, and what an update does to each: from the files that are there if the cache of the session is valid, else from all manifests.

import Encoding
import FileSystem
import FrameBatches

/// All views.
package enum ViewList {
  /// In the order in which they are written: readers of a segment in `session.json` find its event, too.
  static let all: [any SessionView] = [SentryView(), IndexView(), LivePlaylistView(), ThumbnailView()]

  /// The directories of views in a session's.
  package static var directories: [String] { all.compactMap(\.directory) }
}

extension ViewKinds {
  /// All kinds that this version knows.
  static let known = ViewKinds(ViewList.all.map(\.kind))
}

extension ViewUpdate {
  /// The result of an update, and the new cache of the session; nil if that stays as it is.
  typealias Result = (outcome: ViewOutcome, cache: SessionIndexCache?)

  /// Adds the segments that the views lack.
  ///
  /// - Parameter cache: the cache before `new` was added.
  /// - Returns: nil if all manifests are needed.
  func add(_ new: [PublishedSegment], to cache: SessionIndexCache) throws -> Result? {
    let isRelease = cache.behind.isEmpty && new.isEmpty
    let views = ViewList.all.filter { cache.views.contains($0.kind) && (!isRelease || $0.holdsSegmentsBack) }
    if views.isEmpty { return (ViewOutcome(), nil) }
    guard let segments = try segments(new, behind: cache), views.allSatisfy({ $0.canGrow(by: segments) }) else {
      return nil
    }
    var outcome = ViewOutcome()
    for view in views {
      guard let extended = try view.extend(self, by: segments) else { return nil }
      outcome.warnings += view.warnings(of: new, in: directory.session)
      outcome.heldBack = extended.heldBack ?? outcome.heldBack
    }
    return (outcome, isRelease ? nil : cache.adding(new.map(\.startMs), areBehind: false))
  }

  /// Takes the first segments out of all views.
  ///
  /// - Parameter kinds: the views that the session has.
  /// - Returns: false if all views have to be made from the manifests.
  func removeFirst(_ removal: FirstSegments, from kinds: ViewKinds) throws -> Bool {
    try ViewList.all.filter { kinds.contains($0.kind) }.allSatisfy { try $0.removeFirst(self, removal) }
  }

  /// Returns the segments that the views lack; nil if all manifests are needed.
  private func segments(_ new: [PublishedSegment], behind cache: SessionIndexCache) throws -> NewSegments? {
    var read = Dictionary(uniqueKeysWithValues: new.map { ($0.startMs, $0) })
    func segment(_ startMs: Int64) throws -> PublishedSegment {
      if let known = read[startMs] { return known }
      let segment = try directory.segment(startMs)
      read[startMs] = segment
      return segment
    }
    let behind = Set(cache.behind + new.map(\.startMs))
    let starts = (cache.recent + new.map(\.startMs)).sorted()
    let listed = starts.filter { !behind.contains($0) }
    guard let last = listed.last, case let first = behind.min() ?? .max, listed[0] < first,
      let json = try contents(of: IndexText.jsonFile), let script = try contents(of: IndexText.scriptFile),
      let (index, kept) = try IndexText.extending(
        json: json, script: script, of: directory.session, to: starts, { try segment($0).entry })
    else { return nil }
    return NewSegments(
      index: index, added: behind.isEmpty ? [] : try starts[kept...].map(segment), starts: starts, lastMs: last,
      areLast: last < first, segment: segment)
  }

  /// Makes all views from the manifests.
  ///
  /// - Parameter wanted: written even if the session has none.
  func rebuild(_ wanted: ViewKinds) throws -> Result {
    let entries = try Directory(opening: directory.path, followingLinks: false).entries()
    let retention = try directory.retention()
    let listed = entries.compactMap { SegmentName.start(ofManifest: $0.name) }.filter { retention?.removes($0) != true }
    let views = try ViewList.all.filter { try wanted.contains($0.kind) || $0.isPresent(in: directory, entries) }
    let hasMarks = views.contains { $0.kind == .hls }
    var update = self
    let segments = try listed.sorted().map { start in
      let (segment, json) = try directory.manifest(start)
      if hasMarks { update.marks[start] = SegmentMarks(json, of: segment) }
      return segment
    }
    guard !segments.isEmpty else {
      for view in ViewList.all { try view.remove(from: directory, entries) }
      return (ViewOutcome(), nil)
    }
    var (outcome, kinds) = (ViewOutcome(), ViewKinds())
    for view in views {
      let made = try view.rebuild(update, from: segments, entries)
      outcome.warnings += made.warnings
      outcome.heldBack = made.heldBack ?? outcome.heldBack
      kinds.insert(view.kind)
    }
    // Videos that the cache does not list do not exist.
    let starts = Set(segments.map(\.startMs))
    guard entries.allSatisfy({ SegmentName.start(ofVideo: $0.name).map(starts.contains) ?? true }) else {
      return (outcome, nil)
    }
    let recent = segments.suffix(SessionIndexCache.recentCount).map(\.startMs)
    return (outcome, SessionIndexCache(count: segments.count, recent: recent, behind: [], views: kinds))
  }
}
