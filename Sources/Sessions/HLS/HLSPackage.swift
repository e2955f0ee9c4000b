// A session as HLS on disk: playlists, a fragment a segment, and the initializations that decode them. A view, like
// session.json: the names of fragments and initializations change with their contents, and session.m3u8 comes last.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import ISOMedia

struct HLSPackage {
  /// The directory of a growing session's package, in the session's.
  package static let directory = "hls"

  /// The package's directory; made when it is missing.
  package let path: String
  /// A path to write files under that no other process uses, on the same file system.
  package let temporary: String

  /// Writes the package of a session that is over.
  ///
  /// - Parameters:
  ///   - segments: at least one, in the order of their starts.
  ///   - progress: called with the segments done and their number; what it throws ends the work.
  /// - Returns: the size of all fragments, in bytes.
  /// - Throws: ``BadSession``, ``DiskError``.
  package func write(
    _ segments: [PublishedSegment], from session: SessionDirectory, progress: (Int, Int) throws -> Void
  ) throws -> Int {
    let parts = HLSSegment.all(segments)
    // All names before any fragment: small things that stay, made between large ones that go, would keep their memory.
    let media = parts.map { HLSPlaylist.Media($0) }
    try DurableFile.makeDirectories(path)
    let directory = try Directory(opening: path)
    try requireOwn(session.session)
    var playlist = HLSPlaylist(of: session.session, parts)
    var size = 0
    for (index, part) in parts.enumerated() {
      let layout = try write(part, as: media[index], from: session)
      playlist.append(part.entry(HLSPlaylist.Media(part, layout: layout)))
      size += layout.bytes
      try progress(index + 1, parts.count)
    }
    if playlist.hasGaps { try replace(HLSPlaylist.gapFile, MP4Fragment.empty) }
    try directory.sync()
    playlist.end(atMs: playlist.endMs)
    let views = HLSViews(of: Array(playlist.text.utf8))
    try replace(HLSViews.keyFramesFile, views.keyFrames)
    try replace(HLSViews.multivariantFile, views.multivariant)
    try replace(HLSPlaylist.file, views.media)
    try directory.sync()
    return size
  }

  private func write(
    _ part: HLSSegment, as media: HLSPlaylist.Media, from session: SessionDirectory
  ) throws -> HLSLayout {
    let files = try part.files(from: session)
    if let there = try DurableFile.contents(of: path + "/" + media.initialization, limit: 1 << 20) {
      guard there == files.initialization else {
        throw BadSession(
          part.segment.file, "other parameter sets than its manifest makes one expect",
          advice: "write into an empty directory, and see what verify says of the session")
      }
    } else {
      try replace(media.initialization, files.initialization)
    }
    try replace(media.file, files.fragment)
    return files.layout
  }

  /// - Throws: ``BadSession`` when the directory has another session's playlist.
  private func requireOwn(_ session: SessionID) throws {
    guard let there = try text(), HLSPlaylist.session(of: there) != session.description else { return }
    throw BadSession(path, "another session's playlist is there", advice: "name another directory")
  }

  /// The media playlist that is there.
  private func text() throws -> [UInt8]? {
    try DurableFile.contents(of: path + "/" + HLSPlaylist.file, limit: SessionView.maximumBytes)
  }

  private func replace(_ name: String, _ bytes: [UInt8]) throws(DiskError) {
    try DurableFile.replace(path + "/" + name, bytes, temporary: temporary)
  }
}

// MARK: - Of a session that grows

extension HLSPackage {
  /// Segments that a live playlist does not list yet, because the next batch may change how long the first of them is shown.
  struct HeldBack: Equatable {
    /// The first and the last of them.
    package let startMs: Int64
    let lastMs: Int64
    /// When they are listed all the same, in monotonic milliseconds.
    package let dueMs: Int

    /// For how long, in milliseconds, at least and at most.
    fileprivate static let waitMs: ClosedRange<Int64> = 15_000...60_000

    private init(startMs: Int64, lastMs: Int64, dueMs: Int) {
      self.startMs = startMs
      self.lastMs = lastMs
      self.dueMs = dueMs
    }

    /// The same, listed later.
    func postponed(to dueMs: Int) -> HeldBack { HeldBack(startMs: startMs, lastMs: lastMs, dueMs: dueMs) }

    /// - Parameters:
    ///   - segments: those that are held back, at least one.
    ///   - first: of the batch that the first of them came with. The next batch is expected after as long as that one lasts.
    fileprivate init(_ segments: ArraySlice<PublishedSegment>, batchFrom first: PublishedSegment) {
      let (held, last) = (segments[segments.startIndex], segments[segments.endIndex - 1])
      let waitMs = min(max(2 * (held.endMs - first.startMs), Self.waitMs.lowerBound), Self.waitMs.upperBound)
      (startMs, lastMs) = (held.startMs, last.startMs)
      dueMs = MonotonicClock.milliseconds() + Int(waitMs)
    }
  }

  /// The result of an update of a live playlist.
  package struct Outcome {
    /// nil where the playlist lists all segments.
    let heldBack: HeldBack?
  }

  /// Returns the start of the last segment that the playlist lists, in unix milliseconds; nil where there is none.
  func lastStart() throws -> Int64? { try text().flatMap(HLSPlaylist.lastStart) }

  /// Returns the segments that a live playlist can list: up to the first whose end the next batch may change.
  ///
  /// - Parameter releasedMs: segments that start by then are listed all the same.
  static func listable(
    _ segments: ArraySlice<PublishedSegment>, _ releasedMs: Int64
  ) -> ArraySlice<PublishedSegment> {
    let end = segments.indices.first { index in
      let segment = segments[index]
      if segment.hasKnownEnd || segment.startMs <= releasedMs { return false }
      // A batch that is still to come may belong into a gap between two.
      let next = segments[(index + 1)...].first
      return next.map { $0.batchDigest != segment.batchDigest && segment.gap(before: $0) != nil } ?? true
    }
    return segments[..<(end ?? segments.endIndex)]
  }

