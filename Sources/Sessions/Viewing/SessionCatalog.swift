// The sessions of an output, for viewers. Read only, and safe beside workers; what was read is kept for as long as
// the files are the same.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Synchronization

/// An entry of the session list.
public struct SessionSummary: Sendable, Equatable {
  public let session: SessionID
  /// nil when it cannot be read; then ``error`` says why.
  public let startMs: Int64?
  public let endMs: Int64?
  public let frames: Int
  public let segments: Int
  public let gaps: Int
  public let bytes: Int
  /// Whether the segment that ends the session is there.
  public let isComplete: Bool
  public let error: String?
}

/// Reads an output that workers write to at the same time. For any thread.
public final class SessionCatalog: Sendable {
  /// The output's path.
  public let output: String
  private let decoders: DecoderForkServer?
  private let summaries = Mutex<[String: (stamp: FileStamp, summary: SessionSummary)]>([:])
  private let playbacks = Mutex<
    [(stamp: [FileStamp?], playback: SessionPlayback, entries: [Int64: SessionPlayback.Entry])]
  >([])
  /// One at a time is read: a long one takes memory.
  private let reading = Mutex<Void>(())
  private let listing = Mutex<Void>(())

  /// Segments that are kept in memory, of all sessions; the session asked for last is kept whatever it has.
  private static let keptSegments = 20_000

  /// - Parameter decoders: where segments are read; nil for right here, for those that can be trusted.
  /// - Throws: `DiskError` when there is no such directory.
  public init(of output: String, decoders: DecoderForkServer? = nil) throws {
    self.decoders = decoders
    self.output = DurableFile.resolved(output)
    _ = try Directory(opening: self.output)
  }

  /// Throws where the output cannot be read. Its cost does not depend on the size of the output.
  package func requireOutput() throws(DiskError) { _ = try Directory(opening: output) }

  /// Whether it is rather a spool, with its sessions in another place.
  public func isSpool() throws -> Bool {
    try DurableFile.isDirectory(output + "/incoming") && DurableFile.isDirectory(output + "/tmp") && sessions().isEmpty
  }

  // MARK: - All

  /// All sessions, the newest first.
  public func sessions() throws -> [SessionSummary] { try listing.withLock { _ in try look() } }

  private func look() throws -> [SessionSummary] {
    let directory = try Directory(opening: output)
    let names = try directory.entries().filter { $0.kind == .directory }.compactMap { SessionID($0.name) }
    let known = summaries.withLock { $0 }
    var found: [String: (stamp: FileStamp, summary: SessionSummary)] = [:]
    for session in names {
      let path = session.description + "/" + SessionView.jsonFile
      guard let stamp = directory.stamp(of: path) else { continue }
      if let there = known[session.description], there.stamp == stamp {
        found[session.description] = there
      } else {
        found[session.description] = (stamp, SessionSummary(session, in: directory))
      }
    }
    summaries.withLock { $0 = found }
    return found.values.map(\.summary).sorted {
      ($0.startMs ?? .max, $0.session.description) > ($1.startMs ?? .max, $1.session.description)
    }
  }

  /// The same as JSON.
  public func list() throws -> [UInt8] {
    let sessions = try sessions()
    return JSONValue.object([
      "format": .string("session-list/1"), "sessions": .array(sessions.map(\.json)),
    ]).bytes() + [UInt8(ascii: "\n")]
  }

  /// Free bytes on the output's file system.
  public func freeBytes() throws -> Int { try DurableFile.freeBytes(at: output) }

  // MARK: - One

  /// A session as it is now.
  ///
  /// - Returns: nil when there is none with a segment.
  public func playback(of session: SessionID) throws -> SessionPlayback? {
    guard let stamp = try stamp(of: session) else { return nil }
    if let known = known(session), known.stamp == stamp { return known.playback }
    return try reading.withLock { _ in
      let known = known(session)
      if let known, known.stamp == stamp { return known.playback }
      return try read(session, stamp, known: known?.entries ?? [:])
    }
  }

  /// A file of a session: `session.json`, `session.ffconcat`, and segments with their manifests.
  ///
  /// - Returns: nil for any other name, and where there is no plain file of it.
  package func file(_ name: String, of session: SessionID) throws -> OpenFile? {
    let isOurs =
      name == SessionView.jsonFile || name == SessionView.scriptFile || SegmentName.start(ofVideo: name) != nil
      || SegmentName.start(ofManifest: name) != nil
    guard isOurs, try DurableFile.isDirectory(output + "/" + session.description) else { return nil }
    let directory = try Directory(opening: output + "/" + session.description, followingLinks: false)
    return try OpenFile(name, in: directory)
  }

  /// The one asked for last comes last.
  private func known(
    _ session: SessionID
  ) -> (stamp: [FileStamp?], playback: SessionPlayback, entries: [Int64: SessionPlayback.Entry])? {
    playbacks.withLock { playbacks in
      guard let index = playbacks.firstIndex(where: { $0.playback.session == session }) else { return nil }
      let found = playbacks.remove(at: index)
      playbacks.append(found)
      return found
    }
  }

