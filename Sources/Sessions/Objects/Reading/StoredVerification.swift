// Checks a session of an object store against its index and its manifests.

import Encoding
import FileSystem
import FrameBatches
import Glibc

extension StoredSessions {
  /// The number of times that a session is checked whose worker is writing it.
  private static let attempts = 3
  /// The views of a head that is younger, in seconds, may be about to be written.
  private static let viewsS = 10
  private static let maximumOrphans = 1_000

  /// Checks one session. A session that a worker writes meanwhile is checked again.
  ///
  /// - Parameters:
  ///   - output: an existing private directory for copies of it.
  ///   - copying: called with the number of copied objects and of all; an error that it throws ends the work.
  ///   - progress: called with the number of segments checked and of all; an error that it throws ends the work.
  ///   - reading: called once, with the copy and the result, before the copy is removed.
  /// - Throws: ``BadSession`` for a session that is unknown or deleted, or whose index is damaged; an error of the store.
  package func verify(
    _ id: SessionID, in output: String, decoders: DecoderForkServer? = nil, copying: (Int, Int) throws -> Void,
    progress: (Int, Int) throws -> Void,
    reading: (_ path: String, VerificationReport) throws -> Void = { _, _ in }
  ) throws -> VerificationReport {
    var attempt = 0
    while true {
      attempt += 1
      let scratch = "\(output)/\(attempt)"
      try DurableFile.makeDirectories(scratch)
      defer { try? DurableFile.removeTree(scratch) }
      let (report, copy) = try check(id, in: scratch, decoders, copying, progress)
      if try report.problems.isEmpty || attempt == Self.attempts || !isBeingWritten(copy.index) {
        try reading(copy.path, report)
        return report
      }
      sleep(1)
    }
  }

  /// Checks a session that a list of the store names.
  ///
  /// Parameters and errors as of ``verify(_:in:decoders:copying:progress:)``.
  ///
  /// - Returns: nil if there is nothing to check: it was deleted, or a worker may be about to publish its first batch.
  package func verifyListed(
    _ id: SessionID, in output: String, decoders: DecoderForkServer? = nil, copying: (Int, Int) throws -> Void,
    progress: (Int, Int) throws -> Void
  ) throws -> VerificationReport? {
    let session = session(id)
    do {
      if try session.head().published == nil {
        let orphans = try orphans(names(in: session, atMost: 100_000).keys.sorted(), of: session)
        return orphans.isEmpty
          ? nil
          : VerificationReport(session: id.description, segments: 0, frames: 0, durationMs: 0, problems: orphans)
      }
    } catch is SessionDeleted {
      return nil
    } catch is DamagedOutput {
      // The verification says so.
    }
    return try verify(id, in: output, decoders: decoders, copying: copying, progress: progress)
  }

  /// Whether a worker has changed the session since the index was read, or may be about to write its views.
  private func isBeingWritten(_ index: StoredIndex) throws -> Bool {
    let head = try objects.head(index.session.headKey)
    return head?.tag != index.published.tag || head?.ageS.map { $0 < Self.viewsS } ?? false
  }

  private func check(
    _ id: SessionID, in output: String, _ decoders: DecoderForkServer?, _ copying: (Int, Int) throws -> Void,
    _ progress: (Int, Int) throws -> Void
  ) throws -> (VerificationReport, StoredSession) {
    let copy = try StoredSession(id, of: self, in: output, part: .whole, damage: .kept, progress: copying)
    let known = SessionNames(copy.entries)
    // Behind the index: a worker writes objects before it lists them.
    let listed = try names(in: copy.index.session, atMost: 8 * copy.entries.count + 10_000)
    let views = listed.filter { known.views.contains($0.key) }
    try copy.requireRoom(
      for: copy.entries.reduce(0) { $0 + $1.bytes } + views.values.reduce(0) { $0 + min($1, IndexText.maximumBytes) })
    try copy.fetchVideos(of: nil, progress: copying)
    let isBehind = try objects.head(MarkerObjects.key(of: id)) != nil
    let packed = try isBehind ? [] : copy.wrongViewsOfPacks()
    try copy.fetchViews(views, isBehind: isBehind, progress: copying)
    let report = try Verification.report(
      on: copy.path, decoders: decoders,
      remedy: "a worker rebuilds it with the next batch of the session, also with one that is published already",
      progress: progress)
    let orphans = try orphans(listed.keys.filter { !known.all.contains($0) }.sorted(), of: copy.index.session)
    let problems = packed + report.problems.map { Problem(file: copy.renamed($0.file), what: $0.what) }
    return (
      VerificationReport(
        session: report.session, segments: report.segments, frames: report.frames, durationMs: report.durationMs,
        problems: problems + orphans, health: report.health), copy
    )
  }

