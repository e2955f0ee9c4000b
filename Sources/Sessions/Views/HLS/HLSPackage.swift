// A session as HLS on disk: playlists, a fragment for each segment, and the initializations that decode them. Like session.json
// it is a view. The names of fragments and initializations change with their contents, and session.m3u8 is written last. Files that
// a live playlist no longer names stay for a while: see SupersededFiles.swift.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import ISOMedia

package struct HLSPackage {
  /// The directory of a growing session's package, in the session's.
  package static let directory = "hls"

  /// Whether a package has fragments or initializations of this name.
  package static func hasFile(named name: String) -> Bool { SupersededFiles.canList(name) }

  /// The package's directory; created if it is missing.
  let path: String
  /// A temporary name that no other process uses, on the same file system.
  let temporary: String
  /// Unix milliseconds.
  let nowMs: Int64
  /// Returns the chapters of a segment; nil where its manifest has to be read.
  var marks: (PublishedSegment) -> SegmentMarks?
  /// Where segments lie that are in packs, by their starts.
  var packs: [Int64: HLSPackPart] = [:]

  package init(
    path: String, temporary: String, nowMs: Int64 = WallClock.nowMs,
    marks: @escaping (PublishedSegment) -> SegmentMarks? = { _ in nil }
  ) {
    (self.path, self.temporary, self.nowMs, self.marks) = (path, temporary, nowMs, marks)
  }

  /// Writes the package of a finished session.
  ///
  /// - Parameters:
  ///   - segments: at least one, in the order of their starts.
  ///   - dates: tags of the playlist that name instants.
  ///   - captions: in the order of their starts.
  /// - Returns: the size of all fragments, in bytes.
  /// - Throws: ``BadSession``, ``DiskError``.
  package func write(
    _ segments: [PublishedSegment], from session: SessionDirectory, dates: String = "",
    captions: [Caption] = [], progress: (Int, Int) throws -> Void
  ) throws -> Int {
    let parts = HLSSegment.all(segments)
    // Make all names before any fragment: small lasting allocations between large short ones fragment the heap.
    let entries = HLSPlaylist.Entry.all(parts)
    try DurableFile.makeDirectories(path)
    let directory = try Directory(opening: path)
    try requireOwn(session.session)
    var playlist = HLSPlaylist(of: session.session, parts, dates: dates)
    playlist.captions = HLSCaptions(captions)
    var size = 0
    for (index, part) in parts.enumerated() {
      var entry = entries[index]
      let layout = try write(part, as: entry, from: session)
      entry.layout = layout
      playlist.append(entry)
      size += layout.bytes
      try progress(index + 1, parts.count)
    }
    if playlist.hasGaps { try replace(HLSPlaylist.gapFile, MP4Fragment.empty) }
    try writeCaptions(of: playlist)
    playlist.end(atMs: playlist.endMs)
    let views = HLSViews(of: Array(playlist.text.utf8))
    try replace(views, views.media, in: directory)
    return size
  }

  /// Writes the missing files of captions.
  private func writeCaptions(of playlist: HLSPlaylist) throws {
    guard HLSCaptions.areIn(Array(playlist.text.utf8)) else { return }
    let segments = playlist.captionSegments.merging([HLSCaptionSegment.emptyFile: .none]) { $1 }
    for (name, segment) in segments where !DurableFile.exists(path + "/" + name) {
      try replace(name, segment.bytes)
    }
  }

  private func write(
    _ part: HLSSegment, as entry: HLSPlaylist.Entry, from session: SessionDirectory
  ) throws -> HLSLayout {
    let files = try part.files(from: session)
    // A hold behind a pack has the initialization of that.
    if entry.map != nil {
      try replace(entry.file, files.fragment)
      return files.layout
    }
    if let there = try DurableFile.contents(of: path + "/" + entry.initialization, limit: 1 << 20) {
      guard there == files.initialization else {
        throw BadSession(
          part.segment.file, "other parameter sets than its manifest makes one expect",
          advice: "write into an empty directory, and see what verify says of the session")
      }
    } else {
      try replace(entry.initialization, files.initialization)
    }
    try replace(entry.file, files.fragment)
    return files.layout
  }

  /// - Throws: ``BadSession`` if the directory has another session's playlist.
  private func requireOwn(_ session: SessionID) throws {
    guard let there = try text(), HLSPlaylist.session(of: there) != session.description else { return }
    throw BadSession(path, "another session's playlist is there", advice: "name another directory")
  }

  /// The existing media playlist.
  func text() throws -> [UInt8]? {
    try DurableFile.contents(of: path + "/" + HLSPlaylist.file, limit: IndexText.maximumBytes)
  }

  /// Returns the files that the media playlist names.
  func named() throws -> Set<String> { try text().map(HLSPlaylist.files) ?? [] }

  /// Returns whether the media playlist is older than the time for which files that it replaced stay.
  func isUnchanged(atMs nowMs: Int64) throws -> Bool {
    var status = stat()
    guard let text = try text(), lstat(path + "/" + HLSPlaylist.file, &status) == 0 else { return false }
    let changedMs = WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    return nowMs - changedMs >= SupersededFiles.graceMs(after: text, durationMs: .max)
  }

  /// Removes a file that no playlist names.
  func remove(_ name: String) throws(DiskError) {
    let file = path + "/" + name
    try check("unlink", file) { unlink(file) == 0 || errno == ENOENT ? 0 : -1 }
  }

  /// Replaces the playlists, the media playlist last, after the files that they name are on the disk.
  func replace(_ views: HLSViews, _ media: [UInt8], in directory: Directory) throws {
    try directory.sync()
    try replace(HLSViews.keyFramesFile, views.keyFrames)
    if let captions = views.captions { try replace(HLSCaptions.file, captions) }
    try replace(HLSViews.multivariantFile, views.multivariant)
    try replace(HLSPlaylist.file, media)
    try directory.sync()
  }

  private func replace(_ name: String, _ bytes: [UInt8]) throws(DiskError) {
    try DurableFile.replace(path + "/" + name, bytes, temporary: temporary)
  }
}

