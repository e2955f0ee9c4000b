// The sessions of an output, for viewers. Read only, and safe beside workers. Sessions are cached until their files change.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Synchronization

/// An entry of the session list.
public struct SessionSummary: Sendable, Equatable {
  /// The session's name.
  public let session: SessionID
  /// The start in unix milliseconds; nil if the session cannot be read: ``error`` has the reason.
  public let startMs: Int64?
  /// The end in unix milliseconds; nil if the session cannot be read.
  public let endMs: Int64?
  /// The number of frames.
  public let frames: Int
  /// The number of segments.
  public let segments: Int
  /// The number of gaps between segments.
  public let gaps: Int
  /// The size of all segments, in bytes.
  public let bytes: Int
  /// Whether the segment that ends the session is published.
  public let isComplete: Bool
  /// The reason why the session cannot be read; nil if it can.
  public let error: String?
}

/// Reads an output that workers write to at the same time. For any thread.
public final class SessionCatalog: Sendable {
  /// The output's path.
  public let output: String
  private let decoders: DecoderForkServer?
  private let summaries = Mutex<[String: (stamp: FileStamp, summary: SessionSummary)]>([:])
  private struct CachedPlayback {
    let stamp: [FileStamp?]
    let playback: SessionPlayback
    let entries: [Int64: SessionPlayback.Entry]
  }

  /// The session requested last comes last.
  private let playbacks = Mutex<[CachedPlayback]>([])
  /// The starts of the segments of some sessions, the one requested last at the end.
  private let listings = Mutex<[(session: SessionID, stamp: [FileStamp?], startsMs: [Int64])]>([])
  /// Only one session is read at a time, because a long one takes memory.
  private let reading = Mutex<Void>(())
  private let listing = Mutex<Void>(())

  /// Maximum number of cached segments of all sessions. The session requested last is always cached.
  private static let maximumCachedSegments = 20_000
  private static let maximumListings = 8

  /// - Parameter decoders: the sandbox; nil to read trusted segments in this process.
  /// - Throws: `DiskError` if there is no such directory.
  public init(of output: String, decoders: DecoderForkServer? = nil) throws {
    self.decoders = decoders
    self.output = DurableFile.resolved(output)
    _ = try Directory(opening: self.output)
  }

  /// Throws if the output cannot be read. Its cost does not depend on the size of the output.
  package func requireOutput() throws(DiskError) { _ = try Directory(opening: output) }

  /// Whether the directory is a spool without sessions.
  public func isSpool() throws -> Bool {
    try DurableFile.isDirectory(output + "/incoming") && DurableFile.isDirectory(output + "/tmp") && sessions().isEmpty
  }

  // MARK: - All sessions

  /// Returns all sessions, the newest first.
  public func sessions() throws -> [SessionSummary] {
    try listing.withLock { _ in
      let directory = try Directory(opening: output)
      let known = summaries.withLock { $0 }
      let deleted = try tombstones.sessions()
      var found: [String: (stamp: FileStamp, summary: SessionSummary)] = [:]
      for entry in try directory.entries() where entry.kind == .directory {
        guard let session = SessionID(entry.name), !deleted.contains(session),
          let stamp = directory.stamp(of: entry.name + "/" + SessionView.jsonFile)
        else { continue }
        let cached = known[entry.name].flatMap { $0.stamp == stamp ? $0 : nil }
        found[entry.name] = cached ?? (stamp, SessionSummary(session, in: directory))
      }
      summaries.withLock { $0 = found }
      return found.values.map(\.summary).sorted {
        ($0.startMs ?? .max, $0.session.description) > ($1.startMs ?? .max, $1.session.description)
      }
    }
  }

  /// Returns all sessions as JSON (`session-list/1`), the newest first.
  public func list() throws -> [UInt8] {
    let sessions = try sessions()
    return JSONValue.object([
      "format": .string("session-list/1"), "sessions": .array(sessions.map(\.json)),
    ]).bytes() + [UInt8(ascii: "\n")]
  }

  /// Free bytes on the output's file system.
  public func freeBytes() throws -> Int { try DurableFile.freeBytes(at: output) }

  // MARK: - One session

  private var tombstones: SessionTombstones { SessionTombstones(output: output) }

  /// Returns the tombstone of a session; nil if it was not deleted.
  package func tombstone(of session: SessionID) throws -> Tombstone? { try tombstones.tombstone(of: session) }