  /// Returns the names of the objects and folders below a session's, with the sizes of the objects.
  ///
  /// - Parameter limit: maximum number of names.
  private func names(in session: ObjectSession, atMost limit: Int) throws -> [String: Int] {
    let prefix = session.key("")
    var walk = walk(prefix)
    var names: [String: Int] = [:]
    while let page = try walk.next() {
      for object in page {
        let path = object.key.dropFirst(prefix.count)
        let name = String(path.prefix { $0 != "/" })
        names[name] = name.utf8.count == path.utf8.count ? object.size : 0
        walk.skip(folder: prefix + name)
      }
      guard names.count <= limit else {
        throw Failure(
          .environment, "list", session.place, "more than \(limit) objects", advice: "remove those that are not ours")
      }
    }
    return names
  }

  /// Returns the objects that no running worker is about to list.
  private func orphans(_ names: [String], of session: ObjectSession) throws -> [Problem] {
    var problems: [Problem] = []
    // Objects of a session that was compacted stay for a while.
    let replaced = try names.isEmpty ? [] : ReplacedObjects(of: session).names()
    let names = names.filter { !replaced.contains($0) }
    for name in names.prefix(Self.maximumOrphans) {
      // The objects of a folder have other keys.
      guard let object = try objects.head(session.key(name)) else {
        problems.append(Problem(file: name, what: "an orphan: no index lists it"))
        continue
      }
      guard let ageS = object.ageS, ageS >= ObjectStore.orphanTTL else { continue }
      problems.append(Problem(file: name, what: "an orphan: no index lists it"))
    }
    if names.count > Self.maximumOrphans {
      let more = names.count - Self.maximumOrphans
      problems.append(Problem(file: session.place, what: "\(more) more objects that no index lists"))
    }
    return problems
  }
}

extension StoredSession {
  /// Whether `session.json` and `session.ffconcat` in the store name packs. Those of the copy name its files.
  private var hasPacks: Bool { entries.contains { $0.pack != nil } }

  /// Returns which views of a packed session are not as its index says. One that goes on has none before its next batch of another
  /// layout, or its end.
  fileprivate func wrongViewsOfPacks() throws -> [Problem] {
    let published = index.published
    guard hasPacks, published.hasViews, published.compaction?.lacksViews != true else { return [] }
    return try IndexText(published.index.listing(entries)).files.compactMap { name, bytes in
      let there = try index.session.objects.get(index.session.key(name), limit: IndexText.maximumBytes)
      return there?.bytes == bytes
        ? nil
        : Problem(
          file: name, what: "\(there == nil ? "missing" : "not as the index says"); a worker writes it with the end")
    }
  }

  /// Copies the views.
  ///
  /// - Parameters:
  ///   - views: their names and sizes.
  ///   - isBehind: whether a worker is about to write them.
  fileprivate func fetchViews(_ views: [String: Int], isBehind: Bool, progress: (Int, Int) throws -> Void) throws {
    if hasPacks { try writeIndex() }
    let views = views.filter { !hasPacks || ![IndexText.jsonFile, IndexText.scriptFile].contains($0.key) }
    if isBehind {
      let copy = SessionDirectory(output: DurableFile.parentDirectory(of: path), session: index.session.id)
      _ = try MarkerFiles(beside: copy).add(copy.session, known: nil)
    }
    let objects = objects
    let all = views.sorted { $0.key < $1.key }
    _ = try ParallelFetch.map(
      all, { try objects.fetchView($0.key, of: $0.value) }, progress: { try progress($0, all.count) })
  }
}

/// The names of the objects and folders that a session may have.
private struct SessionNames {
  /// Files beside the segments that are made from them.
  let views: Set<String>
  let all: Set<String>

  init(_ entries: [SessionEntry]) {
    let starts = entries.map(\.startMs)
    views = Set(
      [IndexText.jsonFile, IndexText.scriptFile] + starts.map(SegmentName.event) + starts.map(SegmentName.text))
    let own = entries.filter { $0.pack == nil }.map(\.startMs)
    all = views.union(own.map(SegmentName.video)).union(own.map(SegmentName.manifest))
      .union(starts.map(SegmentName.labels))
      .union(entries.compactMap { $0.pack?.file }).union(ViewList.directories).union([
        SessionEnd.file, SessionRetention.file, ExportedFile.directory,
      ])
  }
}