  private func read(
    _ session: SessionID, _ stamp: [FileStamp?], known: [Int64: SessionPlayback.Entry]
  ) throws -> SessionPlayback? {
    let directory = SessionDirectory(output: output, session: session, decoders: decoders)
    let place = try Directory(opening: directory.path, followingLinks: false)
    let names = try place.entries().map(\.name)
    var problems: [Problem] = []
    let entries = names.compactMap { SegmentName.start(ofManifest: $0) }.sorted().compactMap { start in
      let stamp = place.stamp(of: SegmentName.manifest(start))
      if let entry = known[start], entry.stamp == stamp { return entry as SessionPlayback.Entry? }
      do {
        return try SessionPlayback.Entry(start, of: directory, stamp)
      } catch {
        problems.append(Problem(file: SegmentName.manifest(start), what: "\(error)"))
        return nil
      }
    }
    guard !entries.isEmpty else {
      if let first = problems.first { throw BadSession(session.description, "\(first.what)") }
      return nil
    }
    let playback = SessionPlayback(
      of: directory, entries, videos: Set(names.filter { SegmentName.start(ofVideo: $0) != nil }), problems: problems)
    let byStart = Dictionary(uniqueKeysWithValues: entries.map { ($0.segment.startMs, $0) })
    playbacks.withLock { playbacks in
      playbacks.removeAll { $0.playback.session == session }
      playbacks.append((stamp, playback, byStart))
      while playbacks.count > 1, playbacks.reduce(0, { $0 + $1.entries.count }) > Self.keptSegments {
        playbacks.removeFirst()
      }
    }
    return playback
  }

  /// A stamp that changes with the session; nil if there is no session.
  private func stamp(of session: SessionID) throws -> [FileStamp?]? {
    let directory = try Directory(opening: output)
    guard try DurableFile.isDirectory(output + "/" + session.description),
      let own = directory.stamp(of: session.description)
    else { return nil }
    return [own, directory.stamp(of: session.description + "/" + SessionView.jsonFile)]
  }
}

extension SessionSummary {
  /// - Parameter output: where its directory is.
  init(_ session: SessionID, in output: Directory) {
    do {
      let directory = try Directory(opening: session.description, in: output)
      guard case .bytes(let bytes)? = try directory.contents(of: SessionView.jsonFile, limit: 64 << 20) else {
        throw JSONError("not a plain file")
      }
      self = try SessionSummary(session, bytes)
    } catch let error as JSONError {
      self.init(session, error: "\(SessionView.jsonFile): \(error); encoder-worker verify --repair makes it anew")
    } catch {
      self.init(session, error: "\(error)")
    }
  }

  private init(_ session: SessionID, error: String) {
    self.init(
      session: session, startMs: nil, endMs: nil, frames: 0, segments: 0, gaps: 0, bytes: 0, isComplete: false,
      error: error)
  }

  private init(_ session: SessionID, _ bytes: [UInt8]) throws(JSONError) {
    let (json, gaps, segments) = try Self.parse(bytes, of: session)
    // Bounds far above what we write, and far below what a sum of them could overflow.
    func number(_ key: String) throws(JSONError) -> Int64 {
      let value = try json.required(key, .integer)
      guard (0...(1 << 42)).contains(value) else { throw JSONError("\(key): out of range") }
      return value
    }
    let (startMs, endMs) = (try number("startMs"), try number("endMs"))
    guard startMs <= endMs else { throw JSONError("endMs: before startMs") }
    self.init(
      session: session, startMs: startMs, endMs: endMs, frames: Int(try number("frames")), segments: segments,
      gaps: gaps, bytes: Int(try number("bytes")), isComplete: try json.required("complete", .bool), error: nil)
  }

  /// - Returns: the members but the lists, and how long those are. Long lists of our own are counted only.
  private static func parse(
    _ bytes: [UInt8], of session: SessionID
  ) throws(JSONError) -> (json: JSONValue, gaps: Int, segments: Int) {
    func objects(in text: ArraySlice<UInt8>) -> Int { text.count { $0 == UInt8(ascii: "{") } }
    if bytes.count > 1 << 20, let parts = SessionView.parts(of: bytes, session: session) {
      return (parts.members, objects(in: parts.gaps), objects(in: parts.list))
    }
    guard bytes.count <= 4 << 20 else { throw JSONError("not as it was written") }
    let json = try JSONParser.parse(bytes)
    return (json, try json.required("gaps", .array).count, try json.required("segments", .array).count)
  }

  package var json: JSONValue {
    guard let startMs, let endMs else {
      return .object(["session": .string(session.description), "error": .string(error ?? "")])
    }
    return .object([
      "session": .string(session.description), "startMs": .number(startMs), "endMs": .number(endMs),
      "durationMs": .number(endMs - startMs), "frames": .number(frames), "segments": .number(segments),
      "gaps": .number(gaps), "bytes": .number(bytes), "complete": .bool(isComplete),
    ])
  }
}
