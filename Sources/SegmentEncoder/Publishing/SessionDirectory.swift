// `OUTPUT/SESSION`: what is published of one session, and how something is added to it. A segment is published when
// its manifest is there; the manifest comes last, and nothing that is there is ever replaced.

import Glibc

struct SessionDirectory {
  let session: SessionID
  let path: String

  init(output: String, session: SessionID) {
    self.session = session
    path = output + "/" + session.description
  }

  /// Lets one at a time check and publish. On a file system without locks on directories a file stands in.
  func locked<R>(_ body: () throws -> R) throws -> R {
    try DurableFile.makeDirectories(path)
    var descriptor = try check("open", path) { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) }
    defer { close(descriptor) }
    if flock(descriptor, LOCK_EX | LOCK_NB) != 0 && (errno == EBADF || errno == ENOLCK || errno == EOPNOTSUPP) {
      close(descriptor)
      let file = path + "/.lock"
      descriptor = try check("open", file) { open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644) }
    }
    try check("flock", path) { flock(descriptor, LOCK_EX) }
    return try body()
  }

  /// The starts of all published segments, in order.
  func publishedStarts() throws -> [Int64] {
    guard DurableFile.isDirectory(path) else { return [] }
    return try Directory(opening: path, followingLinks: false).entries()
      .compactMap { SegmentName.start(ofManifest: $0.name) }.sorted()
  }

  /// The manifest of a published segment.
  func manifest(_ startMs: Int64) throws -> SegmentManifest {
    try decodeManifest(SegmentManifest.self, startMs)
  }

  func summary(_ startMs: Int64) throws -> SegmentSummary {
    try decodeManifest(SegmentSummary.self, startMs)
  }

  /// Published segments that a batch shown from `range.lowerBound` to `range.upperBound` can touch.
  func manifests(near range: Range<Int64>) throws -> [SegmentManifest] {
    let starts = try publishedStarts()
    let first = starts.firstIndex { $0 >= range.lowerBound } ?? starts.endIndex
    // Segments overlap by less than they last, so only the one before can reach into the range.
    let candidates = starts[max(0, first - 1)...].prefix { $0 < range.upperBound }
    return try candidates.map(manifest)
  }

  private func decodeManifest<T: Decodable>(_ type: T.Type, _ startMs: Int64) throws -> T {
    let name = SegmentName.manifest(startMs)
    let directory = try Directory(opening: path, followingLinks: false)
    guard case .bytes(let bytes)? = try directory.contents(of: name, limit: 64 << 20) else {
      throw DamagedOutput(path: path + "/" + name, cause: "not a readable file")
    }
    do {
      return try JSONText.decode(type, from: bytes)
    } catch let error as DecodingError {
      throw DamagedOutput(path: path + "/" + name, cause: error.cause)
    }
  }
}

/// Something in the output that we did not write like this: nothing is published over it.
public struct DamagedOutput: Error, Equatable, CustomStringConvertible {
  public let path: String
  public let cause: String

  public var description: String { "read \(path): \(cause); move it away and run again" }
}
