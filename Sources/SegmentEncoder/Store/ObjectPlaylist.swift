// The HLS stream of a session in an object store, as `hls/` in a directory: made in a directory of our own from what is missing,
// then written to the store, the playlist last and on the condition that nobody else has meanwhile.

import Glibc

struct ObjectPlaylist {
  private let session: ObjectSession
  private let staging: Staging

  init(_ session: ObjectSession, staging: Staging) {
    self.session = session
    self.staging = staging
  }

  private var key: String { session.key(HLSPackage.directory + "/" + HLSPlaylist.file) }

  /// Brings it up to date with what is published.
  ///
  /// - Parameter known: segments that need not be fetched, and the files of their videos.
  func update(with known: some Sequence<(PublishedSegment, String)> = EmptyCollection()) throws {
    let known = Dictionary(uniqueKeysWithValues: known.map { ($0.startMs, (segment: $0, video: $1)) })
    for attempt in 0..<20 {
      ContestedSegment.pause(attempt)
      // Before what is published: who changes it later has seen as much.
      let there = try session.objects.get(key, limit: 32 << 20)
      guard let starts = try session.view()?.segments.map(\.startMs) else { return }
      let scratch = Staging.Scratch(in: staging)
      defer { scratch.remove() }
      let directory = SessionDirectory(output: scratch.path, session: session.id)
      let package = HLSPackage(
        path: directory.path + "/" + HLSPackage.directory, isLive: true, temporary: scratch.path + "/part")
      try DurableFile.makeDirectories(package.path)
      let text = there.map { String(decoding: $0.bytes, as: UTF8.self) }
      let told = text.map(Self.starts) ?? []
      let missing = starts.filter { !told.contains($0) }
      if !told.isEmpty && missing.isEmpty { return }
      var isExtended = false
      if let there, let last = told.max(), starts.filter({ $0 <= last }).count == told.count {
        try DurableFile.createScratch(package.path + "/" + HLSPlaylist.file, there.bytes)
        let new = try fetch(missing, known, into: directory)
        isExtended = try package.extend(
          by: new, after: session.segment(last), sessionStartMs: starts[0], from: directory)
      }
      if !isExtended {
        // Something belongs before what was there.
        try DurableFile.removeTree(package.path)
        try package.update(try fetch(starts, known, into: directory), from: directory)
      }
      if try store(package, over: there?.tag) { return }
    }
    throw session.contested(key)
  }

  /// The segments that a playlist tells of.
  private static func starts(in playlist: String) -> Set<Int64> {
    Set(
      playlist.utf8.split(separator: UInt8(ascii: "\n")).compactMap { line in
        line.starts(with: "segment-".utf8) ? Int64(String(line.dropFirst(8).prefix(13)) ?? "") : nil
      })
  }

  private func fetch(
    _ starts: [Int64], _ known: [Int64: (segment: PublishedSegment, video: String)], into directory: SessionDirectory
  ) throws -> [PublishedSegment] {
    try starts.map { startMs in
      let video = directory.path + "/" + SegmentName.video(startMs)
      if let own = known[startMs], own.segment.bytes == (try DurableFile.size(of: own.video)) {
        if DurableFile.exists(video) { return own.segment }
        guard try DurableFile.link(own.video, to: video) else { throw DiskError("link", video, code: EEXIST) }
        return own.segment
      }
      let segment = try known[startMs]?.segment ?? session.segment(startMs)
      if !DurableFile.exists(video) {
        _ = try session.objects.download(session.key(segment.file), to: video, limit: segment.bytes)
      }
      return segment
    }
  }

  /// - Returns: whether nobody else has written the playlist meanwhile.
  private func store(_ package: HLSPackage, over tag: ObjectTag?) throws -> Bool {
    for entry in try Directory(opening: package.path).entries() where entry.name != HLSPlaylist.file {
      // Names tell what is in them: what is there is the same.
      _ = try session.objects.put(
        session.key(HLSPackage.directory + "/" + entry.name), .file(package.path + "/" + entry.name), .video,
        when: .absent)
    }
    let playlist = ObjectBody.file(package.path + "/" + HLSPlaylist.file)
    return try session.objects.put(key, playlist, .playlist, when: .unchanged(since: tag)) != nil
  }
}

extension Staging {
  /// A directory that is removed again.
  struct Scratch {
    let path: String

    init(in staging: Staging) { path = staging.temporaryFile() }

    func remove() { try? DurableFile.removeTree(path) }
  }
}
