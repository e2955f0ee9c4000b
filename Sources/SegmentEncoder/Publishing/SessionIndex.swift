// The views of a session, rebuilt from the segments' manifests whenever one is added: `session.json`, `session.ffconcat`
// and, where it is asked for, `hls/`. Manifests never change, so each is read once.

import Glibc
import Synchronization

public final class SessionIndex: Sendable {
  /// A manifest as it was when it was read.
  private struct Known {
    let stamp: FileStamp
    let segment: PublishedSegment
  }

  /// Sessions whose manifests are remembered; the least recently used one goes first.
  private static let capacity = 16

  private let known = Mutex<[(session: String, segments: [Int64: Known])]>([])
  private let hasHLS: Bool

  /// - Parameter hls: whether sessions can be played while they grow.
  public init(hls: Bool = false) { hasHLS = hls }

  /// Brings all files up to date; call it with the session locked.
  ///
  /// - Parameter temporary: a file name to write under, on the same file system.
  func update(_ directory: SessionDirectory, temporary: String) throws {
    let segments = try summaries(of: directory)
    guard let session = SessionManifest(session: directory.session, segments: segments) else {
      for name in ["session.json", "session.ffconcat"] { unlink(directory.path + "/" + name) }
      try DurableFile.removeTree(directory.path + "/" + HLSPackage.directory)
      return
    }
    for (name, bytes) in session.files { try write(bytes, to: directory.path + "/" + name, temporary: temporary) }
    try Directory(opening: directory.path).sync()
    let hls = directory.path + "/" + HLSPackage.directory
    // Once begun it is kept up, by whomever.
    guard hasHLS || DurableFile.isDirectory(hls) else { return }
    try HLSPackage(path: hls, isLive: true, temporary: temporary).update(segments, from: directory)
  }

  private func summaries(of directory: SessionDirectory) throws -> [PublishedSegment] {
    var cached = take(directory.path)
    var result: [PublishedSegment] = []
    var current: [Int64: Known] = [:]
    for start in try directory.publishedStarts() {
      let stamp = try FileStamp(of: directory.path + "/" + SegmentName.manifest(start))
      var entry = cached.removeValue(forKey: start)
      if entry?.stamp != stamp { entry = nil }
      let known = try entry ?? Known(stamp: stamp, segment: directory.segment(start))
      current[start] = known
      result.append(known.segment)
    }
    put(directory.path, current)
    return result
  }

  private func take(_ session: String) -> [Int64: Known] {
    known.withLock { known in
      guard let index = known.firstIndex(where: { $0.session == session }) else { return [:] }
      return known.remove(at: index).segments
    }
  }

  private func put(_ session: String, _ segments: [Int64: Known]) {
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
