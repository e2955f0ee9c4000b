// The end of a session in a directory. All of it happens under the session's lock: the marker of outdated views, the record, the
// views. After a crash the marker makes the next worker update the views, and the request makes it announce the end.

import Encoding
import FileSystem
import FrameBatches
import Glibc

extension DirectoryStore {
  private var requests: EndRequestFiles { EndRequestFiles(output: staging.output) }

  package func requestEnd(_ request: EndRequest) throws -> EndRequestOutcome {
    let directory = SessionDirectory(output: staging.output, session: request.session)
    if let end = try directory.recordedEnd(), try directory.showsEnd() { return .alreadyEnded(end) }
    try requests.add(request, temporary: staging.temporaryFile())
    return .requested
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
      if let quietMs, try directory.recordedEnd() == nil, !isQuiet(session, forMs: quietMs) { return .goesOn }
      try index.record(SessionEnd(session, cause, endedMs: WallClock.nowMs), staging.temporaryFile(), in: directory)
      // The record has made the cache invalid, unless it is old and the views were written since, or are deferred.
      let cache = index.cache(of: directory)
      if cache?.behind.isEmpty != true { try index.update(directory, cache, temporary: staging.temporaryFile()) }
      let path = directory.path + "/" + IndexView.jsonFile
      guard let end = try directory.recordedEnd(),
        let json = try DurableFile.contents(of: path, limit: IndexView.maximumBytes),
        let ended = EndedSession(end, json)
      else { throw DamagedOutput(path: path, cause: "not as this program writes it") }
      return .ended(ended)
    }
  }

  package func quietSessions(forMs quietMs: Int64) throws -> [SessionID] {
    guard DurableFile.isReachableDirectory(staging.output) else { return [] }
    return try Directory(opening: staging.output).entries().filter { $0.kind == .directory }
      .compactMap { SessionID($0.name) }
      .filter { isQuiet($0, forMs: quietMs) && !DurableFile.exists("\(staging.output)/\($0)/\(SessionEnd.file)") }
  }

  /// Whether nothing of a session was published for some time: `session.json` is written with each publication, or a moment later.
  private func isQuiet(_ session: SessionID, forMs quietMs: Int64) -> Bool {
    var status = stat()
    guard lstat("\(staging.output)/\(session)/\(IndexView.jsonFile)", &status) == 0 else { return false }
    return WallClock.nowMs - WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) >= quietMs
  }
}

extension SessionDirectory {
  /// Whether the views show that the session has ended. They do not if a failure came between the record and them.
  fileprivate func showsEnd() throws -> Bool {
    guard try indexHead()?.isComplete == true else { return false }
    let hls = path + "/" + HLSPackage.directory
    guard try DurableFile.isDirectory(hls) else { return true }
    return try HLSPackage(path: hls, temporary: "").text().map(HLSPlaylist.hasEnded) ?? false
  }
}

extension SessionViews {
  /// Records the end of a session, unless it is recorded. Call it with the session locked, and update its views afterwards.
  ///
  /// - Parameter temporary: a file name to write under, on the same file system.
  /// - Returns: whether the record is new.
  @discardableResult
  func record(_ end: SessionEnd, _ temporary: String, in directory: SessionDirectory) throws -> Bool {
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
