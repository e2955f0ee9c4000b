// The end of a session in an object store: a member of its head, which is written only if the head is unchanged.

import FileSystem
import FrameBatches

extension ObjectStore {
  private var requests: EndRequestObjects { EndRequestObjects(objects: objects) }

  package func requestEnd(_ request: EndRequest) throws -> EndRequestOutcome {
    let session = session(request.session)
    guard let end = try session.head().end else {
      try requests.add(request)
      return .requested
    }
    return try requests.isThere(session.id) && !session.showsEnd() ? .requested : .alreadyEnded(end)
  }

  package func knows(_ id: SessionID) throws -> Bool { try session(id).head().published != nil }

  package func endRequests() throws -> [SessionID] { try requests.sessions() }

  package func takeEndRequest(
    of session: SessionID, unless waits: (EndRequest) throws -> Bool
  ) throws -> HeldEndRequest? {
    try requests.take(session, unless: waits)
  }

  package func removeEndRequest(_ held: HeldEndRequest) throws {
    guard case .object(let tag) = held.hold else { return }
    try requests.remove(held.request.session, tag)
  }

  /// A scan lists objects, which takes time and costs money.
  package var endScanMs: Int { 60_000 }

  package func end(
    _ id: SessionID, _ cause: SessionEnd.Cause, ifQuietForMs quietMs: Int64?, cancellation: Cancellation
  ) throws -> EndOutcome {
    let session = session(id)
    return try session.removingObjectsIfDeleted {
      if let quietMs, try session.head().end == nil, try !isQuiet(session, forMs: quietMs) { return .goesOn }
      guard
        let (end, published) = try session.recordEnd(
          SessionEnd(id, cause, endedMs: WallClock.nowMs), cancellation: cancellation)
      else {
        return .unknown
      }
      try session.updateViews(published, events())
      try updatePackages(of: session, evenWithoutHLS: true)
      try openSessions?.close(id)
      let traceParent = try session.traceParent(of: published.index.last)
      return .ended(EndedSession(end, published.index, traceParent: traceParent))
    }
  }

  package func quietSessions(forMs quietMs: Int64) throws -> [SessionID] {
    try openSessions?.quiet(forMs: Int(clamping: quietMs)) { id in
      let session = session(id)
      guard try isQuiet(session, forMs: quietMs) else { return false }
      do {
        if try session.head().end == nil { return true }
      } catch is SessionDeleted {
        // It does not go on.
      }
      try openSessions?.close(id)
      return false
    } ?? []
  }

  /// Whether nothing of a session was published for some time: only a publication and the end write its head.
  private func isQuiet(_ session: ObjectSession, forMs quietMs: Int64) throws -> Bool {
    try objects.head(session.headKey)?.ageS.map { Int64($0) * 1_000 >= quietMs } ?? false
  }
}

extension ObjectSession {
  /// Returns the step of a trace that a segment's batch has stated. A damaged manifest does not hold up the end: it tells none.
  fileprivate func traceParent(of entry: SessionEntry) throws -> TraceParent? {
    do {
      return try SegmentManifest.traceParent(in: manifest(entry).json)
    } catch is DamagedOutput {
      return nil
    }
  }
}
