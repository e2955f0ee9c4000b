// A private copy of a stored session that follows the store: manifests, views and words in a directory as a worker publishes them, and
// videos beside it, which are fetched when a reader wants them. It is removed with its last reader.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Synchronization

package final class SessionCopy: VideoFiles {
  /// The directory that has the session's.
  package let output: String

  private struct State {
    var (tag, generation): (ObjectTag?, String?) = (nil, nil)
    var index: StoredIndex?
    var entries: [Int64: SessionEntry] = [:]
    /// The starts of the videos that the store has.
    var videos: Set<Int64> = []
    var pages: [String: [SessionEntry]] = [:]
    /// The tags of the words and labels that were copied, by the names of their files.
    var words: [String: ObjectTag] = [:]
    /// The starts of the manifests that were fetched and not published here, because the copy was ended.
    var fetched: Set<Int64> = []
    var damage = DamagedManifests()
    /// Bytes of the files beside the videos.
    var bytes = 0
    /// Of the session's directory, as this object has left it; nil before the first publication.
    var stamp: FileStamp?
    var kept = StoredPlaylist()
  }

  private let session: ObjectSession
  private let store: StoredSessions
  private let space: CopySpace
  private let clock: @Sendable () -> Int
  private let state = Mutex(State())
  /// A file is fetched once, whatever the number of requests.
  private let fetching = KeyLocks<String>()

  private var directory: String { output + "/" + session.id.description }
  /// Files that are not whole yet.
  private var new: String { output + "/new" }
  private var videos: String { output + "/videos" }

  /// - Parameters:
  ///   - output: a new directory of this copy alone.
  ///   - clock: monotonic milliseconds.
  init(
    of session: ObjectSession, in store: StoredSessions, _ space: CopySpace, output: String, staging: Staging,
    clock: @escaping @Sendable () -> Int
  ) throws {
    (self.session, self.store, self.space, self.output, self.clock) = (session, store, space, output, clock)
    for path in [new, videos, directory + "/" + HLSPackage.directory] { try staging.makeDirectory(path) }
  }

  deinit {
    try? DurableFile.removeTree(output)
    space.forget(below: output)
    space.give(state.withLock { $0.bytes })
  }

  /// The tag of the head that the copy is of.
  var tag: ObjectTag? { state.withLock { $0.tag } }

  /// Whether the copy is of this head. One without a tag is compared by its segments. With a damaged manifest it is for some seconds only.
  func isOf(_ head: ObjectSession.Head) -> Bool {
    state.withLock { state in
      !state.damage.isDue(atMs: clock()) && state.tag == head.tag
        && (head.tag != nil || state.index?.published.index == head.published?.index)
    }
  }

  /// Whether the copy is whole, and nothing else has changed it: a cleaner of temporary files may remove its files one by one.
  var isIntact: Bool {
    guard let stamp = state.withLock({ $0.stamp }) else { return false }
    return stamp == (try? Directory(opening: output))?.stamp(of: session.id.description)
  }

  /// Whether it can be brought up to date: it is intact, or it was never whole.
  var isUsable: Bool { state.withLock { $0.stamp == nil } ? DurableFile.exists(new) : isIntact }

  // MARK: - Following the store

  /// Copies what is new since the last call. One thread at a time.
  ///
  /// - Parameters:
  ///   - head: of the session, with something published.
  ///   - progress: called now and then; an error that it throws ends the copy, and the next call goes on.
  /// - Returns: false if the session is another one now: it was deleted and published again.
  /// - Throws: ``BadSession`` if many manifests are missing, or not those that the index lists; an error of the store or the disk.
  func update(to head: ObjectSession.Head, progress: () throws -> Void) throws -> Bool {
    let old = state.withLock { $0 }
    guard let index = try StoredIndex(of: session, head) else { return false }
    if old.stamp != nil && head.generation != old.generation { return false }
    let pages = try index.pages(knowing: old.pages) { _, _ in try progress() }
    let entries = try index.entries(in: pages)
    let byStart = Dictionary(entries.map { ($0.startMs, $0) }) { first, _ in first }
    // A session only grows, but for first segments that are removed. Readers leave out their files.
    let retention = index.published.retention
    // Compaction moves them into other packs.
    guard
      old.entries.allSatisfy({
        byStart[$0.key]?.unpacked == $0.value.unpacked || retention?.removes($0.key) == true
      })
    else {
      return false
    }
    let new = entries.filter { old.entries[$0.startMs] == nil || old.damage.fault(of: $0.startMs) != nil }
    let hasLabels = index.published.labels != old.index?.published.labels ?? 0
    let listed = try list(new, of: entries, isWhole: hasLabels, progress: progress)
    try fetch(new.filter { !old.fetched.contains($0.startMs) }, listed, progress)
    let words = listed.words.filter { byStart[$0.value.startMs] != nil && old.words[$0.key] != $0.value.tag }
    try fetch(words.keys, progress)
    // Those that are still damaged have their empty files.
    let mended = state.withLock { $0.damage.mended }
    let changed = new.filter { old.entries[$0.startMs] == nil || mended.contains($0.startMs) }
    let isSame = changed.isEmpty && words.isEmpty && head.tag != nil && head.tag == old.tag
    do {
      if !isSame { try publish(changed, words: words.keys.sorted(), index.views(of: entries) + index.records) }
    } catch {
      // Fetch again what something else has removed.
      state.withLock { ($0.fetched, $0.damage.mended) = ([], []) }
      throw error
    }
    let stamp = try Directory(opening: output).stamp(of: session.id.description)
    state.withLock { state in
      (state.tag, state.generation, state.stamp) = (head.tag, head.generation, stamp)
      (state.index, state.pages, state.entries) = (index, pages, byStart)
      state.videos.formUnion(listed.videos)
      for (name, word) in words { state.words[name] = word.tag }
      (state.fetched, state.kept.isSettled) = ([], false)
      state.damage.settle(nowMs: clock()) { byStart[$0] != nil }
    }
    return true
  }

  /// Copies one segment only, for a picture of it. Call it once, instead of ``update(to:progress:)``.
  ///
  /// - Throws: ``BadSession`` if its manifest is missing, or not the one that the index lists; an error of the store or the disk.
  func copy(only entry: SessionEntry) throws {
    try fetch([entry], Listed()) {}
    try requireManifest(entry.startMs)
    try move(SegmentName.manifest(entry.startMs))
    let stamp = try Directory(opening: output).stamp(of: session.id.description)
    state.withLock { state in
      (state.stamp, state.entries, state.videos) = (stamp, [entry.startMs: entry], [entry.startMs])
    }
  }

  /// The objects of segments, as the store lists them.
  private struct Listed {
    var videos: Set<Int64> = []
    /// When manifests were written, in unix milliseconds.
    var writtenMs: [Int64: Int64] = [:]
    /// Words and labels, by the names of their files.
    var words: [String: (startMs: Int64, tag: ObjectTag)] = [:]
  }

  /// Maximum size of a file of words or labels.
  private static let wordBytes = max(SegmentText.maximumBytes, AddedLabels.maximumBytes)
  /// Segments before the new ones whose words may have come since.
  private static let listedAgain = 64

  /// - Parameter isWhole: whether labels of any segment may have come since.
  private func list(
    _ new: [SessionEntry], of entries: [SessionEntry], isWhole: Bool, progress: () throws -> Void
  ) throws -> Listed {
    let recent = entries[isWhole ? 0 : max(0, entries.count - Self.listedAgain)]
    let first = min(new.first?.startMs ?? recent.startMs, recent.startMs)
    var listed = Listed()
    if let pack = new.first(where: { $0.pack != nil })?.pack {
      let packed = Dictionary(grouping: new, by: { $0.pack?.file })
      let last = pack.startMs == entries[0].startMs ? nil : session.key(SegmentName.pack(pack.startMs - 1))
      try visit("pack-", after: last, of: entries, progress) { object, name in
        for entry in packed[name] ?? [] {
          listed.videos.insert(entry.startMs)
          listed.writtenMs[entry.startMs] =
            entry.pack.flatMap { $0.publishedMs > 0 ? $0.publishedMs : nil } ?? object.modifiedMs
        }
      }
    }
    let last = first == entries[0].startMs ? nil : session.key(String(SegmentName.video(first).dropLast(4)))
    try visit("segment-", after: last, of: entries, progress) { object, name in
      if let start = SegmentName.start(ofVideo: name) {
        listed.videos.insert(start)
      } else if let start = SegmentName.start(ofManifest: name) {
        listed.writtenMs[start] = object.modifiedMs
      } else if let start = SegmentName.start(ofText: name) ?? SegmentName.start(ofLabels: name),
        object.size <= Self.wordBytes
      {
        listed.words[name] = (start, object.tag)
      }
    }
    return listed
  }

  /// Lists objects of the session.
  ///
  /// - Parameters:
  ///   - prefix: of their names.
  ///   - last: the key of the object before; nil to list all.
  ///   - body: called with each object and its name.
  private func visit(
    _ prefix: String, after last: String?, of entries: [SessionEntry], _ progress: () throws -> Void,
    _ body: (ObjectInfo, String) -> Void
  ) throws {
    var (walk, count) = (store.walk(session.key(prefix), after: last), 0)
    while let page = try walk.next() {
      try progress()
      count += page.count
      guard count <= 8 * entries.count + 10_000 else {
        throw Failure(
          .environment, "list", session.place, "more objects than a session has",
          advice: "remove those that are not ours")
      }
      for object in page { body(object, String(object.key.dropFirst(session.key("").count))) }
    }
  }

  private func fetch(_ entries: [SessionEntry], _ listed: Listed, _ progress: () throws -> Void) throws {
    let objects = StoredObjects(session: session, path: new, damage: .refused)
    _ = try ParallelFetch.map(
      PackPlace.groups(of: entries, \.manifest),
      { [self] group in
        for entry in group { remove(new + "/" + SegmentName.manifest(entry.startMs)) }
        let faults = try objects.markedManifests(of: group)
        try state.withLock { try $0.damage.note(faults, of: group) }
        for entry in group { try date(entry, listed) }
      }, progress: { _ in try progress() })
  }

  package func requireManifest(_ startMs: Int64) throws {
    if let bad = state.withLock({ $0.damage.fault(of: startMs) }) { throw bad }
  }

  /// Counts a new manifest, and gives it the time of its publication: live playlists go by that.
  private func date(_ entry: SessionEntry, _ listed: Listed) throws {
    let path = new + "/" + SegmentName.manifest(entry.startMs)
    try count(path)
    let writtenMs = max(0, listed.writtenMs[entry.startMs] ?? min(entry.endWithGapMs, WallClock.nowMs))
    let time = timespec(tv_sec: Int(writtenMs / 1_000), tv_nsec: Int(writtenMs % 1_000) * 1_000_000)
    try check("utimensat", path) { utimensat(AT_FDCWD, path, [time, time], 0) }
    _ = state.withLock { $0.fetched.insert(entry.startMs) }
  }

  /// Fetches words and labels. A reader checks them.
  private func fetch(_ words: some Sequence<String>, _ progress: () throws -> Void) throws {
    _ = try ParallelFetch.map(
      Array(words),
      { [self] name in
        do {
          if let bytes = try session.objects.get(session.key(name), limit: Self.wordBytes)?.bytes {
            try write(name, bytes)
          }
        } catch is ObjectTooLarge {
          // Segments may lack words.
        }
      }, progress: { _ in try progress() })
  }

  /// Gives files their names, in the order in which a worker does.
  private func publish(
    _ new: [SessionEntry], words: [String], _ others: [(name: String, bytes: [UInt8])]
  ) throws {
    for entry in new { try move(SegmentName.manifest(entry.startMs)) }
    for name in words where DurableFile.exists(self.new + "/" + name) { try move(name) }
    for (name, bytes) in others {
      try write(name, bytes)
      try move(name)
    }
  }

  /// Writes a file that has no place in the session yet.
  private func write(_ name: String, _ bytes: [UInt8]) throws {
    let path = new + "/" + name
    remove(path)
    try DurableFile.create(path, bytes, isDurable: false)
    try count(path)
  }

  /// Removes a counted file, if it is there.
  private func remove(_ path: String) {
    guard let bytes = try? DurableFile.size(of: path), unlink(path) == 0 else { return }
    space.give(bytes)
    state.withLock { $0.bytes -= bytes }
  }

  /// Counts a file that was written. Without room for it, it is removed.
  private func count(_ path: String) throws {
    let bytes = try DurableFile.size(of: path)
    do {
      try space.take(bytes)
    } catch {
      unlink(path)
      throw error
    }
    state.withLock { $0.bytes += bytes }
  }

  /// - Parameter folder: of the session; nil for the session's own.
  private func move(_ name: String, to folder: String? = nil) throws {
    let target = (folder.map { directory + "/" + $0 } ?? directory) + "/" + name
    let replaced = (try? DurableFile.size(of: target)) ?? 0
    try check("rename", target) { rename(new + "/" + name, target) }
    space.give(replaced)
    state.withLock { $0.bytes -= replaced }
  }

  // MARK: - Files on demand

  package var starts: Set<Int64> { state.withLock { $0.videos } }

  package func file(of segment: PublishedSegment) throws -> OpenFile? {
    guard let entry = state.withLock({ $0.entries[segment.startMs] }), entry.sha256 == segment.sha256 else {
      return nil
    }
    return try video(entry)
  }

  /// Opens the video of the segment that starts then.
  ///
  /// - Returns: nil if there is no such segment.
  /// - Throws: ``BadSession`` if the video is missing, or not the one that the index lists; an error of the store or the disk.
  package func video(at startMs: Int64) throws -> OpenFile? {
    try state.withLock { $0.entries[startMs] }.flatMap(video)
  }

  private func video(_ entry: SessionEntry) throws -> OpenFile? {
    let objects = StoredObjects(session: session, path: new, damage: .refused)
    return try file(entry.file, bytes: min(entry.bytes, SegmentManifest.maximumVideoBytes)) {
      try objects.fetchVideo(of: entry)
    }
  }

  /// Opens a file that is kept beside the session.
  ///
  /// - Parameters:
  ///   - bytes: its size.
  ///   - fetch: makes it in the directory of new files.
  private func file(_ name: String, bytes: Int, fetch: () throws -> Void) throws -> OpenFile? {
    try fetching.withLock(name) {
      let path = videos + "/" + name
      if let file = try OpenFile(name, in: Directory(opening: videos)) {
        space.use(path)
        return file
      }
      try space.take(bytes)
      do {
        defer { unlink(new + "/" + name) }
        try fetch()
        guard let file = try OpenFile(name, in: Directory(opening: new)) else {
          space.give(bytes)
          return nil
        }
        try check("rename", path) { rename(new + "/" + name, path) }
        space.use(path, taken: bytes)
        return file
      } catch {
        space.give(bytes)
        throw error
      }
    }
  }
}

