// The sessions of an output, for viewers. Read only, and safe beside workers. Sessions are cached until their files change.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions
import Synchronization

/// Reads an output that workers write to at the same time. For any thread.
public final class SessionCatalog: Sendable {
  /// The output's path.
  public let output: String
  /// The copies of the sessions of a store; nil for a directory.
  let stored: StoredOutput?
  private let decoders: DecoderForkServer?
  /// The list of all sessions.
  package let listing: SessionListing
  private struct CachedPlayback {
    let stamp: [FileStamp?]
    let playback: SessionPlayback
    let entries: [Int64: SessionPlayback.Entry]
  }

  /// Each costs its segments.
  private let playbacks = Mutex(LRUCache<SessionID, CachedPlayback>(limit: maximumCachedSegments))
  /// The starts of the segments of some sessions.
  private let listings = Mutex(LRUCache<SessionID, (stamp: [FileStamp?], startsMs: [Int64])>(limit: 8))
  /// A session is read once, whatever the number of requests. Few are read at a time, because a long one takes memory.
  private let reading = KeyLocks<SessionID>(width: 4)
  private let looked = Mutex(Looked())

  /// Maximum number of cached segments of all sessions. The session requested last is always cached.
  private static let maximumCachedSegments = 20_000

  /// Opens an output. Sessions are read when they are asked for.
  ///
  /// - Parameters:
  ///   - output: the directory that has a directory for each session.
  ///   - decoders: the sandbox; nil to read trusted segments in this process.
  /// - Throws: `DiskError` if there is no such directory.
  public init(of output: String, decoders: DecoderForkServer? = nil) throws {
    self.decoders = decoders
    stored = nil
    self.output = DurableFile.resolved(output)
    listing = SessionListing(of: self.output)
    _ = try Directory(opening: self.output)
  }

  /// Shows the sessions of an object store. Each is copied when it is first asked for.
  package init(of stored: StoredOutput, decoders: DecoderForkServer? = nil) {
    (self.decoders, self.stored) = (decoders, stored)
    output = stored.path
    let heads = stored.heads
    listing = SessionListing { ListedStore(heads: heads) }
    stored.onEviction { [weak self] session in
      self?.forget([session])
    }
  }

  /// Throws if the output cannot be read. Its cost does not depend on the size of the output.
  package func requireOutput() throws {
    if let stored { return try stored.heads.requireStore() }
    _ = try Directory(opening: output)
  }

  /// Looks for changes of the list. Call it every few seconds, that of a store some times a second.
  package func refreshList() throws {
    try stored?.heads.refresh()
    try listing.refresh()
  }

  /// Returns whether the directory is a spool without sessions.
  ///
  /// - Throws: `DiskError` if the output cannot be read.
  public func isSpool() throws -> Bool {
    try stored == nil && DurableFile.isDirectory(output + "/incoming") && DurableFile.isDirectory(output + "/tmp")
      && sessions().isEmpty
  }

  // MARK: - All sessions

  /// Returns all sessions, the newest first. A session that cannot be read has a ``SessionSummary/error``.
  ///
  /// - Throws: `DiskError` if the output cannot be read.
  public func sessions() throws -> [SessionSummary] { try listing.summaries() }

  /// Returns all sessions as JSON (`session-list/1`), the newest first.
  ///
  /// - Throws: `DiskError` if the output cannot be read.
  public func list() throws -> [UInt8] { try listing.all().json }

  /// Returns the free bytes on the output's file system.
  ///
  /// - Throws: `DiskError` if the disk does not answer.
  public func freeBytes() throws -> Int { try stored?.freeBytes() ?? DurableFile.freeBytes(at: output) }

  // MARK: - One session

  private var tombstones: SessionTombstones { SessionTombstones(output: output) }

