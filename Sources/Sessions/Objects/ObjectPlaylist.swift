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
  ///   - own: the session after our publication; nil to read it.
  ///   - releasedMs: segments that start by then are not held back.
  ///   - isMoved: whether segments lie elsewhere than the playlist says, so that it is made anew.
  /// - Returns: the segments that it holds back; nil if it lists all.
  func update(
    with known: [Int64: KnownSegment], after own: ObjectSession.Published? = nil, releasedMs: Int64,
    isMoved: Bool = false
  ) throws -> HeldBack? {
    for attempt in 0..<20 {
      SegmentWriteConflict.pause(attempt)
      // Read it before the index: a worker that writes it later has seen at least that index.
      let there = try session.objects.get(key, limit: 32 << 20)
      let listed = there.map { HLSPlaylist.starts(in: $0.bytes) } ?? []
      // Our index is older than the playlist. Another worker that has published since updates the playlist after us, or has listed its
      // segments in this one.
      let isUsable = attempt == 0 && own.map { $0.index.last.startMs >= listed.last ?? .min } ?? false
      guard let published = try isUsable ? own : session.published() else { return nil }
      let scratch = Staging.Scratch(in: staging)
      defer { scratch.remove() }
      let copies = SegmentCopies(of: session, in: scratch, known)
      let package = HLSPackage(
        path: copies.directory.path + "/" + HLSPackage.directory, temporary: scratch.path + "/part")
      try scratch.make()
      try DurableFile.makeDirectories(package.path)
      let isOpen = published.index.isComplete && !(there.map { HLSPlaylist.hasEnded($0.bytes) } ?? false)
      let isComplete = listed.last == published.index.last.startMs && listed.count == published.index.count
      if isComplete && !isOpen && !isMoved { return nil }
      // Listed segments stay listed.
      let releasedMs = published.index.isComplete ? .max : max(releasedMs, listed.last ?? .min)
      let update = Update(
        published: published, there: isMoved ? nil : there?.bytes, listed: listed, releasedMs: releasedMs)
      var (outcome, isRebuilt) = (try extend(package, update, copies), false)
      if outcome == nil {
        if isUsable, !listed.isEmpty, try session.published()?.tag != published.tag { continue }
        // A segment belongs before listed ones.
        isRebuilt = there != nil
        outcome = try rebuild(package, update, copies)
      }
      let durationMs = published.index.endMs - published.index.startMs
      if let outcome, try store(package, over: there, isRebuilt: isRebuilt, durationMs) { return outcome.heldBack }
    }
    throw session.contested(key)
  }

  /// Whether there is one that lists segments in packs.
  func hasPacks() throws -> Bool {
    try session.objects.get(key, limit: 32 << 20).map { HLSPlaylist.hasPacks($0.bytes) } ?? false
  }

  /// The beginning of an attempt to update the playlist.
  private struct Update {
    let published: ObjectSession.Published
    /// The playlist.
    let there: [UInt8]?
    /// The starts of its segments.
    let listed: [Int64]
    let releasedMs: Int64
  }

  /// Adds the segments behind the last one that the playlist lists.
  ///
  /// - Returns: nil if it has to be made from all segments.
  private func extend(_ package: HLSPackage, _ update: Update, _ copies: SegmentCopies) throws -> ViewOutcome? {
    guard let there = update.there, let end = update.listed.last else { return nil }
    let (published, index) = (update.published, update.published.index)
    var near = try session.entries(near: end..<Int64.max, in: published)
    guard let lastEntry = near.first(where: { $0.startMs == end }) else { return nil }
    let rest = near.filter { $0.startMs > end }
    // A session only grows, so equal counts mean equal segments.
    guard update.listed.count + rest.count == index.count else { return nil }
    // The first segment of its pack tells where the initialization ends.
    if let packMs = lastEntry.pack?.startMs, packMs < near[0].startMs {
      near = try session.entries(near: packMs..<Int64.max, in: published)
    }
    try DurableFile.create(package.path + "/" + HLSPlaylist.file, there, isDurable: false)
    let isMixed = HLSPlaylist(of: session.id, continuing: there)?.isMixed ?? false
    let new = try fetch(
      [lastEntry] + rest, among: near, behind: 1, isMixed: isMixed, into: copies, releasedMs: update.releasedMs)
    var package = package
    package.marks = { new.marks[$0.startMs] ?? SegmentMarks() }
    package.packs = new.packs
    return try package.extend(
      by: new.segments, sessionStartMs: published.retention?.originMs ?? index.startMs, releasedMs: update.releasedMs,
      hasEnded: index.isComplete, from: copies.directory)
  }

  /// Makes the playlist from all segments.
  private func rebuild(_ package: HLSPackage, _ update: Update, _ copies: SegmentCopies) throws -> ViewOutcome {
    try DurableFile.removeTree(package.path)
    if let there = update.there {
      try DurableFile.makeDirectories(package.path)
      try DurableFile.create(package.path + "/" + HLSPlaylist.file, there, isDurable: false)
    }
    let entries = try session.whole(update.published).entries
    let all = try fetch(entries, among: entries, into: copies, releasedMs: update.releasedMs)
    var package = package
    package.marks = { all.marks[$0.startMs] ?? SegmentMarks() }
    package.packs = all.packs
    return try package.update(
      all.segments, releasedMs: update.releasedMs, hasEnded: update.published.index.isComplete,
      retention: update.published.retention, isWindow: isWindow, from: copies.directory)
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
      try write(HLSViews(of: slid.text), replacing: there.bytes)
      if try session.objects.put(key, .bytes(slid.text), .playlist, when: .matching(there.tag)) != nil { return }
    }
    throw session.contested(key)
  }

  /// Segments as the playlist needs them, by their starts.
  private struct Fetched {
    let segments: [PublishedSegment]
    let marks: [Int64: SegmentMarks]
    let packs: [Int64: HLSPackPart]
  }

  /// Fetches segments, and the videos that a playlist which lists them needs.
  ///
  /// - Parameters:
  ///   - all: these segments, and the first ones of their packs.
  ///   - count: the number of first ones that the playlist lists already.
  ///   - isMixed: whether the playlist has pictures of several kinds before.
  private func fetch(
    _ entries: [SessionEntry], among all: [SessionEntry], behind count: Int = 0, isMixed: Bool = false,
    into copies: SegmentCopies, releasedMs: Int64
  ) throws -> Fetched {
    let (segments, marks) = try copies.segments(entries)
    let listed = count + HLSPackage.listable(segments[count...], releasedMs).count
    let packs = Self.playable(
      try copies.packs(of: all, layoutsOf: entries[count..<listed]), of: entries, isMixed: isMixed)
    for index in 0..<listed {
      let next = index + 1 < listed ? segments[index + 1] : nil
      let isHeld = next.map { segments[index].isHeld(until: $0) } ?? false
      let pack = packs[segments[index].startMs]
      let isCopied = index >= count && pack?.isCopied ?? true
      let isHeldInPack = next.map { pack?.isHeld(segments[index], until: $0, packs[$0.startMs]) ?? false } ?? false
      if isCopied || isHeld || isHeldInPack { try copies.fetchVideo(of: entries[index]) }
    }
    return Fetched(segments: segments, marks: marks, packs: packs)
  }

  /// Marks the segments that are copied: behind a late pack of another kind, those in packs without parameter sets of their own. Stock
  /// ffmpeg keeps the parameter sets of a stream's first initialization.
  ///
  /// - Parameter entries: in order.
  private static func playable(
    _ packs: [Int64: HLSPackPart], of entries: [SessionEntry], isMixed: Bool
  ) -> [Int64: HLSPackPart] {
    var (playable, isMixed, last) = (packs, isMixed, nil as Substring?)
    for entry in entries {
      let kind = packs[entry.startMs]?.place.kind
      if let last, last != kind?.suffix(8) { isMixed = true }
      if isMixed, let kind, !PackPlace.isInBand(kind) { playable[entry.startMs]?.isCopied = true }
      last = kind?.suffix(8) ?? ""
    }
    return playable
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
    let views = [HLSViews.keyFramesFile, HLSViews.multivariantFile, HLSCaptions.file, HLSPlaylist.file]
    var made = Set(try Directory(opening: package.path).entries().map(\.name)).subtracting(views)
    if isRebuilt, let old = there?.bytes {
      let graceMs = SupersededFiles.graceMs(after: old, durationMs: durationMs)
      try superseded.replace(
        HLSPlaylist.files(in: old), with: HLSPlaylist.files(in: text), among: superseded.files(), dueMs: nowMs + graceMs
      )
    } else {
      // A file that is named stays.
      if !made.isEmpty, let there { made.subtract(HLSPlaylist.files(in: there.bytes)) }
      if !made.isEmpty { try superseded.keep(made) }
    }
    // The names of these change with their contents, so an existing one is the same.
    for name in made.sorted() {
      _ = try session.objects.put(
        session.key(HLSPackage.directory + "/" + name), .file(package.path + "/" + name),
        name.hasSuffix(HLSCaptions.suffix) ? .captions : .video, when: .absent)
    }
    try write(HLSViews(of: text), replacing: there?.bytes)
    return try session.objects.put(key, .bytes(text), .playlist, when: .unchanged(since: there?.tag)) != nil
  }

  /// The worker that writes the playlist also replaces the playlists made from it.
  private func write(_ views: HLSViews, replacing replaced: [UInt8]?) throws {
    for (name, bytes) in views.files(replacing: replaced) {
      _ = try session.objects.put(
        session.key(HLSPackage.directory + "/" + name), .bytes(bytes), .playlist, when: .always)
    }
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
