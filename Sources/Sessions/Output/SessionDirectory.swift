// `OUTPUT/SESSION`: the published segments of one session, and checks of its files. A segment is published once its
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
  /// Its videos, if they are not in the directory.
  package let videos: (any VideoFiles)?

  package init(
    output: String, session: SessionID, decoders: DecoderForkServer? = nil, videos: (any VideoFiles)? = nil
  ) {
    self.session = session
    self.videos = videos
    path = output + "/" + session.description
    reader = VideoReader(decoders, owner: path)
  }

  /// A session by its own path.
  package init(at path: String, decoders: DecoderForkServer? = nil) throws {
    // Follow a link in the given path, but no links inside.
    let resolved = DurableFile.resolved(path)
    let id = SessionID(lastComponent(of: resolved))
    if let id, let deleted = try Self.deletion(of: id, at: resolved) {
      throw BadSession(path, deleted.what, advice: "name another session")
    }
    guard let session = id, try DurableFile.isDirectory(resolved) else {
      throw BadSession(path, "not a session's directory", advice: SessionAdvice.naming(insteadOf: path))
    }
    self.session = session
    self.path = resolved
    videos = nil
    reader = VideoReader(decoders, owner: resolved)
  }

  /// Whether a directory is that of a published session.
  package static func isSession(_ path: String) -> Bool {
    guard let entries = try? Directory(opening: path).entries() else { return false }
    return entries.contains { $0.name == IndexText.jsonFile || SegmentName.start(ofManifest: $0.name) != nil }
  }

  /// Returns the deletion of a session; nil if it was not deleted, or its output is missing.
  private static func deletion(of session: SessionID, at path: String) throws -> SessionDeleted? {
    let output = DurableFile.parentDirectory(of: path)
    guard DurableFile.isReachableDirectory(output) else { return nil }
    return try SessionTombstones(output: output).tombstone(of: session).map(SessionDeleted.init)
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
        of: resolved + "/" + IndexText.jsonFile, limit: IndexText.maximumBytes),
        String(decoding: bytes.prefix(512), as: UTF8.self).contains("\"session-manifest/1\"")
      {
        throw BadTarget(
          path: output, cause: "\(resolved) is a published session",
          advice: "name the directory that holds the sessions: \(DurableFile.parentDirectory(of: resolved))")
      }
      path = DurableFile.parentDirectory(of: path)
    }
  }

  /// Returns the starts of all published segments, in order.
  package func publishedStarts() throws -> [Int64] {
    guard try DurableFile.isDirectory(path) else { return [] }
    var starts: [Int64] = []
    try Directory(opening: path, followingLinks: false).visit { name in
      let bytes = UnsafeRawBufferPointer(start: name, count: strlen(name))
      if let start = SegmentName.start(ofManifest: bytes) { starts.append(start) }
    }
    if let retention = try retention() { starts.removeAll(where: retention.removes) }
    return starts.sorted()
  }

  /// Returns the start of the first segment that `session.ffconcat` lists, at a cost that does not depend on their number; or of
  /// all, if there is no such view. A view may be a moment behind the segments.
  ///
  /// - Returns: nil if there is no segment.
  package func firstStart() throws -> Int64? {
    let directory = try Directory(opening: path, followingLinks: false)
    if let script = try OpenFile(IndexText.scriptFile, in: directory) {
      var head = [UInt8](repeating: 0, count: 128)
      let count = head.withUnsafeMutableBytes { pread(script.descriptor, $0.baseAddress, $0.count, 0) }
      let lines = String(decoding: head.prefix(max(0, count)), as: UTF8.self).split(separator: "\n")
      if lines.count > 1, lines[1].hasPrefix("file "),
        let start = SegmentName.start(ofVideo: String(lines[1].dropFirst(5))),
        directory.stamp(of: SegmentName.manifest(start)) != nil
      {
        return start
      }
    }
    return try publishedStarts().first
  }

  /// Returns the start of the last segment that `session.ffconcat` lists, at a cost that does not depend on their number; or of all,
  /// if there is no such view. A view may be a moment behind the segments.
  ///
  /// - Returns: nil if there is no segment.
  package func lastStart() throws -> Int64? {
    let directory = try Directory(opening: path, followingLinks: false)
    if let script = try OpenFile(IndexText.scriptFile, in: directory) {
      // An entry has three lines at most.
      var tail = [UInt8](repeating: 0, count: 512)
      let offset = max(0, script.size - tail.count)
      let count = tail.withUnsafeMutableBytes { pread(script.descriptor, $0.baseAddress, $0.count, off_t(offset)) }
      let lines = String(decoding: tail.prefix(max(0, count)), as: UTF8.self).split(separator: "\n")
      if let entry = lines.last(where: { $0.hasPrefix("file ") }),
        let start = SegmentName.start(ofVideo: String(entry.dropFirst(5))),
        directory.stamp(of: SegmentName.manifest(start)) != nil
      {
        return start
      }
    }
    return try publishedStarts().last
  }

  /// See ``IndexText/head(of:)``.
  func indexHead() throws -> (bytes: Int, isComplete: Bool)? {
    let directory = try Directory(opening: path, followingLinks: false)
    guard case .bytes(let head)? = try directory.start(of: IndexText.jsonFile, count: 64) else { return nil }
    return IndexText.head(of: head)
  }

  /// Removes a file of the session, if it is there.
  func removeFile(_ name: String) throws(DiskError) {
    try check("unlink", path + "/" + name) { unlink(path + "/" + name) == 0 || errno == ENOENT ? 0 : -1 }
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

  /// Returns a published segment and its manifest as it was written, without the labels that came later.
  ///
  /// - Throws: ``DamagedOutput``.
  package func manifest(_ startMs: Int64) throws -> (segment: PublishedSegment, json: JSONValue) {
    try videos?.requireManifest(startMs)
    let name = SegmentName.manifest(startMs)
    guard let bytes = try bytes(of: name, limit: SegmentManifest.maximumBytes) else {
      throw DamagedOutput(path: path + "/" + name, cause: "not a readable file")
    }
    return try SegmentManifest.read(bytes, of: startMs, path: path + "/" + name)
  }

  /// Returns all published segments, in order. The digests of their manifests are checked.
  ///
  /// - Throws: ``BadSession`` if there are none, or if two overlap.
  package func soundSegments() throws -> [PublishedSegment] {
    let segments = try readingRetained { try publishedStarts().map { try soundManifest($0).segment } }
    guard !segments.isEmpty else {
      throw BadSession(path, "no published segment", advice: SessionAdvice.naming(insteadOf: path))
    }
    if let overlap = SessionOrder.overlaps(of: segments).first { throw BadSession(overlap.file, overlap.what) }
    return segments
  }

  /// Like ``manifest(_:)``, but checks the manifest's session and digest, and has the labels that came later.
  package func soundManifest(_ startMs: Int64) throws -> (segment: PublishedSegment, json: JSONValue) {
    let (segment, json, _) = try soundManifest(startMs, in: Directory(opening: path, followingLinks: false))
    return (segment, json)
  }

  /// Like ``soundManifest(_:)``, with the stamp of the file.
  ///
  /// - Parameter directory: that of the session. It is opened once for many segments.
  /// - Throws: ``BadSession``, ``DamagedOutput``. Labels that came later and cannot be read are left out: `verify` reports them.
  package func soundManifest(
    _ startMs: Int64, in directory: Directory
  ) throws -> (segment: PublishedSegment, json: JSONValue, stamp: FileStamp?) {
    try videos?.requireManifest(startMs)
    let name = SegmentName.manifest(startMs)
    let file = try directory.stampedContents(of: name, limit: SegmentManifest.maximumBytes)
    guard case .bytes(let bytes)? = file.contents else {
      throw DamagedOutput(path: path + "/" + name, cause: "not a readable file")
    }
    let (segment, json, seal) = try SegmentManifest.readSealed(bytes, of: startMs, path: path + "/" + name)
    guard json.object?["session"]?.string == session.description else {
      throw BadSession(path + "/" + name, "of another session")
    }
    guard seal == json.object?["manifestSha256"]?.string else {
      throw BadSession(path + "/" + name, "edited: its digest is another")
    }
    return (segment, try addedLabels(of: startMs, in: directory)?.joined(to: json) ?? json, file.stamp)
  }

  /// Returns the video of a published segment.
  ///
  /// - Throws: ``BadSession`` if it is not the one that the manifest describes.
  package func video(of segment: PublishedSegment) throws -> [UInt8] {
    guard let bytes = try videoBytes(of: segment, limit: min(segment.bytes, SegmentManifest.maximumVideoBytes)) else {
      throw BadSession(segment.file, "missing, or not a plain file of its size")
    }
    guard bytes.count == segment.bytes, SHA256.hex(of: bytes) == segment.sha256 else {
      throw BadSession(segment.file, "not the file its manifest describes")
    }
    return bytes
  }

  private func videoBytes(of segment: PublishedSegment, limit: Int) throws -> [UInt8]? {
    guard let videos else { return try bytes(of: segment.file, limit: limit) }
    guard let file = try videos.file(of: segment),
      case .bytes(let bytes) = try readRegularFile(file.descriptor, path: segment.file, limit: limit)
    else { return nil }
    return bytes
  }

  /// Opens the video of a published segment. Its bytes are not checked.
  ///
  /// - Returns: nil if there is no plain file.
  func openVideo(of segment: PublishedSegment) throws -> OpenFile? {
    if let videos { return try videos.file(of: segment) }
    return try OpenFile(segment.file, in: Directory(opening: path, followingLinks: false))
  }
}