  /// Returns the tombstone of a session; nil if it was not deleted.
  ///
  /// - Parameter progress: called now and then for a store; an error that it throws ends the wait.
  package func tombstone(of session: SessionID, progress: () throws -> Void = {}) throws -> Tombstone? {
    if let stored { return try stored.tombstone(of: session, progress: progress) }
    return try tombstones.tombstone(of: session)
  }

  /// Whether the sessions are in a store, so that each look takes time.
  package var isRemote: Bool { stored != nil }

  /// Maximum number of segments of a stored session that is copied for a list.
  private static let maximumForLists = 100

  /// Whether a list should do without the faults of a session: it is stored, and copying it would take many requests.
  package func isCostly(_ session: SessionID) -> Bool {
    guard let stored, stored.knownCopy(of: session) == nil,
      case .published(let totals)? = stored.heads.content(of: session)?.content
    else { return false }
    return totals.segments > Self.maximumForLists
  }

  /// Brings the copy of a stored session up to date, for the calls of the next moments. A directory needs no such call.
  ///
  /// - Parameter progress: called now and then; an error that it throws ends the copying. The next call goes on.
  /// - Throws: ``SessionDeleted``; `BadSession` if an object of the store is damaged; an error of the store or the disk.
  package func prepare(_ session: SessionID, progress: () throws -> Void) throws {
    _ = try stored?.copy(of: session, progress: progress)
  }

  /// Returns a session as it is now; nil if it has no segment, or was deleted.
  ///
  /// - Parameter session: its name.
  /// - Throws: `BadSession` if no manifest of the session can be read; `DiskError` if the output cannot be read.
  public func playback(of session: SessionID) throws -> SessionPlayback? {
    try playback(of: session, nowMs: WallClock.nowMs)
  }

  /// Like ``playback(of:)``.
  ///
  /// - Parameter nowMs: unix milliseconds.
  package func playback(of session: SessionID, nowMs: Int64) throws -> SessionPlayback? {
    guard try tombstone(of: session) == nil, let directory = try directory(of: session),
      let stamp = try stamp(of: directory)
    else { return nil }
    func isCurrent(_ known: CachedPlayback) -> Bool {
      known.stamp == stamp && nowMs < known.playback.listing.changesMs
    }
    if let known = known(session), isCurrent(known) { return known.playback }
    return try reading.withLock(session) {
      let known = known(session)
      if let known, isCurrent(known) { return known.playback }
      return try read(directory, stamp, cached: known?.entries ?? [:], nowMs: nowMs)
    }
  }

  /// Returns the frame on screen at an instant; nil if there is no such session. It reads the manifests of three segments at most.
  ///
  /// - Throws: ``NothingOnScreen``; ``BadSession``, ``DamagedOutput`` if a manifest is not as it was written.
  package func frame(of session: SessionID, at instant: SessionInstant) throws -> SessionFrame? {
    guard let directory = try directory(of: session), let startsMs = try startsMs(of: directory), !startsMs.isEmpty
    else { return nil }
    return try SessionFrame(of: directory, at: instant, startsMs: startsMs)
  }

  /// Returns the last frame of a session; nil if there is no such session. It reads one manifest.
  ///
  /// - Throws: ``BadSession``, ``DamagedOutput`` if the manifest is not as it was written.
  package func lastFrame(of session: SessionID) throws -> SessionFrame? {
    guard let directory = try glance(atEndOf: session, isLast: true), try stamp(of: directory) != nil else {
      return nil
    }
    return try SessionFrame(lastOf: directory)
  }

  /// Returns the first segment of a session; nil if there is no such session. It reads one manifest.
  ///
  /// - Throws: ``BadSession``, ``DamagedOutput`` if the manifest is not as it was written.
  package func firstSegment(of session: SessionID) throws -> PublishedSegment? {
    guard let directory = try glance(atEndOf: session, isLast: false), try stamp(of: directory) != nil,
      let firstMs = try directory.firstStart()
    else { return nil }
    return try directory.soundManifest(firstMs).segment
  }

