// The preview thumbnails of a session in an object store, as `thumbnails/` in a directory. Sprites come before the track that names
// them, which is written only if no other worker has written it meanwhile.

import Encoding
import FileSystem

struct ObjectThumbnails {
  let session: ObjectSession
  let staging: Staging

  /// Maximum number of sprites that a session has.
  private static let maximumSprites = 500_000
  /// Maximum size of a track in bytes.
  private static let trackBytes = 64 << 20

  private func key(_ file: String) -> String { session.key(ThumbnailPackage.directory + "/" + file) }

  /// Adds the published segments that the track lacks.
  ///
  /// - Parameter known: segments that need not be fetched, by their starts.
  func update(with known: [Int64: KnownSegment]) throws {
    for attempt in 0..<20 {
      SegmentWriteConflict.pause(attempt)
      // Read it before the index: a worker that writes it later has seen at least that index.
      let there = try session.objects.get(key(ThumbnailTrack.file), limit: Self.trackBytes)
      guard let published = try session.published() else { return }
      let listed = there.map { ThumbnailTrack.starts(in: $0.bytes) } ?? []
      if listed.last == published.index.last.startMs && listed.count == published.index.count { return }
      let scratch = Staging.Scratch(in: staging)
      defer { scratch.remove() }
      try scratch.make()
      let copies = SegmentCopies(of: session, in: scratch, known)
      let package = ThumbnailPackage(of: copies.directory, temporary: scratch.path + "/part")
      try DurableFile.makeDirectories(package.path)
      var kept: Set<String> = []
      if try !extend(package, there, behind: listed, published, copies) {
        kept = try remake(package, published, copies)
      }
      if try store(package, over: there?.tag, but: kept) { return }
    }
    throw session.contested(key(ThumbnailTrack.file))
  }

  func isThere() throws -> Bool { try session.objects.head(key(ThumbnailTrack.file)) != nil }

  /// Takes the first segments out of the track.
  ///
  /// - Parameters:
  ///   - startMs: the start of the first segment that stays, in unix milliseconds.
  ///   - sessionStartMs: the start of the session before.
  func removeFirst(before startMs: Int64, sessionStartMs: Int64) throws {
    guard let there = try session.objects.get(key(ThumbnailTrack.file), limit: Self.trackBytes) else { return }
    // Another worker may have made it anew meanwhile.
    guard let firstMs = ThumbnailTrack.starts(in: there.bytes).first, firstMs < startMs else { return }
    let track = ThumbnailTrack.removing(before: startMs, sessionStartMs: sessionStartMs, in: there.bytes)
    let condition = PutCondition.matching(there.tag)
    if let track, try session.objects.put(key(ThumbnailTrack.file), .bytes(track), .captions, when: condition) != nil {
      return
    }
    try update(with: [:])
  }

  /// - Returns: false if all has to be made from all segments.
  private func extend(
    _ package: ThumbnailPackage, _ there: StoredObject?, behind listed: [Int64], _ published: ObjectSession.Published,
    _ copies: SegmentCopies
  ) throws -> Bool {
    guard let there, let lastMs = listed.last else { return false }
    let near = try session.entries(near: lastMs..<Int64.max, in: published)
    let rest = near.filter { $0.startMs > lastMs }
    // A session only grows, so equal counts mean equal segments.
    guard listed.count + rest.count == published.index.count, let last = near.first(where: { $0.startMs == lastMs })
    else { return false }
    try DurableFile.create(package.path + "/" + ThumbnailTrack.file, there.bytes, isDurable: false)
    let new = try copies.segments(rest).segments
    for entry in rest { try copies.fetchVideo(of: entry) }
    return try package.extend(by: new, after: session.segment(last), sessionStartMs: published.index.startMs)
  }

  /// Makes the track from all segments.
  ///
  /// - Returns: the names of the sprites that the store has.
  private func remake(
    _ package: ThumbnailPackage, _ published: ObjectSession.Published, _ copies: SegmentCopies
  ) throws -> Set<String> {
    let entries = try session.whole(published).entries
    let segments = try copies.segments(entries).segments
    let names = Set(segments.map { SegmentSprite($0).file })
    let kept = try sprites().intersection(names)
    // The package takes the sprites that are there for made.
    for name in kept { try DurableFile.create(package.path + "/" + name, [], isDurable: false) }
    for (segment, entry) in zip(segments, entries) where !kept.contains(SegmentSprite(segment).file) {
      try copies.fetchVideo(of: entry)
    }
    try package.update(segments) { _, _ in }
    return kept
  }

  /// Returns the names of the objects below `thumbnails/`.
  private func sprites() throws -> Set<String> {
    let prefix = key("")
    var walk = ListWalk(prefix, of: session.objects, name: session.name)
    var names: Set<String> = []
    while let page = try walk.next(), names.count <= Self.maximumSprites {
      for object in page { names.insert(String(object.key.dropFirst(prefix.count))) }
    }
    return names
  }

  /// - Returns: whether no other worker has written the track meanwhile.
  private func store(_ package: ThumbnailPackage, over tag: ObjectTag?, but kept: Set<String>) throws -> Bool {
    let made = Set(try Directory(opening: package.path).entries().map(\.name)).subtracting(kept)
    // The names of sprites change with their contents, so an existing one is the same.
    for name in made.subtracting([ThumbnailTrack.file]).sorted() {
      _ = try session.objects.put(key(name), .file(package.path + "/" + name), .picture, when: .absent)
    }
    let track = package.path + "/" + ThumbnailTrack.file
    return try session.objects.put(key(ThumbnailTrack.file), .file(track), .captions, when: .unchanged(since: tag))
      != nil
  }
}
