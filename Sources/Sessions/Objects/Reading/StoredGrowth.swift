import FileSystem
import FrameBatches

extension OutputGrowth {
  /// Looks at the objects of sessions in a store. The heads of the index tell which sessions have changed; if there are too many of them,
  /// some are looked at, and stand for all.
  ///
  /// - Parameters:
  ///   - lists: maximum number of lists that the store is asked for: half of them for the index. A longer index says nothing of a day.
  ///   - nowMs: unix milliseconds.
  ///   - check: called before each list; an error that it throws ends the work.
  /// - Throws: ``Failure`` for a list out of order; an error of the store.
  package init(
    of sessions: StoredSessions, lists: Int = 250, nowMs: Int64 = WallClock.nowMs, check: () throws -> Void = {}
  ) throws {
    var seen = Seen(atMs: nowMs)
    guard let changed = try Self.changed(in: sessions, lists: lists / 2, &seen, check) else {
      self.init(bytesADay: nil, objectsADay: nil, isEstimate: false)
      return
    }
    var (whole, left) = (0, lists - lists / 2)
    // In any order: IDs that begin alike may be of one kind.
    for id in changed.shuffled() {
      // A session that is cut off stands for none.
      var (session, isWhole) = (seen, false)
      var walk = sessions.walk(sessions.session(id).key(""))
      while left > 0, !isWhole {
        left -= 1
        try check()
        guard let page = try walk.next() else {
          isWhole = true
          break
        }
        for object in page { session.add(object.size, cameMs: nowMs - 1_000 * Int64(object.ageS ?? 0)) }
      }
      guard isWhole else { break }
      (seen, whole) = (session, whole + 1)
    }
    let share = Double(whole) / Double(max(1, changed.count))
    self.init(
      bytesADay: whole > 0 ? seen.bytesADay(share: share) : nil,
      objectsADay: whole > 0 ? seen.objectsADay(share: share) : nil, isEstimate: whole < changed.count)
  }

  /// Returns the sessions whose head was written in the last day; nil if the index is too long, or the store tells no ages.
  private static func changed(
    in sessions: StoredSessions, lists: Int, _ seen: inout Seen, _ check: () throws -> Void
  ) throws -> [SessionID]? {
    let (prefix, head) = ("index/", "/head.json")
    var walk = sessions.walk(prefix)
    var found: [SessionID] = []
    for _ in 0..<lists {
      try check()
      guard let page = try walk.next() else { return found }
      for object in page where object.key.hasSuffix(head) {
        guard let id = SessionID(String(object.key.dropFirst(prefix.count).dropLast(head.count))) else { continue }
        guard let ageS = object.ageS else { return nil }
        if Int64(ageS) * 1_000 <= dayMs { found.append(id) } else { seen.isOlder = true }
      }
    }
    return nil
  }
}