  /// Returns the first picture of the first segment as a JPEG that fits 320 × 320 pixels. It reads one video.
  ///
  /// - Throws: ``BadSession`` if the video is missing, damaged, or not the one that the manifest describes.
  package func thumbnail(of segment: PublishedSegment, of session: SessionID) throws -> [UInt8] {
    guard let directory = try glance(atEndOf: session, isLast: false) else {
      throw BadSession(session.description, "it was removed a moment ago", advice: "reload the page")
    }
    return try SessionThumbnail.jpeg(of: segment, in: directory)
  }

  /// Returns a session; nil if a store has no such session. A directory may be missing.
  private func directory(of session: SessionID) throws -> SessionDirectory? {
    guard let stored else { return SessionDirectory(output: output, session: session, decoders: decoders) }
    return try stored.copy(of: session).map { directory(of: session, in: $0) }
  }

  private func directory(of session: SessionID, in copy: SessionCopy) -> SessionDirectory {
    SessionDirectory(output: copy.output, session: session, decoders: decoders, videos: copy)
  }

  /// Like ``directory(of:)``, but the copy of a stored session may have its first or last segment only.
  private func glance(atEndOf session: SessionID, isLast: Bool) throws -> SessionDirectory? {
    guard let stored else { return try directory(of: session) }
    return try stored.glance(atEndOf: session, isLast: isLast).map { directory(of: session, in: $0) }
  }

  /// Returns the starts of a session's segments, in order; nil if there is no such session.
  private func startsMs(of directory: SessionDirectory) throws -> [Int64]? {
    guard let stamp = try stamp(of: directory) else { return nil }
    let session = directory.session
    if let cached = listings.withLock({ $0.value(of: session) }), cached.stamp == stamp { return cached.startsMs }
    let startsMs = try directory.publishedStarts()
    listings.withLock { $0.insert((stamp, startsMs), for: session) }
    return startsMs
  }

  /// Opens `session.json`, `session.ffconcat`, a video, a manifest, the words or the labels of a segment, or a fragment or an initialization in
  /// `hls/`.
  ///
  /// - Returns: nil for any other name, or if there is no plain file.
  package func file(_ name: String, of session: SessionID) throws -> OpenFile? {
    // Those of a store are not checked, so fragments are made of its videos first: see ``keptFile(named:of:)``.
    if HLSPackage.hasFile(named: name) {
      return stored == nil ? try file(name, in: HLSPackage.directory, of: session) : nil
    }
    if let stored, let start = SegmentName.start(ofVideo: name) {
      return try stored.copy(of: session)?.video(at: start)
    }
    let isOurs =
      name == IndexText.jsonFile || name == IndexText.scriptFile || SegmentName.start(ofVideo: name) != nil
      || SegmentName.start(ofManifest: name) != nil || SegmentName.start(ofText: name) != nil
      || SegmentName.start(ofLabels: name) != nil
    return isOurs ? try file(name, in: nil, of: session) : nil
  }

  /// - Parameter subdirectory: of the session; nil for the session's own.
  func file(_ name: String, in subdirectory: String?, of session: SessionID) throws -> OpenFile? {
    guard let own = try directory(of: session)?.path else { return nil }
    let path = subdirectory.map { own + "/" + $0 } ?? own
    // A link in the place of either is not followed.
    guard try DurableFile.isDirectory(own), try DurableFile.isDirectory(path) else { return nil }
    return try OpenFile(name, in: Directory(opening: path, followingLinks: false))
  }

  private func known(_ session: SessionID) -> CachedPlayback? { playbacks.withLock { $0.value(of: session) } }

