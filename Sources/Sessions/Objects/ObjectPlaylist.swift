// The HLS stream of a session in an object store, as `hls/` in a directory. The worker makes the missing files in a private
// directory and writes them to the store, the playlist last, and only if no other worker has written it meanwhile.

import Encoding
import FileSystem
import Glibc

struct ObjectPlaylist {
  let session: ObjectSession
  let staging: Staging
  /// Unix milliseconds.
  let nowMs: Int64
  /// Whether it is made as a window, because first segments will be removed.
  var isWindow = false

  private var key: String { session.playlistKey }
  private var superseded: SupersededObjects { SupersededObjects(of: session) }

  /// Adds the published segments that the playlist lacks.
  ///
  /// - Parameters:
  ///   - known: segments that need not be fetched, by their starts.
  ///   - releasedMs: segments that start by then are not held back.
  /// - Returns: the segments that it holds back; nil if it lists all.
  func update(with known: [Int64: KnownSegment], releasedMs: Int64) throws -> HeldBack? {
    for attempt in 0..<20 {
      SegmentWriteConflict.pause(attempt)
      // Read it before the index: a worker that writes it later has seen at least that index.
      let there = try session.objects.get(key, limit: 32 << 20)
      guard let published = try session.published() else { return nil }
      let index = published.index
      let scratch = Staging.Scratch(in: staging)
      defer { scratch.remove() }
      let copies = SegmentCopies(of: session, in: scratch, known)
      let directory = copies.directory
      var package = HLSPackage(
        path: directory.path + "/" + HLSPackage.directory, temporary: scratch.path + "/part")
      try scratch.make()
      try DurableFile.makeDirectories(package.path)
      let listed = there.map { HLSPlaylist.starts(in: $0.bytes) } ?? []
      let isOpen = index.isComplete && !(there.map { HLSPlaylist.hasEnded($0.bytes) } ?? false)
      if listed.last == index.last.startMs && listed.count == index.count && !isOpen { return nil }
      // Listed segments stay listed.
      let releasedMs = index.isComplete ? .max : max(releasedMs, listed.last ?? .min)
      var outcome: ViewOutcome?
      var isRebuilt = false
      if let there, let end = listed.last {
        let near = try session.entries(near: end..<Int64.max, in: published)
        let rest = near.filter { $0.startMs > end }
        // A session only grows, so equal counts mean equal segments.
        if listed.count + rest.count == index.count, let lastEntry = near.first(where: { $0.startMs == end }) {
          try DurableFile.create(package.path + "/" + HLSPlaylist.file, there.bytes, isDurable: false)
          let new = try fetch(rest, into: copies, releasedMs: releasedMs)
          let last = try session.segment(lastEntry)
          if let first = new.segments.first, last.isHeld(until: first) {
            try copies.fetchVideo(of: lastEntry)
          }
          package.marks = { new.marks[$0.startMs] ?? SegmentMarks() }
          outcome = try package.extend(
            by: [last] + new.segments, sessionStartMs: published.retention?.originMs ?? index.startMs,
            releasedMs: releasedMs,
            hasEnded: index.isComplete, from: directory)
        }
      }
      if outcome == nil {
        // A segment belongs before listed ones.
        isRebuilt = there != nil
        try DurableFile.removeTree(package.path)
        if let there {
          try DurableFile.makeDirectories(package.path)
          try DurableFile.create(package.path + "/" + HLSPlaylist.file, there.bytes, isDurable: false)
        }
        let all = try fetch(session.whole(published).entries, into: copies, releasedMs: releasedMs)
        package.marks = { all.marks[$0.startMs] ?? SegmentMarks() }
        outcome = try package.update(
          all.segments, releasedMs: releasedMs, hasEnded: index.isComplete, retention: published.retention,
          isWindow: isWindow, from: directory)
      }
      let durationMs = index.endMs - index.startMs
      if let outcome, try store(package, over: there, isRebuilt: isRebuilt, durationMs) { return outcome.heldBack }
    }
    throw session.contested(key)
  }