// MARK: - Playlists

extension SessionCopy {
  /// The playlists that a worker keeps in the store, as they were last seen.
  fileprivate struct StoredPlaylist {
    var tag: ObjectTag?
    /// When it was last looked for, in monotonic milliseconds; nil before.
    var lookedMs: Int?
    var hasEnded = false
    /// Whether it changes only with the session.
    var isSettled = false
    var files: Set<String> = []
  }

  /// Milliseconds for which the look for a playlist is good; those of a session that has ended and has none.
  private static let (playlistMs, noPlaylistMs) = (1_000, 30_000)

  /// Copies the playlists that a worker keeps, if they have changed.
  package func refreshPlaylists() throws {
    try fetching.withLock(HLSPlaylist.file) {
      let (kept, isComplete) = state.withLock { ($0.kept, $0.index?.published.index.isComplete ?? false) }
      let nowMs = MonotonicClock.milliseconds()
      if kept.isSettled { return }
      let waitMs = isComplete && kept.tag == nil ? Self.noPlaylistMs : Self.playlistMs
      if let lookedMs = kept.lookedMs, nowMs - lookedMs < waitMs { return }
      var now = kept
      now.lookedMs = nowMs
      let tag = try session.objects.head(session.playlistKey)?.tag
      if tag != kept.tag { now = try fetchPlaylists(now) }
      now.isSettled = now.hasEnded
      let latest = now
      state.withLock { $0.kept = latest }
    }
  }

