// The end of a session in a directory. All of it happens under the session's lock: the marker of outdated views, the record, the
// views. After a crash the marker makes the next worker update the views, and the request makes it announce the end.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Synchronization

extension DirectoryStore {
  private var requests: EndRequestFiles { EndRequestFiles(output: staging.output) }

  package func requestEnd(_ request: EndRequest) throws -> EndRequestOutcome {
    let directory = SessionDirectory(output: staging.output, session: request.session)
    if let end = try directory.recordedEnd(), try directory.showsEnd() { return .alreadyEnded(end) }
    try requests.add(request, temporary: staging.temporaryFile())
    return .requested
  }

  package func knows(_ session: SessionID) throws -> Bool {
    try !SessionDirectory(output: staging.output, session: session).publishedStarts().isEmpty
  }

  package func endRequests() throws -> [SessionID] { try requests.sessions() }

  package func takeEndRequest(
    of session: SessionID, unless waits: (EndRequest) throws -> Bool
  ) throws -> HeldEndRequest? {
    try requests.take(session, unless: waits)
  }

  package func removeEndRequest(_ held: HeldEndRequest) throws {
    guard case .file(let file) = held.hold else { return }
    try requests.remove(file, of: held.request.session)
  }

  package var endScanMs: Int { 1_000 }

  package func end(
    _ session: SessionID, _ cause: SessionEnd.Cause, ifQuietForMs quietMs: Int64?, cancellation: Cancellation
  ) throws -> EndOutcome {
    let directory = SessionDirectory(output: staging.output, session: session)
    // Without a segment there is no session that could end.
    guard try !directory.publishedStarts().isEmpty else {
      try SessionTombstones(output: staging.output).requireNone(of: session)
      return .unknown
    }
    return try directory.locked(cancellation) {
      if let quietMs, try directory.recordedEnd() == nil, try !isQuiet(directory, forMs: quietMs) { return .goesOn }
      try index.record(SessionEnd(session, cause, endedMs: WallClock.nowMs), staging.temporaryFile(), in: directory)
      // The record has made the cache invalid, unless it is old and the views were written since, or are deferred.
      let cache = index.cache(of: directory)
      if cache?.behind.isEmpty != true { try index.update(directory, cache, temporary: staging.temporaryFile()) }
      return .ended(try directory.endedSession())
    }
  }

  package func quietSessions(forMs quietMs: Int64) throws -> [SessionID] {
    guard DurableFile.isReachableDirectory(staging.output) else { return [] }
    let open = try Directory(opening: staging.output).entries().filter { $0.kind == .directory }
      .compactMap { SessionID($0.name) }.filter { !DurableFile.exists("\(staging.output)/\($0)/\(SessionEnd.file)") }
    publications.keep(open)
    return try open.filter { session in
      try isQuiet(SessionDirectory(output: staging.output, session: session), forMs: quietMs)
    }
  }

  /// Whether nothing of a session was published for some time.
  private func isQuiet(_ directory: SessionDirectory, forMs quietMs: Int64) throws -> Bool {
    let sinceMs = WallClock.nowMs - quietMs
    if let known = publications[directory.session], known > sinceMs { return false }
    let latest = try directory.publication(since: sinceMs + 1)
    publications[directory.session] = latest
    return latest == nil && DurableFile.exists(directory.path + "/" + IndexText.jsonFile)
  }
}

/// The last publications in sessions that go on, as far as a search for quiet ones has seen them, in unix milliseconds. A session is
/// not searched before it can be quiet.
final class KnownPublications: Sendable {
  private let known = Mutex<[SessionID: Int64]>([:])

  subscript(session: SessionID) -> Int64? {
    get { known.withLock { $0[session] } }
    set { known.withLock { $0[session] = newValue } }
  }

  /// Forgets all other sessions.
  func keep(_ sessions: [SessionID]) {
    let kept = Set(sessions)
    known.withLock { $0 = $0.filter { kept.contains($0.key) } }
  }
}

extension SessionDirectory {
  /// Whether its end is recorded, and no worker has to announce it any more. A session whose manifests are damaged cannot end.
  package func hasAnnouncedEnd() throws -> Bool {
    guard try !EndRequestFiles(output: DurableFile.parentDirectory(of: path)).isThere(session) else { return false }
    return try DurableFile.isThere(path + "/" + SessionEnd.file) || isDamaged()
  }

  /// Returns what is told of a session whose end is recorded, and whose views are up to date.
  func endedSession() throws -> EndedSession {
    let path = path + "/" + IndexText.jsonFile
    guard let end = try recordedEnd(), let json = try DurableFile.contents(of: path, limit: IndexText.maximumBytes),
      let ended = EndedSession(end, json, traceParent: try lastTraceParent())
    else { throw DamagedOutput(path: path, cause: "not as this program writes it") }
    return ended
  }

  /// Whether the manifests cannot be read, or there are none.
  fileprivate func isDamaged() throws -> Bool {
    do {
      return try publishedStarts().map(segment).isEmpty
    } catch is DamagedOutput {
      return true
    }
  }

  /// Returns the step of a trace that the last segment's batch has stated. A damaged manifest does not hold up the end: it tells none.
  fileprivate func lastTraceParent() throws -> TraceParent? {
    guard let last = try publishedStarts().last else { return nil }
    do {
      return try SegmentManifest.traceParent(in: manifest(last).json)
    } catch is DamagedOutput {
      return nil
    }
  }

  /// Whether the views show that the session has ended. They do not if a failure came between the record and them.
  fileprivate func showsEnd() throws -> Bool {
    guard try indexHead()?.isComplete == true else { return false }
    let hls = path + "/" + HLSPackage.directory
    guard try DurableFile.isDirectory(hls) else { return true }
    return try HLSPackage(path: hls, temporary: "").text().map(HLSPlaylist.hasEnded) ?? false
  }
}

extension SessionViews {
  /// Ends a session that a rule is about to remove, and asks the workers to announce that. Call it with the session locked.
  ///
  /// - Returns: false if it has ended, is about to, or is damaged.
  package func endIfOpen(_ directory: SessionDirectory, _ temporary: () throws -> String) throws -> Bool {
    let requests = EndRequestFiles(output: DurableFile.parentDirectory(of: directory.path))
    guard try !requests.isThere(directory.session), try !directory.hasAnnouncedEnd() else { return false }
    // First the request: a crash behind the record loses no announcement.
    try requests.add(EndRequest(directory.session, .quiet), temporary: temporary())
    try record(SessionEnd(directory.session, .quiet, endedMs: WallClock.nowMs), temporary(), in: directory)
    try update(directory, temporary: temporary())
    return true
  }

  /// Records the end of a session, unless it is recorded. Call it with the session locked, and update its views afterwards.
  ///
  /// - Parameter temporary: a file name to write under, on the same file system.
  /// - Returns: whether the record is new.
  @discardableResult
  package func record(_ end: SessionEnd, _ temporary: String, in directory: SessionDirectory) throws -> Bool {
    let record = directory.path + "/" + SessionEnd.file
    if try DurableFile.isThere(record) { return false }
    try mark(directory)
    if announcesEnds, end.cause == .final {
      try EndRequestFiles(output: DurableFile.parentDirectory(of: directory.path))
        .add(EndRequest(directory.session, end.cause), temporary: temporary)
    }
    try DurableFile.replace(record, end.bytes, temporary: temporary)
    try Directory(opening: directory.path).sync()
    return true
  }
}
