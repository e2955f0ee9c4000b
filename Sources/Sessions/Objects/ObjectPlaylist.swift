// The HLS stream of a session in an object store, as `hls/` in a directory. The worker makes the missing files in a private
// directory and writes them to the store, the playlist last, and only if no other worker has written it meanwhile.

import Encoding
import FileSystem
import Glibc

/// A segment that need not be fetched.
struct KnownSegment {
  let segment: PublishedSegment
  /// The file of its video, if it has one.
  let video: String?
  /// nil to read its manifest.
  let marks: SegmentMarks?

  /// - Parameter manifest: of this worker. The one in the store, and the video there, may be those of another worker.
  init(_ placed: PlacedSegment, staged manifest: SegmentManifest) {
    segment = placed.segment
    video = placed.segment.sha256 == manifest.segment.sha256 ? manifest.staged.video.path : nil
    marks = placed.isAdopted ? nil : SegmentMarks(manifest.json, of: placed.segment)
  }
}

/// A segment in an object store, with its manifest.
struct PlacedSegment {
  let segment: PublishedSegment
  /// Whether the manifest there is another one than that of this worker.
  let isAdopted: Bool
}

struct ObjectPlaylist {
  let session: ObjectSession
  let staging: Staging
  /// Unix milliseconds.
  let nowMs: Int64

  private var key: String { session.playlistKey }
  private var superseded: SupersededObjects { SupersededObjects(of: session) }

  /// Adds the published segments that the playlist lacks.
  ///
  /// - Parameters:
  ///   - known: segments that need not be fetched.
  ///   - releasedMs: segments that start by then are not held back.
  /// - Returns: the segments that it holds back; nil if it lists all.
  func update(
    with known: some Sequence<KnownSegment>, releasedMs: Int64
  ) throws -> HeldBack? {
    let known = Dictionary(uniqueKeysWithValues: known.map { ($0.segment.startMs, $0) })
    for attempt in 0..<20 {
      SegmentWriteConflict.pause(attempt)
      // Read it before the index: a worker that writes it later has seen at least that index.
      let there = try session.objects.get(key, limit: 32 << 20)
      guard let published = try session.published() else { return nil }
      let index = published.index
      let scratch = Staging.Scratch(in: staging)
      defer { scratch.remove() }
      let directory = SessionDirectory(output: scratch.path, session: session.id)
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
        let rest = try session.entries(near: end..<Int64.max, in: published).map(\.startMs).filter { $0 > end }
        // A session only grows, so equal counts mean equal segments.
        if listed.count + rest.count == index.count {
          try DurableFile.create(package.path + "/" + HLSPlaylist.file, there.bytes, isDurable: false)
          let new = try fetch(rest, known, into: directory, releasedMs: releasedMs)
          let last = try session.segment(end)
          if let first = new.segments.first, last.isHeld(until: first) {
            try fetchVideo(of: last, known, into: directory)
          }
          package.marks = { new.marks[$0.startMs] ?? SegmentMarks() }
          outcome = try package.extend(
            by: [last] + new.segments, sessionStartMs: index.startMs, releasedMs: releasedMs,
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
        let all = try fetch(
          session.whole(published).entries.map(\.startMs), known, into: directory, releasedMs: releasedMs)
        package.marks = { all.marks[$0.startMs] ?? SegmentMarks() }
        outcome = try package.update(
          all.segments, releasedMs: releasedMs, hasEnded: index.isComplete, from: directory)
      }
      let durationMs = index.endMs - index.startMs
      if let outcome, try store(package, over: there, isRebuilt: isRebuilt, durationMs) { return outcome.heldBack }
    }
    throw session.contested(key)
  }

  /// Fetches segments, and the videos of those that the playlist can list.
  ///
  /// - Returns: the segments, and their chapters by their starts.
  private func fetch(
    _ starts: [Int64], _ known: [Int64: KnownSegment], into directory: SessionDirectory, releasedMs: Int64
  ) throws -> (segments: [PublishedSegment], marks: [Int64: SegmentMarks]) {
    var segments: [PublishedSegment] = []
    var marks: [Int64: SegmentMarks] = [:]
    for start in starts {
      if let own = known[start], let ownMarks = own.marks {
        segments.append(own.segment)
        marks[start] = ownMarks
      } else {
        let (segment, json) = try session.manifest(start)
        segments.append(segment)
        marks[start] = SegmentMarks(json, of: segment)
      }
    }
    for segment in HLSPackage.listable(segments[...], releasedMs) {
      try fetchVideo(of: segment, known, into: directory)
    }
    return (segments, marks)
  }

  private func fetchVideo(
    of segment: PublishedSegment, _ known: [Int64: KnownSegment], into directory: SessionDirectory
  ) throws {
    let video = directory.path + "/" + segment.file
    if DurableFile.exists(video) { return }
    if let own = known[segment.startMs]?.video, segment.bytes == (try DurableFile.size(of: own)) {
      guard try DurableFile.link(own, to: video) else { throw DiskError("link", video, code: EEXIST) }
    } else {
      _ = try session.objects.download(session.key(segment.file), to: video, limit: segment.bytes)
    }
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
