// The views of a session, rebuilt from the segments' manifests whenever one is added: `session.json`, `session.ffconcat`
// and, where they are asked for, the events for Sentry and `hls/`. Manifests never change, so each is read once.

import Glibc
import Synchronization

public final class SessionIndex: Sendable {
  /// A manifest as it was when it was read.
  private struct Known {
    let stamp: FileStamp
    let segment: PublishedSegment
    /// The event that its file was last seen to hold, and that file as it was then.
    var written: (event: SentryEvent, stamp: FileStamp)?
  }

  /// Sessions whose manifests are remembered; the least recently used one goes first.
  private static let capacity = 16

  private let known = Mutex<[(session: String, segments: [Known])]>([])
  private let hasHLS: Bool
  private let hasEvents: Bool

  /// - Parameters:
  ///   - hls: whether sessions can be played while they grow.
  ///   - sentry: whether there is an event for Sentry beside each manifest.
  public init(hls: Bool = false, sentry: Bool = false) {
    hasHLS = hls
    hasEvents = sentry
  }

  /// Brings all files up to date; call it with the session locked.
  ///
  /// - Parameter temporary: a file name to write under, on the same file system.
  /// - Returns: what a person should know of files that are new.
  @discardableResult
  func update(_ directory: SessionDirectory, temporary: String) throws -> [String] {
    let entries = try Directory(opening: directory.path, followingLinks: false).entries()
    var known = try manifests(entries, of: directory)
    defer { put(directory.path, known) }
    // Before session.json, so that whoever finds a segment there finds its event, too.
    let new = try updateEvents(entries, of: &known, in: directory, temporary: temporary)
    let segments = known.map(\.segment)
    guard let session = SessionManifest(session: directory.session, segments: segments) else {
      for name in ["session.json", "session.ffconcat"] { unlink(directory.path + "/" + name) }
      try DurableFile.removeTree(directory.path + "/" + HLSPackage.directory)
      return []
    }
    for (name, bytes) in session.files { try write(bytes, to: directory.path + "/" + name, temporary: temporary) }
    try Directory(opening: directory.path).sync()
    let hls = directory.path + "/" + HLSPackage.directory
    // Once begun it is kept up, by whomever.
    if try hasHLS || DurableFile.isDirectory(hls) {
      try HLSPackage(path: hls, isLive: true, temporary: temporary).update(segments, from: directory)
    }
    return new.compactMap { SentryEvent.warning(of: $0, in: directory.session) }
  }

  /// All manifests, in order.
  private func manifests(_ entries: [Directory.Entry], of directory: SessionDirectory) throws -> [Known] {
    let cached = Dictionary(uniqueKeysWithValues: take(directory.path).map { ($0.segment.startMs, $0) })
    return try entries.compactMap { SegmentName.start(ofManifest: $0.name) }.sorted().map { start in
      let stamp = try FileStamp(of: directory.path + "/" + SegmentName.manifest(start))
      if let entry = cached[start], entry.stamp == stamp { return entry }
      return try Known(stamp: stamp, segment: directory.segment(start))
    }
  }

  /// Writes the events that are missing or have become others. An event whose file is still the one that was last seen
  /// is not read again.
  ///
  /// - Returns: the segments that had none.
  private func updateEvents(
    _ entries: [Directory.Entry], of known: inout [Known], in directory: SessionDirectory, temporary: String
  ) throws -> [PublishedSegment] {
    let present = Set(entries.filter { $0.kind == .file }.compactMap { SegmentName.start(ofEvent: $0.name) })
    // Once begun they are kept up, by whomever.
    guard hasEvents || !present.isEmpty else { return [] }
    var new: [PublishedSegment] = []
    for (ordinal, entry) in known.enumerated() {
      let event = SentryEvent(entry.segment, ordinal: ordinal)
      let file = directory.path + "/" + SegmentName.event(event.startMs)
      if !present.contains(event.startMs) {
        new.append(entry.segment)
      } else if let written = entry.written, written.event == event, try FileStamp(of: file) == written.stamp {
        continue
      }
      try write(event.text, to: file, temporary: temporary)
      known[ordinal].written = (event, try FileStamp(of: file))
    }
    // Of segments that were taken back. Last: a worker that dies before has left the mark that events are wanted.
    for start in present.subtracting(known.map(\.segment.startMs)) {
      let file = directory.path + "/" + SegmentName.event(start)
      try check("unlink", file) { unlink(file) }
    }
    return new
  }

  private func take(_ session: String) -> [Known] {
    known.withLock { known in
      guard let index = known.firstIndex(where: { $0.session == session }) else { return [] }
      return known.remove(at: index).segments
    }
  }

  private func put(_ session: String, _ segments: [Known]) {
    known.withLock { known in
      known.append((session, segments))
      if known.count > Self.capacity { known.removeFirst() }
    }
  }

  private func write(_ bytes: [UInt8], to path: String, temporary: String) throws {
    if try DurableFile.contents(of: path) == bytes { return }
    try DurableFile.replace(path, bytes, temporary: temporary)
  }
}

/// Tells whether a file is still the one that was read.
private struct FileStamp: Equatable {
  let inode: UInt64
  let size: Int
  let seconds: Int
  let nanoseconds: Int

  init(of path: String) throws(DiskError) {
    var status = stat()
    try check("stat", path) { lstat(path, &status) }
    inode = UInt64(status.st_ino)
    size = Int(status.st_size)
    seconds = status.st_mtim.tv_sec
    nanoseconds = status.st_mtim.tv_nsec
  }
}
