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

  /// Throws where an output would lie in a published session, or be one.
  ///
  /// - Parameter output: need not be there yet.
  /// - Throws: ``BadTarget``.
  package static func requireOutside(_ output: String) throws {
    var place = output.hasPrefix("/") ? output : DurableFile.resolved(".") + "/" + output
    while place != "/" {
      let resolved = DurableFile.resolved(place)
      if let bytes = try? DurableFile.contents(
        of: resolved + "/" + SessionView.jsonFile, limit: SessionView.maximumBytes),
        String(decoding: bytes.prefix(512), as: UTF8.self).contains("\"session-manifest/1\"")
      {
        throw BadTarget(
          path: output, cause: "\(resolved) is a published session",
          advice: "name the directory that holds the sessions: \(DurableFile.parentDirectory(of: resolved))")
      }
      place = DurableFile.parentDirectory(of: place)
    }
  }

  /// Runs `body` under the session's lock. On a file system without locks on directories, a file is locked instead.
  ///
  /// - Parameter isCancelled: asked while another worker has it, and once it is ours.
  /// - Throws: ``Cancelled``.
  @discardableResult
  package func locked<R>(_ isCancelled: () -> Bool = { false }, _ body: () throws -> R) throws -> R {
    let lock = try lock(isCancelled)
    return try withExtendedLifetime(lock) { try body() }
  }

  /// Takes the session's lock. Creates the directory if it is missing.
  ///
  /// - Returns: the lock, released with the last reference.
  func lock(_ isCancelled: () -> Bool = { false }) throws -> SessionLock {
    while true {
      try DurableFile.makeDirectories(path)
      let directory = try check("open", path) { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
      let lock = SessionLock(directory)
      do {
        try wait(for: directory, path, isCancelled)
      } catch let failure as DiskError {
        guard failure.saysNoLocks else { throw failure }
        if let lock = try lockByFile({ try wait(for: $0, $1, isCancelled) }) { return lock }
        continue
      }
      // If the empty directory was removed while we waited, the lock is on nothing: try again.
      if try isSame(directory, path) { return lock }
    }
  }

  private func wait(for file: Int32, _ name: String, _ isCancelled: () -> Bool) throws {
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

  /// Like ``locked(_:_:)``, but fails if another process has the lock, and creates no directory.
  ///
  /// - Returns: nil where there is none.
  /// - Throws: ``SessionHeld``.
  package func lockedIfFree<R>(_ body: () throws -> R) throws -> R? {
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
    if directory < 0 && errno == ENOENT { return nil }
    guard directory >= 0 else { throw DiskError("open", path) }
    let lock = SessionLock(directory)
    func seize(_ file: Int32, _ name: String) throws {
      if flock(file, LOCK_EX | LOCK_NB) != 0 { throw errno == EWOULDBLOCK ? SessionHeld() : DiskError("flock", name) }
    }
    do {
      try seize(directory, path)
    } catch let failure as DiskError {
      guard failure.saysNoLocks else { throw failure }
      guard let lock = try lockByFile(seize) else { return nil }
      return try withExtendedLifetime(lock) { try body() }
    }
    return try withExtendedLifetime(lock) { try isSame(directory, path) ? body() : nil }
  }

  /// - Returns: nil when the file is not there any more once it is ours: the session has been removed.
  private func lockByFile(_ seize: (Int32, String) throws -> Void) throws -> SessionLock? {
    let name = path + "/.lock"
    let file = try check("open", name) { open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644) }
    let lock = SessionLock(file)
    try seize(file, name)
    return try isSame(file, name) ? lock : nil
  }

  /// Throws if the disk does not answer: a wrong answer would make us wait for our own lock.
  private func isSame(_ descriptor: Int32, _ path: String) throws(DiskError) -> Bool {
    var (opened, named) = (stat(), stat())
    try check("stat", path) { fstat(descriptor, &opened) }
    try check("stat", path) { lstat(path, &named) == 0 || errno == ENOENT ? 0 : -1 }
    return (opened.st_ino, opened.st_dev) == (named.st_ino, named.st_dev)
  }

  /// The starts of all published segments, in order.
  package func publishedStarts() throws -> [Int64] {
    guard try DurableFile.isDirectory(path) else { return [] }
    return try Directory(opening: path, followingLinks: false).entries()
      .compactMap { SegmentName.start(ofManifest: $0.name) }.sorted()
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
    for name in try orphans() {
      if let start = SegmentName.start(ofVideo: name), starts.contains(start) { continue }
      try check("unlink", path + "/" + name) { unlink(path + "/" + name) }
    }
  }

  /// Videos without a manifest.
  package func orphans() throws -> [String] {
    let names = try Directory(opening: path, followingLinks: false).entries().map(\.name)
    let published = Set(names.compactMap { SegmentName.start(ofManifest: $0) })
    return names.filter { SegmentName.start(ofVideo: $0).map { !published.contains($0) } ?? false }
  }

  /// The bytes of one of the session's files; nil when it is missing, or is not a plain file of that size.
  package func bytes(of name: String, limit: Int) throws -> [UInt8]? {
    let directory = try Directory(opening: path, followingLinks: false)
    guard case .bytes(let bytes)? = try directory.contents(of: name, limit: limit) else { return nil }
    return bytes
  }

  /// A published segment.
  package func segment(_ startMs: Int64) throws -> PublishedSegment { try manifest(startMs).segment }

  /// A published segment, and its manifest.
  package func manifest(_ startMs: Int64) throws -> (segment: PublishedSegment, json: JSONValue) {
    let name = SegmentName.manifest(startMs)
    guard let bytes = try bytes(of: name, limit: SegmentManifest.maximumBytes) else {
      throw DamagedOutput(path: path + "/" + name, cause: "not a readable file")
    }
    return try SegmentManifest.read(bytes, of: startMs, path: path + "/" + name)
  }

  /// All published segments, in order, with checked manifests.
  ///
  /// - Throws: ``BadSession`` where there is none, or one that overlaps another.
  func soundSegments() throws -> [PublishedSegment] {
    let segments = try publishedStarts().map { try soundManifest($0).segment }
    guard !segments.isEmpty else {
      throw BadSession(path, "no published segment", advice: "name a directory OUTPUT/SESSION")
    }
    if let overlap = SessionOrder.overlaps(of: segments).first { throw BadSession(overlap.file, overlap.what) }
    return segments
  }

  /// A published segment of this session, and its manifest, whose digest is checked.
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

  /// The file of a published segment.
  ///
  /// - Throws: ``BadSession`` when it is not the one the manifest describes.
  package func video(of segment: PublishedSegment) throws -> [UInt8] {
    guard let bytes = try bytes(of: segment.file, limit: min(segment.bytes, Self.maximumVideoBytes)) else {
      throw BadSession(segment.file, "missing, or not a plain file of its size")
    }
    guard bytes.count == segment.bytes, SHA256.hex(of: bytes) == segment.sha256 else {
      throw BadSession(segment.file, "not the file its manifest describes")
    }
    return bytes
  }

  /// Published segments that a batch shown from `range.lowerBound` to `range.upperBound` can touch.
  ///
  /// - Parameter note: the cache of the session; set to nil if it is wrong.
  package func segments(near range: Range<Int64>, _ note: inout SessionIndexCache?) throws -> [PublishedSegment] {
    do {
      let recent = note.flatMap { note in note.recent[0] < range.lowerBound ? note.recent : nil }
      return try segments(near: range, among: recent ?? publishedStarts())
    } catch is DamagedOutput where note != nil {
      // The operator has moved segments away.
      SessionIndexCache.forget(of: path)
      note = nil
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

/// A session's lock: no other worker publishes there as long as this exists.
final class SessionLock {
  private let descriptor: Int32

  /// Takes over a locked file.
  fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }
}

/// A file in the output that this program did not write: nothing is published over it.
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