  private func fetchPlaylists(_ kept: StoredPlaylist) throws -> StoredPlaylist {
    var kept = kept
    var there = try session.objects.get(session.playlistKey, limit: IndexText.maximumBytes)
    kept.tag = there?.tag
    kept.hasEnded = there.map { HLSPlaylist.hasEnded($0.bytes) } ?? false
    // A server has no packs: it makes playlists of their segments.
    if let text = there?.bytes, HLSPlaylist.hasPacks(text) { there = nil }
    kept.files = there.map { HLSPlaylist.files(in: $0.bytes) } ?? []
    let hasCaptions = there.map { HLSCaptions.areIn($0.bytes) } ?? false
    let names = [HLSViews.keyFramesFile, HLSViews.multivariantFile] + (hasCaptions ? [HLSCaptions.file] : [])
    for name in names where there != nil {
      let key = session.key(HLSPackage.directory + "/" + name)
      try publish(name, session.objects.get(key, limit: IndexText.maximumBytes)?.bytes)
    }
    try publish(HLSPlaylist.file, there?.bytes)
    return kept
  }

  private func publish(_ playlist: String, _ bytes: [UInt8]?) throws {
    if let bytes {
      try write(playlist, bytes)
      try move(playlist, to: HLSPackage.directory)
    } else {
      remove(directory + "/" + HLSPackage.directory + "/" + playlist)
    }
  }