  /// Returns a session as it is now; nil if it has no segment, or was deleted.
  public func playback(of session: SessionID) throws -> SessionPlayback? {
    guard try tombstone(of: session) == nil, let stamp = try stamp(of: session) else { return nil }
    if let known = known(session), known.stamp == stamp { return known.playback }
    return try reading.withLock { _ in
      let known = known(session)
      if let known, known.stamp == stamp { return known.playback }
      return try read(session, stamp, cached: known?.entries ?? [:])
    }
  }

  /// Returns the frame on screen at an instant; nil if there is no such session. It reads the manifests of three segments at most.
  ///
  /// - Throws: ``NothingOnScreen``; ``BadSession``, ``DamagedOutput`` if a manifest is not as it was written.
  package func frame(of session: SessionID, at instant: SessionInstant) throws -> SessionFrame? {
    guard let stamp = try stamp(of: session) else { return nil }
    let directory = SessionDirectory(output: output, session: session, decoders: decoders)
    let cached = listings.withLock { $0.first { $0.session == session && $0.stamp == stamp }?.startsMs }
    let startsMs = try cached ?? directory.publishedStarts()
    listings.withLock { listings in
      listings.removeAll { $0.session == session }
      listings.append((session, stamp, startsMs))
      if listings.count > Self.maximumListings { listings.removeFirst() }
    }
    return startsMs.isEmpty ? nil : try SessionFrame(of: directory, at: instant, startsMs: startsMs)
  }

  /// Opens `session.json`, `session.ffconcat`, a video or a manifest.
  ///
  /// - Returns: nil for any other name, or if there is no plain file.
  package func file(_ name: String, of session: SessionID) throws -> OpenFile? {
    let isOurs =
      name == SessionView.jsonFile || name == SessionView.scriptFile || SegmentName.start(ofVideo: name) != nil
      || SegmentName.start(ofManifest: name) != nil
    guard isOurs, try DurableFile.isDirectory(output + "/" + session.description) else { return nil }
    let directory = try Directory(opening: output + "/" + session.description, followingLinks: false)
    return try OpenFile(name, in: directory)
  }

  private func known(_ session: SessionID) -> CachedPlayback? {
    playbacks.withLock { playbacks in
      guard let index = playbacks.firstIndex(where: { $0.playback.session == session }) else { return nil }
      let found = playbacks.remove(at: index)
      playbacks.append(found)
      return found
    }
  }

  private func read(
    _ session: SessionID, _ stamp: [FileStamp?], cached: [Int64: SessionPlayback.Entry]
  ) throws -> SessionPlayback? {
    let directory = SessionDirectory(output: output, session: session, decoders: decoders)
    let opened = try Directory(opening: directory.path, followingLinks: false)
    let names = try opened.entries().map(\.name)
    var problems: [Problem] = []
    let entries = names.compactMap { SegmentName.start(ofManifest: $0) }.sorted().compactMap { start in
      let stamp = opened.stamp(of: SegmentName.manifest(start))
      if let entry = cached[start], entry.stamp == stamp { return entry as SessionPlayback.Entry? }
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
      playbacks.append(CachedPlayback(stamp: stamp, playback: playback, entries: byStart))
      while playbacks.count > 1, playbacks.reduce(0, { $0 + $1.entries.count }) > Self.maximumCachedSegments {
        playbacks.removeFirst()
      }
    }
    return playback
  }

  /// Returns a stamp that changes with the session; nil if there is no session.
  private func stamp(of session: SessionID) throws -> [FileStamp?]? {
    let directory = try Directory(opening: output)
    guard try DurableFile.isDirectory(output + "/" + session.description),
      let own = directory.stamp(of: session.description)
    else { return nil }
    return [own, directory.stamp(of: session.description + "/" + SessionView.jsonFile)]
  }
}

extension SessionSummary {
  /// - Parameter output: the directory that has the session's.
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
    let (startMs, endMs) = (try json.count("startMs"), try json.count("endMs"))
    guard startMs <= endMs else { throw JSONError("endMs: before startMs") }
    self.init(
      session: session, startMs: startMs, endMs: endMs, frames: Int(try json.count("frames")), segments: segments,
      gaps: gaps, bytes: Int(try json.count("bytes")), isComplete: try json.required("complete", .bool), error: nil)
  }

  /// Returns the members but the lists, and the lengths of those. Long lists of our own are counted only.
  private static func parse(
    _ bytes: [UInt8], of session: SessionID
  ) throws(JSONError) -> (json: JSONValue, gaps: Int, segments: Int) {
    if bytes.count > 1 << 20, let parts = SessionView.parts(of: bytes, session: session) {
      return (parts.members, parts.gapCount, parts.segmentCount)
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
