// New packs of a session's segments: their objects are fetched to a private directory, checked against the index, and put into packs there.
// No picture is coded again, and no manifest is changed.

import Encoding
import FileSystem
import FrameBatches

/// Makes the packs of groups, and puts them into the store. For one session, on one thread.
struct CompactedPacks {
  private struct Made {
    let entries: [SessionEntry]
    let lastKind: String?
    let places: [Int64: PackPlace]
  }

  /// Maximum size of segments that one request fetches together, and of those that each of several threads fetches, in bytes.
  private static let (fetchBytes, threadBytes) = (1 << 20, 256 << 10)
  private static let dayMs: Int64 = 86_400_000
  /// Names that are tried for a pack.
  private static let attempts = 20

  private let session: ObjectSession
  private let staging: Staging
  private let nowMs: Int64
  private let cancellation: Cancellation
  /// See ``ObjectSession/Head``: objects of a session that was deleted are gone.
  private var generation: String?
  private var made: [Int64: Made] = [:]
  /// The kind of the pack that was made last; nil before.
  private var lastKind: String?

  init(of session: ObjectSession, in staging: Staging, nowMs: Int64, _ cancellation: Cancellation) {
    (self.session, self.staging, self.nowMs, self.cancellation) = (session, staging, nowMs, cancellation)
  }

  /// Puts the packs of a group into the store. Packs that this call has made before are kept.
  ///
  /// - Parameter generation: of the head that lists the group.
  /// - Returns: the new places by the starts of the segments; none if that would not be fewer objects.
  /// - Throws: ``DamagedOutput``; ``SegmentWriteConflict``; ``Cancelled``; an error of the store or the disk.
  mutating func places(of group: CompactionPlan.Group, _ generation: String?) throws -> [Int64: PackPlace] {
    if generation != self.generation { (made, self.generation) = ([:], generation) }
    let (startMs, kind) = (group.entries[0].startMs, group.lastKind ?? lastKind)
    if let known = made[startMs], known.entries == group.entries, known.lastKind == kind {
      lastKind = known.places.values.max { $0.startMs < $1.startMs }?.kind
      return known.places
    }
    let scratch = Staging.Scratch(in: staging)
    defer { scratch.remove() }
    try scratch.make()
    let directory = SessionDirectory(output: scratch.path, session: session.id)
    try DurableFile.makeDirectories(directory.path)
    try fetch(group.entries, to: directory.path)
    let sources = try group.entries.map { try directory.source($0.startMs) }
    let packs = try Pack.all(of: sources, in: scratch.path, behind: kind, cancellation)
    var places: [Int64: PackPlace] = [:]
    // Pictures that cannot be joined after all stay where they are.
    for pack in packs where packs.count < group.objects {
      try cancellation.check()
      let own = group.entries.filter { entry in pack.segments.contains { $0.segment.startMs == entry.startMs } }
      let revision = try put(pack, replacing: own)
      for (segment, place, _) in pack.segments {
        var place = place
        (place.revision, place.publishedMs) = (revision, group.publishedMs ?? 0)
        places[segment.startMs] = place
        lastKind = place.kind
      }
    }
    made[startMs] = Made(entries: group.entries, lastKind: kind, places: places)
    return places
  }

  /// Copies the manifests and the videos of segments.
  private func fetch(_ entries: [SessionEntry], to path: String) throws {
    let objects = StoredObjects(session: session, path: path, damage: .refused)
    let (bytes, free) = (2 * entries.reduce(0) { $0 + $1.bytes }, try DurableFile.freeBytes(at: path))
    guard bytes <= free else {
      throw Failure(
        .environment, "compact", session.place,
        "it needs \(bytes) bytes in \(staging.output), and \(free) are free there",
        advice: "free some, or name another directory with TMPDIR")
    }
    do {
      let manifests = PackPlace.groups(of: entries, limit: Self.fetchBytes, \.manifest)
      let videos = PackPlace.groups(of: entries, limit: Self.fetchBytes, \.fragment)
      let isSmall = { (group: [SessionEntry]) in group.reduce(0) { $0 + $1.bytes } <= Self.threadBytes }
      _ = try ParallelFetch.map(manifests, objects.fetchManifests) { _ in try cancellation.check() }
      _ = try ParallelFetch.map(videos.filter(isSmall), objects.fetchVideos) { _ in try cancellation.check() }
      // One at a time: several of them would take much memory.
      for group in videos where !isSmall(group) {
        try cancellation.check()
        try objects.fetchVideos(of: group)
      }
    } catch let bad as BadSession {
      // Another process may have removed it: the caller looks whether the index has changed.
      throw DamagedOutput(path: bad.file, cause: bad.cause)
    }
  }

  /// Writes a pack under a name that no other object of the session has, or finds the same pack of a process that died.
  ///
  /// - Returns: the revision in its name.
  private func put(_ pack: Pack, replacing entries: [SessionEntry]) throws -> Int {
    // A list of objects that go names none of a later day: so no process removes the pack because of an old list.
    let first = max(Int(nowMs / Self.dayMs), (entries.compactMap { $0.pack?.revision }.max() ?? 0) + 1)
    for revision in first..<first + Self.attempts {
      let name = SegmentName.pack(pack.startMs, revision: revision)
      let old = Set(entries.flatMap(\.objectNames)).sorted()
      try ReplacedObjects(of: session).add([name] + (revision == first ? old : []), nowMs: nowMs)
      if try session.objects.put(session.key(name), .file(pack.path), .video, when: .absent) != nil { return revision }
      if try isThere(pack, session.key(name)) { return revision }
    }
    throw session.contested(session.key(SegmentName.pack(pack.startMs, revision: first)))
  }

  private func isThere(_ pack: Pack, _ key: String) throws -> Bool {
    guard let info = try session.objects.head(key), info.size == pack.size else { return false }
    let path = pack.path + ".there"
    defer { try? DurableFile.removeTree(path) }
    guard try session.objects.download(key, to: path, limit: pack.size) != nil else { return false }
    return try SHA256.hex(ofFile: path, cancellation: cancellation) == pack.sha256
  }
}