  /// Brings a live package up to date. Lines that players have seen do not change, unless a segment comes that begins before
  /// others: fragments that are there are not written again, and a segment that is damaged is left out like a gap.
  ///
  /// - Parameters:
  ///   - segments: all of the session, in the order of their starts, at least one.
  ///   - releasedMs: segments that start by then are not held back.
  ///   - progress: called with the segments done and their number; what it throws ends the work.
  /// - Throws: ``BadSession``, ``DiskError``.
  package func update(
    _ segments: [PublishedSegment], releasedMs: Int64, from session: SessionDirectory,
    progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> Outcome {
    try DurableFile.makeDirectories(path)
    _ = try Directory(opening: path, followingLinks: false)
    try requireOwn(session.session)
    var releasedMs = releasedMs
    if let there = try text() {
      let told = HLSPlaylist.starts(in: there)
      // Listed segments stay listed.
      releasedMs = max(releasedMs, told.last ?? .min)
      // Else something belongs before what is told.
      if let last = told.last, told == segments.prefix(while: { $0.startMs <= last }).map(\.startMs),
        let extended = try extend(
          by: Array(segments[(told.count - 1)...]), sessionStartMs: segments[0].startMs, releasedMs: releasedMs,
          from: session)
      {
        return extended
      }
    }
    // The target comes from the first segment alone, so that it never changes: what its batch's interval allows, and a seam.
    let playlist = HLSPlaylist(
      of: session.session, .live, startMs: segments[0].startMs, maximumMs: 5_000 + segments[0].intervalMs)
    return try list(
      segments[...], behind: playlist, sessionStartMs: segments[0].startMs, releasedMs: releasedMs,
      from: session, progress: progress
    ) { _ in }
  }

  /// Adds segments to a live package.
  ///
  /// - Parameters:
  ///   - segments: the last of the session, in the order of their starts; the first is the last that is listed.
  ///   - startMs: the session's.
  ///   - releasedMs: segments that start by then are not held back.
  /// - Returns: nil when all has to be made from all segments.
  func extend(
    by segments: [PublishedSegment], sessionStartMs startMs: Int64, releasedMs: Int64, from session: SessionDirectory
  ) throws -> Outcome? {
    _ = try Directory(opening: path, followingLinks: false)
    guard let there = try text(), let playlist = HLSPlaylist(of: session.session, continuing: there),
      HLSPlaylist.lastStart(in: there) == segments.first?.startMs
    else { return nil }
    do {
      return try list(
        segments.dropFirst(), behind: playlist, sessionStartMs: startMs, releasedMs: releasedMs, from: session
      ) { throw NoRoom(entry: $0) }
    } catch is NoRoom {
      return nil
    }
  }

  /// An entry would change what is told already.
  private struct NoRoom: Error { let entry: HLSPlaylist.Entry }

  /// Writes what a playlist does not tell of yet.
  ///
  /// - Parameter refuse: called with an entry that has no room; when it returns, the entry is left out.
  private func list(
    _ segments: ArraySlice<PublishedSegment>, behind told: HLSPlaylist, sessionStartMs: Int64, releasedMs: Int64,
    from session: SessionDirectory, progress: (Int, Int) throws -> Void = { _, _ in },
    refuse: (HLSPlaylist.Entry) throws -> Void
  ) throws -> Outcome {
    guard let last = segments.last else { return Outcome(heldBack: nil) }
    var playlist = told
    let listed = Self.listable(segments, releasedMs)
    let rest = segments[listed.endIndex...]
    let directory = try Directory(opening: path, followingLinks: false)
    for index in listed.indices {
      func part(isMixed: Bool) -> HLSSegment {
        HLSSegment(
          segments[index], before: index + 1 < segments.endIndex ? segments[index + 1] : nil,
          sessionStartMs: sessionStartMs, maximumMs: playlist.maximumMs, carriesParameterSets: isMixed)
      }
      let plain = HLSPlaylist.Media(part(isMixed: false))
      let part = part(isMixed: playlist.isMixed(before: plain.initialization))
      let media = HLSPlaylist.Media(part)
      guard playlist.hasRoom(for: part.entry(media)) else {
        try refuse(part.entry(media))
        continue
      }
      do {
        let isThere = DurableFile.exists(path + "/" + media.file)
        let layout = try isThere ? part.layout(from: session) : write(part, as: media, from: session)
        playlist.append(part.entry(HLSPlaylist.Media(part, layout: layout)))
      } catch is BadSession {
        // The next entry's gap, or the end's, stands in its place.
      }
      try progress(index - segments.startIndex + 1, segments.count)
    }
    let outcome = Outcome(
      heldBack: rest.first.map { held in
        HeldBack(rest, batchFrom: segments.first { $0.batchDigest == held.batchDigest } ?? held)
      })
    // Players have no use for a playlist without a segment.
    if playlist.endMs == told.endMs { return outcome }
    if last.isFinal && rest.isEmpty { playlist.end(atMs: last.endMs) }
    if playlist.hasGaps, !DurableFile.exists(path + "/" + HLSPlaylist.gapFile) {
      try replace(HLSPlaylist.gapFile, MP4Fragment.empty)
    }
    try directory.sync()
    let text = Array(playlist.text.utf8)
    let views = HLSViews(of: text)
    try replace(HLSViews.keyFramesFile, views.keyFrames)
    try replace(HLSViews.multivariantFile, views.multivariant)
    try replace(HLSPlaylist.file, text)
    try directory.sync()
    return outcome
  }
}