  /// Opens a fragment, an initialization or captions that the worker's playlist lists.
  ///
  /// - Returns: nil for any other name, or if there is none.
  /// - Throws: ``BadSession`` for an object that is none; an error of the store or the disk.
  package func keptFile(named name: String) throws -> OpenFile? {
    guard HLSPackage.hasFile(named: name), state.withLock({ $0.kept.files.contains(name) }) else { return nil }
    let key = session.key(HLSPackage.directory + "/" + name)
    guard let size = try session.objects.head(key)?.size else { return nil }
    guard size <= SegmentManifest.maximumVideoBytes else { throw BadSession(session.name + key, "\(size) bytes") }
    return try file(name, bytes: size) {
      guard try session.objects.download(key, to: new + "/" + name, limit: size) != nil else { return }
      let file = try FileBytes(opening: new + "/" + name)
      let isVideo = Self.boxes.contains { file.bytes(at: 4, 4).elementsEqual($0.utf8) }
      guard isVideo || file.bytes(at: 0, 6).elementsEqual("WEBVTT".utf8) else {
        throw BadSession(session.name + key, "no fragment of a video, and no captions", advice: StoredIndex.advice)
      }
    }
  }

  /// The first boxes of initializations and fragments.
  private static let boxes = ["ftyp", "styp", "moof"]
}