// MARK: - Live packages

extension HLSPackage {
  /// Holds back the last of `segments`, from `first` on, until the next batch should have come.
  private func holdBack(_ first: PublishedSegment, of segments: ArraySlice<PublishedSegment>) -> HeldBack {
    let batchStartMs = segments.first { $0.batchDigest == first.batchDigest }?.startMs ?? first.startMs
    return HeldBack(
      startMs: first.startMs, lastMs: segments[segments.endIndex - 1].startMs,
      waitMs: Int(first.listingWaitMs(batchStartMs: batchStartMs)))
  }

  /// Returns the start of the last segment that the playlist lists, in unix milliseconds; nil where there is none.
  func lastStart() throws -> Int64? { try text().flatMap(HLSPlaylist.lastStart) }

  /// Returns the segments that a live playlist can list: up to the first whose end the next batch may change.
  ///
  /// - Parameter releasedMs: segments that start by then are listed anyway.
  static func listable(
    _ segments: ArraySlice<PublishedSegment>, _ releasedMs: Int64
  ) -> ArraySlice<PublishedSegment> {
    let end = segments.indices.first { index in
      let segment = segments[index]
      if segment.hasKnownEnd || segment.startMs <= releasedMs { return false }
      // A later batch may belong into a gap between two others.
      let next = segments[(index + 1)...].first
      return next.map { $0.batchDigest != segment.batchDigest && segment.gap(before: $0) != nil } ?? true
    }
    return segments[..<(end ?? segments.endIndex)]
  }

