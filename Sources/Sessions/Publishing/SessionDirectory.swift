// `OUTPUT/SESSION`: the published segments of one session, its lock, and checks of its files. A segment is published once its
// manifest exists. The manifest comes last, and nothing published is ever replaced.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

package struct SessionDirectory {
  package let session: SessionID
  package let path: String
  /// The reader of its videos.
  package let reader: VideoReader

  package init(output: String, session: SessionID, decoders: DecoderForkServer? = nil) {
    self.session = session
    path = output + "/" + session.description
    reader = VideoReader(decoders, owner: path)
  }

  /// A session by its own path.
  package init(at path: String, decoders: DecoderForkServer? = nil) throws {
    // Follow a link in the given path, but no links inside.
    let resolved = DurableFile.resolved(path)
    guard let session = SessionID(lastComponent(of: resolved)), try DurableFile.isDirectory(resolved) else {
      throw BadSession(path, "not a session's directory", advice: "name a directory OUTPUT/SESSION")
    }
    self.session = session
    self.path = resolved
    reader = VideoReader(decoders, owner: resolved)
  }

  /// Throws if an output is a published session or lies in one.
  ///
  /// - Parameter output: may be missing.
  /// - Throws: ``BadTarget``.
  package static func requireOutside(_ output: String) throws {
    var path = output.hasPrefix("/") ? output : DurableFile.resolved(".") + "/" + output
    // The working directory may be gone: then a relative path has no root.
    while path != "/" && path != "." {
      let resolved = DurableFile.resolved(path)
      if let bytes = try? DurableFile.contents(
        of: resolved + "/" + SessionView.jsonFile, limit: SessionView.maximumBytes),
        String(decoding: bytes.prefix(512), as: UTF8.self).contains("\"session-manifest/1\"")
      {
        throw BadTarget(
          path: output, cause: "\(resolved) is a published session",
          advice: "name the directory that holds the sessions: \(DurableFile.parentDirectory(of: resolved))")
      }
      path = DurableFile.parentDirectory(of: path)
    }
  }

  /// Runs `body` under the session's lock.
  ///
  /// - Parameter isCancelled: asked while another worker has the lock, and once it is ours.
  /// - Throws: ``Cancelled``.
  @discardableResult
  package func locked<R>(_ isCancelled: () -> Bool = { false }, _ body: () throws -> R) throws -> R {
    let lock = try lock(isCancelled)
    return try withExtendedLifetime(lock) { try body() }
  }

  /// Like ``locked(_:_:)``, but fails if another process has the lock, and creates no directory.
  ///
  /// - Returns: nil if there is no such session.
  /// - Throws: ``SessionHeld``.
  package func lockedIfFree<R>(_ body: () throws -> R) throws -> R? {
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
    if directory < 0 && errno == ENOENT { return nil }
    guard directory >= 0 else { throw DiskError("open", path) }
    let lock = try lock(directory) { file, name in
      if flock(file, LOCK_EX | LOCK_NB) != 0 { throw errno == EWOULDBLOCK ? SessionHeld() : DiskError("flock", name) }
    }
    return try lock.map { lock in try withExtendedLifetime(lock) { try body() } }
  }

  /// Takes the session's lock. Creates the directory if it is missing.
  ///
  /// - Returns: the lock, released with the last reference.
  func lock(_ isCancelled: () -> Bool = { false }) throws -> SessionLock {
    while true {
      try DurableFile.makeDirectories(path)
      let directory = try check("open", path) { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
      let lock = try lock(directory) { file, name in
        // A worker holds it while files are synced; a stopped process holds it for ever.
        var pause: UInt32 = 500
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
          guard errno == EWOULDBLOCK || errno == EINTR else { throw DiskError("flock", name) }
          if isCancelled() { throw Cancelled() }
          usleep(pause)
          pause = min(2 * pause, 50_000)
        }
        if isCancelled() { throw Cancelled() }
      }
      if let lock { return lock }
    }
  }

  /// Locks the open directory, or a file in it if the file system has no locks on directories.
  ///
  /// - Returns: nil if the session was removed meanwhile.
  private func lock(_ directory: Int32, _ seize: (Int32, String) throws -> Void) throws -> SessionLock? {
    func lock(_ file: Int32, _ name: String) throws -> SessionLock? {
      let lock = SessionLock(file)
      try seize(file, name)
      // The lock may be on a file that was removed while we waited.
      return try isSame(file, name) ? lock : nil
    }
    do {
      return try lock(directory, path)
    } catch let failure as DiskError where failure.saysNoLocks {
      let name = path + "/.lock"
      let file = try check("open", name) { open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644) }
      return try lock(file, name)
    }
  }

  /// Throws if the disk does not answer: a wrong answer would make us wait for our own lock.
  private func isSame(_ descriptor: Int32, _ path: String) throws(DiskError) -> Bool {
    var (opened, named) = (stat(), stat())
    try check("stat", path) { fstat(descriptor, &opened) }
    try check("stat", path) { lstat(path, &named) == 0 || errno == ENOENT ? 0 : -1 }
    return (opened.st_ino, opened.st_dev) == (named.st_ino, named.st_dev)
  }

  /// Returns the starts of all published segments, in order.
  package func publishedStarts() throws -> [Int64] {
    guard try DurableFile.isDirectory(path) else { return [] }
    var starts: [Int64] = []
    try Directory(opening: path, followingLinks: false).visit { name in
      let bytes = UnsafeRawBufferPointer(start: name, count: strlen(name))
      if let start = SegmentName.start(ofManifest: bytes) { starts.append(start) }
    }
    return starts.sorted()
  }

  /// Rolls back segments of a batch that was never published as a whole. Call it with the session locked.
  func rollBack(_ segments: [PublishedSegment]) throws {
    for segment in segments.reversed() {
      for name in [SegmentName.manifest(segment.startMs), segment.file] {
        try check("unlink", path + "/" + name) { unlink(path + "/" + name) == 0 || errno == ENOENT ? 0 : -1 }
      }
    }
  }

  /// Removes videos without a manifest: a worker died before it had published them. Call it with the session locked.
  func removeOrphans(keeping starts: Set<Int64>) throws {
    for name in try orphans() where SegmentName.start(ofVideo: name).map({ !starts.contains($0) }) ?? true {
      try check("unlink", path + "/" + name) { unlink(path + "/" + name) }
    }
  }

  /// Returns the names of videos without a manifest.
  package func orphans() throws -> [String] {
    let names = try Directory(opening: path, followingLinks: false).entries().map(\.name)
    let published = Set(names.compactMap { SegmentName.start(ofManifest: $0) })
    return names.filter { SegmentName.start(ofVideo: $0).map { !published.contains($0) } ?? false }
  }

  /// Returns the bytes of a file of the session; nil if it is missing, larger, or not a plain file.
  package func bytes(of name: String, limit: Int) throws -> [UInt8]? {
    let directory = try Directory(opening: path, followingLinks: false)
    guard case .bytes(let bytes)? = try directory.contents(of: name, limit: limit) else { return nil }
    return bytes
  }

  package func segment(_ startMs: Int64) throws -> PublishedSegment { try manifest(startMs).segment }

  /// Returns a published segment and its manifest.
  ///
  /// - Throws: ``DamagedOutput``.
  package func manifest(_ startMs: Int64) throws -> (segment: PublishedSegment, json: JSONValue) {
    let name = SegmentName.manifest(startMs)
    guard let bytes = try bytes(of: name, limit: SegmentManifest.maximumBytes) else {
      throw DamagedOutput(path: path + "/" + name, cause: "not a readable file")
    }
    return try SegmentManifest.read(bytes, of: startMs, path: path + "/" + name)
  }

  /// Returns all published segments, in order. The digests of their manifests are checked.
  ///
  /// - Throws: ``BadSession`` if there are none, or if two overlap.
  func soundSegments() throws -> [PublishedSegment] {
    let segments = try publishedStarts().map { try soundManifest($0).segment }
    guard !segments.isEmpty else {
      throw BadSession(path, "no published segment", advice: "name a directory OUTPUT/SESSION")
    }
    if let overlap = SessionOrder.overlaps(of: segments).first { throw BadSession(overlap.file, overlap.what) }
    return segments
  }

  /// Like ``manifest(_:)``, but checks the manifest's session and digest.
  func soundManifest(_ startMs: Int64) throws -> (segment: PublishedSegment, json: JSONValue) {
    let (segment, json) = try manifest(startMs)
    let name = SegmentName.manifest(startMs)
    guard json.object?["session"]?.string == session.description else {
      throw BadSession(path + "/" + name, "of another session")
    }
    guard SegmentManifest.seal(of: json) == json.object?["manifestSha256"]?.string else {
      throw BadSession(path + "/" + name, "edited: its digest is another")
    }
    return (segment, json)
  }

  /// Maximum size of a segment's file, far above that of some seconds of screenshots.
  static let maximumVideoBytes = 128 << 20

  /// Returns the video of a published segment.
  ///
  /// - Throws: ``BadSession`` if it is not the one that the manifest describes.
  package func video(of segment: PublishedSegment) throws -> [UInt8] {
    guard let bytes = try bytes(of: segment.file, limit: min(segment.bytes, Self.maximumVideoBytes)) else {
      throw BadSession(segment.file, "missing, or not a plain file of its size")
    }
    guard bytes.count == segment.bytes, SHA256.hex(of: bytes) == segment.sha256 else {
      throw BadSession(segment.file, "not the file its manifest describes")
    }
    return bytes
  }

  /// Returns the published segments that a batch shown from `range.lowerBound` to `range.upperBound` can touch.
  ///
  /// - Parameter cache: the cache of the session; set to nil if it is wrong.
  package func segments(near range: Range<Int64>, _ cache: inout SessionIndexCache?) throws -> [PublishedSegment] {
    do {
      let recent = cache.flatMap { cache in cache.recent[0] < range.lowerBound ? cache.recent : nil }
      return try segments(near: range, among: recent ?? publishedStarts())
    } catch is DamagedOutput where cache != nil {
      // The operator has moved segments away.
      SessionIndexCache.forget(of: path)
      cache = nil
      return try segments(near: range, among: publishedStarts())
    }
  }

  private func segments(near range: Range<Int64>, among starts: [Int64]) throws -> [PublishedSegment] {
    let first = starts.firstIndex { $0 >= range.lowerBound } ?? starts.endIndex
    // Segments overlap by less than they last, so only the one before can reach into the range.
    let candidates = starts[max(0, first - 1)...].prefix { $0 < range.upperBound }
    return try candidates.map(segment)
  }
}

/// A session's lock. No other worker publishes there while this exists.
final class SessionLock {
  private let descriptor: Int32

  /// Takes over a locked file.
  fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }
}

/// A file in the output that this program did not write. The worker does not replace it.
package struct DamagedOutput: Error, Equatable, CustomStringConvertible {
  package let path: String
  package let cause: String

  package var description: String { "read \(path): \(cause); move it away and run again" }
}

extension SegmentManifest {
  /// Reads a manifest file.
  ///
  /// - Parameter path: its name in messages.
  /// - Throws: ``DamagedOutput``.
  package static func read(
    _ bytes: [UInt8], of startMs: Int64, path: String
  ) throws(DamagedOutput) -> (segment: PublishedSegment, json: JSONValue) {
    do {
      let json = try JSONParser.parse(bytes)
      let segment = try PublishedSegment(json)
      guard segment.startMs == startMs else { throw JSONError("of another segment") }
      return (segment, json)
    } catch {
      throw DamagedOutput(path: path, cause: "\(error)")
    }
  }
}