  /// Takes the first segments out. Their fragments stay for a while, like all files that the playlist no longer names.
  func slide(to retention: SessionRetention) throws {
    for attempt in 0..<20 {
      SegmentWriteConflict.pause(attempt)
      guard let there = try session.objects.get(key, limit: 32 << 20),
        let slid = HLSPlaylist.sliding(there.bytes, to: retention.startMs)
      else { return }
      guard slid.hasSegments else {
        // Players cannot use a playlist without a segment.
        _ = try update(with: [:], releasedMs: .max)
        return
      }
      let graceMs = SupersededFiles.graceMs(after: there.bytes, durationMs: retention.startMs - retention.originMs)
      try superseded.replace(slid.files, with: [], among: [], dueMs: nowMs + graceMs)
      let views = HLSViews(of: slid.text)
      for (name, bytes) in [
        (HLSViews.keyFramesFile, views.keyFrames), (HLSViews.multivariantFile, views.multivariant),
      ] {
        _ = try session.objects.put(
          session.key(HLSPackage.directory + "/" + name), .bytes(bytes), .playlist, when: .always)
      }
      if try session.objects.put(key, .bytes(slid.text), .playlist, when: .matching(there.tag)) != nil { return }
    }
    throw session.contested(key)
  }

  /// Fetches segments, and the videos of those that the playlist can list.
  ///
  /// - Returns: the segments, and their chapters by their starts.
  private func fetch(
    _ entries: [SessionEntry], into copies: SegmentCopies, releasedMs: Int64
  ) throws -> (segments: [PublishedSegment], marks: [Int64: SegmentMarks]) {
    let fetched = try copies.segments(entries)
    let listed = HLSPackage.listable(fetched.segments[...], releasedMs)
    for entry in entries.prefix(listed.count) { try copies.fetchVideo(of: entry) }
    return fetched
  }

  /// - Parameters:
  ///   - isRebuilt: whether files of the playlist that is there may be superseded.
  ///   - durationMs: of the session.
  /// - Returns: whether no other worker has written the playlist meanwhile.
  private func store(
    _ package: HLSPackage, over there: StoredObject?, isRebuilt: Bool, _ durationMs: Int64
  ) throws -> Bool {
    let playlist = package.path + "/" + HLSPlaylist.file
    guard let text = try DurableFile.contents(of: playlist, limit: IndexText.maximumBytes), text != there?.bytes
    else { return true }
    let views = [HLSViews.keyFramesFile, HLSViews.multivariantFile]
    let made = Set(try Directory(opening: package.path).entries().map(\.name)).subtracting(views + [HLSPlaylist.file])
    if isRebuilt, let old = there?.bytes {
      let graceMs = SupersededFiles.graceMs(after: old, durationMs: durationMs)
      try superseded.replace(
        HLSPlaylist.files(in: old), with: HLSPlaylist.files(in: text), among: superseded.files(), dueMs: nowMs + graceMs
      )
    } else {
      try superseded.keep(made)
    }
    // The names of these change with their contents, so an existing one is the same.
    for name in made.sorted() {
      _ = try session.objects.put(
        session.key(HLSPackage.directory + "/" + name), .file(package.path + "/" + name), .video, when: .absent)
    }
    // The worker that writes the playlist also replaces the playlists made from it.
    for name in views {
      let file = package.path + "/" + name
      guard DurableFile.exists(file) else { continue }
      _ = try session.objects.put(
        session.key(HLSPackage.directory + "/" + name), .file(file), .playlist, when: .always)
    }
    return try session.objects.put(key, .bytes(text), .playlist, when: .unchanged(since: there?.tag)) != nil
  }
}

extension Staging {
  /// A temporary directory.
  package struct Scratch {
    package let path: String
    private let staging: Staging

    package init(in staging: Staging) {
      self.staging = staging
      path = staging.temporaryFile()
    }

    /// Makes it.
    package func make() throws { try staging.makeDirectory(path) }

    package func remove() { try? DurableFile.removeTree(path) }
  }
}