  /// Updates a live package. Lines that players have read do not change, unless a new segment begins before listed ones. Existing
  /// fragments are not written again, and a damaged segment is listed as a gap.
  ///
  /// - Parameters:
  ///   - segments: all of the session, in the order of their starts, at least one.
  ///   - releasedMs: segments that start by then are not held back.
  ///   - hasEnded: whether the session has ended.
  ///   - retention: of the session.
  ///   - isWindow: whether first segments are or will be removed.
  /// - Throws: ``BadSession``, ``DiskError``.
  func update(
    _ segments: [PublishedSegment], releasedMs: Int64, hasEnded: Bool, retention: SessionRetention? = nil,
    isWindow: Bool = false, from session: SessionDirectory, progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> ViewOutcome {
    try DurableFile.makeDirectories(path)
    _ = try Directory(opening: path, followingLinks: false)
    try requireOwn(session.session)
    let originMs = retention?.originMs ?? segments[0].startMs
    var releasedMs = hasEnded ? .max : releasedMs
    if let retention, try !slide(to: retention.startMs, originMs: originMs, in: session) {
      // Players cannot use a playlist without a segment.
      releasedMs = .max
    }
    let there = try text() ?? []
    let listed = HLSPlaylist.starts(in: there)
    // Listed segments stay listed.
    releasedMs = max(releasedMs, listed.last ?? .min)
    // Else a new segment belongs before listed ones.
    if let last = listed.last, listed == segments.prefix(while: { $0.startMs <= last }).map(\.startMs),
      let extended = try extend(
        by: Array(segments[(listed.count - 1)...]), sessionStartMs: originMs, releasedMs: releasedMs,
        hasEnded: hasEnded, from: session)
    {
      return extended
    }
    let playlist = HLSPlaylist(
      of: session.session, isWindow || retention != nil ? .window : .live, startMs: segments[0].startMs,
      maximumMs: HLSPlaylist.target(of: there).map { $0 * 1_000 } ?? HLSPlaylist.liveMaximumMs(of: segments),
      sequence: HLSPlaylist.sequence(of: there))
    return try list(
      segments[...], behind: playlist, sessionStartMs: originMs, releasedMs: releasedMs,
      hasEnded: hasEnded, from: session, progress: progress
    ) { _ in
    } preparing: { playlist in
      playlist.keepCaptions(of: there)
      playlist.keepNumbers(of: there)
      // Files of the playlist that is there, and leftovers of a worker that died.
      let graceMs = SupersededFiles.graceMs(after: there, durationMs: playlist.endMs - segments[0].startMs)
      try SupersededLists(output: DurableFile.parentDirectory(of: session.path), temporary: temporary).replace(
        HLSPlaylist.files(in: there), with: HLSPlaylist.files(in: Array(playlist.text.utf8)),
        among: Directory(opening: path, followingLinks: false).entries().map(\.name), of: session.session,
        dueMs: nowMs + graceMs)
    }
  }

  /// Adds segments to a live package.
  ///
  /// - Parameters:
  ///   - segments: the last of the session, in the order of their starts; the first is the last that is listed.
  ///   - startMs: the instant that the times in fragments count from.
  ///   - releasedMs: segments that start by then are not held back.
  ///   - hasEnded: whether the session has ended.
  /// - Returns: nil when all has to be made from all segments.
  func extend(
    by segments: [PublishedSegment], sessionStartMs startMs: Int64, releasedMs: Int64, hasEnded: Bool,
    from session: SessionDirectory
  ) throws -> ViewOutcome? {
    _ = try Directory(opening: path, followingLinks: false)
    guard let there = try text(), let playlist = HLSPlaylist(of: session.session, continuing: there),
      HLSPlaylist.lastStart(in: there) == segments.first?.startMs
    else { return nil }
    do {
      return try list(
        segments.dropFirst(), after: segments[0], behind: playlist, sessionStartMs: startMs,
        releasedMs: hasEnded ? .max : releasedMs, hasEnded: hasEnded, from: session
      ) { throw NoRoom(entry: $0) }
    } catch is NoRoom {
      return nil
    }
  }

  /// An entry would change listed ones.
  private struct NoRoom: Error { let entry: HLSPlaylist.Entry }

  /// Writes segments that a playlist does not list yet.
  ///
  /// - Parameters:
  ///   - before: the segment before the first of them; nil if that is the first of the session.
  ///   - refuse: called with an entry for which there is no room; when it returns, the entry is left out.
  ///   - prepare: called before the playlist is replaced.
  private func list(
    _ segments: ArraySlice<PublishedSegment>, after before: PublishedSegment? = nil, behind previous: HLSPlaylist,
    sessionStartMs: Int64, releasedMs: Int64, hasEnded: Bool, from session: SessionDirectory,
    progress: (Int, Int) throws -> Void = { _, _ in },
    refuse: (HLSPlaylist.Entry) throws -> Void,
    preparing prepare: (inout HLSPlaylist) throws -> Void = { _ in }
  ) throws -> ViewOutcome {
    if segments.isEmpty && !hasEnded { return ViewOutcome() }
    var playlist = previous
    let listed = Self.listable(segments, releasedMs)
    let directory = try Directory(opening: path, followingLinks: false)
    var done = 0
    var found = SegmentMarks()
    try playlist.list(
      listed, after: before, sessionStartMs: sessionStartMs, packs: packs,
      next: { $0 + 1 < segments.endIndex ? segments[$0 + 1] : nil },
      marks: { _ in found }, refuse: refuse,
      place: { part, entry in
        var entry = entry
        do {
          if !part.isHold {
            done += 1
            try progress(done, segments.count)
            found = try marks(part.segment) ?? session.marks(of: part.segment)
          }
          // Its bytes are in the store.
          if entry.range != nil { return entry.layout == nil ? nil : entry }
          let isThere = DurableFile.exists(path + "/" + entry.file)
          entry.layout = try isThere ? part.layout(from: session) : write(part, as: entry, from: session)
          return entry
        } catch is BadSession {
          return nil
        }
      })
    let rest = segments[listed.endIndex...]
    let outcome = ViewOutcome(heldBack: rest.first.map { holdBack($0, of: segments) })
    // Players cannot use a playlist without a segment.
    if playlist.endMs == previous.endMs && !(hasEnded && previous.hasEntries) { return outcome }
    if hasEnded { playlist.end(atMs: segments.last?.endMs ?? playlist.endMs) }
    if playlist.hasGaps, !DurableFile.exists(path + "/" + HLSPlaylist.gapFile) {
      try replace(HLSPlaylist.gapFile, MP4Fragment.empty)
    }
    try writeCaptions(of: playlist)
    try prepare(&playlist)
    let text = Array(playlist.text.utf8)
    try replace(HLSViews(of: text), text, in: directory)
    return outcome
  }
}

// MARK: - Packages whose first segments are removed

extension HLSPackage {
  /// Takes the first segments out of the playlists. Their fragments stay for a while, like all files that a playlist no longer names.
  ///
  /// - Parameters:
  ///   - startMs: the start of the first segment that stays, in unix milliseconds.
  ///   - originMs: the instant that the times in fragments count from.
  /// - Returns: false if no listed segment stays. Then the playlists are unchanged.
  func slide(to startMs: Int64, originMs: Int64, in session: SessionDirectory) throws -> Bool {
    guard let there = try text(), let slid = HLSPlaylist.sliding(there, to: startMs) else { return true }
    guard slid.hasSegments else { return false }
    let graceMs = SupersededFiles.graceMs(after: there, durationMs: startMs - originMs)
    // A file that the playlist still names is not removed.
    try SupersededLists(output: DurableFile.parentDirectory(of: session.path), temporary: temporary).replace(
      slid.files, with: [], among: [], of: session.session, dueMs: nowMs + graceMs)
    try replace(HLSViews(of: slid.text), slid.text, in: Directory(opening: path, followingLinks: false))
    return true
  }
}