  private func read(
    _ directory: SessionDirectory, _ stamp: [FileStamp?], cached: [Int64: SessionPlayback.Entry], nowMs: Int64
  ) throws -> SessionPlayback? {
    let session = directory.session
    let opened = try Directory(opening: directory.path, followingLinks: false)
    let names = try SessionNames(in: opened)
    let retention = try directory.retention()
    let starts = names.manifests.filter { retention?.removes($0) != true }
    let (entries, problems) = EntryReading(
      of: starts, labels: names.labels, in: directory, opened, cached: cached
    ).read()
    // First segments were removed meanwhile.
    if try !problems.isEmpty && directory.retention() != retention {
      return try read(directory, stamp, cached: cached, nowMs: nowMs)
    }
    guard !entries.isEmpty else {
      if let first = problems.first { throw BadSession(session.description, "\(first.what)") }
      return nil
    }
    let playback = SessionPlayback(
      of: directory, entries, videos: directory.videos?.starts ?? names.videos, hasEnded: names.hasEnd,
      problems: problems, retention,
      nowMs: nowMs)
    let byStart = Dictionary(uniqueKeysWithValues: entries.map { ($0.segment.startMs, $0) })
    let latest = CachedPlayback(stamp: stamp, playback: playback, entries: byStart)
    // The session requested last is kept, however long it is.
    playbacks.withLock { $0.insert(latest, for: session, cost: min(entries.count, Self.maximumCachedSegments)) }
    return playback
  }

  /// Returns a stamp that changes with the session; nil if there is no session.
  private func stamp(of session: SessionDirectory) throws -> [FileStamp?]? {
    let directory = try Directory(opening: DurableFile.parentDirectory(of: session.path))
    let name = session.session.description
    guard try DurableFile.isDirectory(session.path), let own = directory.stamp(of: name) else { return nil }
    return [own, directory.stamp(of: name + "/" + IndexText.jsonFile)]
  }

  // MARK: - Removed sessions

  /// Sessions that are not in the output any more.
  package struct Removed {
    /// Those with a tombstone.
    package var deleted: Set<SessionID> = []
    /// Those without a directory, for example after `prune`.
    package var missing: Set<SessionID> = []

    package var all: Set<SessionID> { deleted.union(missing) }
  }

  /// The sessions that were there at the last look for removed ones.
  private struct Looked {
    /// Change when a session or a tombstone comes or goes.
    var stamps: [FileStamp?] = []
    /// Whether an earlier look had the same stamps. Two changes within a tick of the file system's clock have one stamp.
    var isSettled = false
    var sessions: Set<SessionID> = []
  }

  /// Forgets what is cached of sessions that were deleted or removed. Call it every few seconds: it looks for a session when something
  /// of it is cached, and again when the output's directory or that of the tombstones has changed. Otherwise its cost does not depend
  /// on the number of sessions. The list finds them by itself.
  ///
  /// - Parameter others: further sessions to look for, of which the caller caches something.
  /// - Returns: those that were deleted or removed.
  package func forgetRemoved(and others: Set<SessionID>) throws -> Removed {
    let sessions =
      others
      .union(playbacks.withLock { $0.keys })
      .union(listings.withLock { $0.keys })
    if let stored {
      let (deleted, missing) = stored.removed(among: sessions)
      forget(deleted.union(missing))
      return Removed(deleted: deleted, missing: missing)
    }
    guard !sessions.isEmpty else { return Removed() }
    let directory = try Directory(opening: output)
    let stamps = [directory.stamp(of: "."), try tombstones.stamp()]
    let removed = try looked.withLock { looked in
      let isUnchanged = looked.stamps == stamps
      let new = isUnchanged && looked.isSettled ? sessions.subtracting(looked.sessions) : sessions
      let missing = new.filter { directory.stamp(of: $0.description) == nil }
      let removed = Removed(deleted: try tombstones.sessions(among: new), missing: missing)
      looked = Looked(stamps: stamps, isSettled: isUnchanged, sessions: sessions.subtracting(removed.all))
      return removed
    }
    forget(removed.all)
    return removed
  }

  private func forget(_ sessions: Set<SessionID>) {
    guard !sessions.isEmpty else { return }
    playbacks.withLock { $0.removeAll { sessions.contains($0) } }
    listings.withLock { $0.removeAll { sessions.contains($0) } }
  }
}
