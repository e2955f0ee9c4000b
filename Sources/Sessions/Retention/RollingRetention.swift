// Rolling retention: removes the first segments of an output's sessions, those that are too old, or the oldest of all until the
// sessions have room. Several workers and `prune` may do so at once: a session that another process holds is left for the next pass.

import FileSystem
import FrameBatches

/// The limits of the segments that stay in an output.
package struct RetentionLimits: Sendable, Equatable {
  /// The maximum age of a segment since its publication, in milliseconds; nil for no limit.
  package var ageMs: Int64?
  /// The bytes of the disk that all sessions may take; nil for no limit. Files of `hls/` that no playlist names any more are not among
  /// them: these may take a tenth more.
  package var maximumBytes: Int?

  package init(ageMs: Int64? = nil, maximumBytes: Int? = nil) {
    (self.ageMs, self.maximumBytes) = (ageMs, maximumBytes)
  }

  package var isEmpty: Bool { ageMs == nil && maximumBytes == nil }

  /// The time between two passes of a worker over a directory, in milliseconds: a minute, or for a long age a thousandth of it, an hour
  /// at most.
  package var intervalMs: Int {
    maximumBytes == nil ? Int(min(max((ageMs ?? 0) / 1_000, 60_000), 3_600_000)) : 60_000
  }

  /// The bytes up to which files of `hls/` keep the time that players have for them.
  static func most(of maximumBytes: Int) -> Int { maximumBytes + maximumBytes / 10 }

  /// A session without a publication for this time does not go on: for the limit of bytes it may be removed as a whole.
  static let idleMs: Int64 = 86_400_000
}

/// The result of a pass.
package struct RetentionReport: Sendable {
  /// By session, in the order of their names.
  package internal(set) var removed: [RemovedSegments] = []
  /// Sessions that another process holds.
  package internal(set) var held: [SessionID] = []
  /// Sessions that go as a whole once their ends are announced.
  package internal(set) var ending: Set<SessionID> = []
  package internal(set) var failures: [any Error] = []

  package var segments: Int { removed.reduce(0) { $0 + $1.segments } }
  package var bytes: Int { removed.reduce(0) { $0 + $1.bytes } }
  /// The latest end of a removed segment, in unix milliseconds; nil if there is none.
  package var untilMs: Int64? { removed.filter { $0.segments > 0 }.map(\.untilMs).max() }

  /// Adds what one rule has removed of a session, or would remove.
  mutating func add(_ new: RemovedSegments, _ isDryRun: Bool) {
    if new.isEnding { ending.insert(new.session) }
    guard new.segments > 0 else { return }
    guard let known = removed.firstIndex(where: { $0.session == new.session }) else { return removed.append(new) }
    // In a dry run, several rules may remove the same segments.
    if !isDryRun { removed[known].add(new) } else if new.segments > removed[known].segments { removed[known] = new }
  }

  mutating func sort() { removed.sort { $0.session.description < $1.session.description } }
}

package struct RollingRetention: Sendable {
  /// The number of times that a pass counts the bytes. The next pass goes on.
  private static let rounds = 64

  private let limits: RetentionLimits
  private let output: String
  private let views: SessionViews
  private let bytes: OutputBytes
  private let temporary: @Sendable () throws -> String
  private let shouldContinue: @Sendable () -> Bool

  /// - Parameters:
  ///   - temporary: returns a file name in the output's file system that no other process uses.
  ///   - shouldContinue: asked between files; if it returns false, the rest is left for the next pass.
  package init(
    _ limits: RetentionLimits, output: String, views: SessionViews, temporary: @escaping @Sendable () throws -> String,
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) {
    (self.limits, self.output, self.views) = (limits, output, views)
    bytes = OutputBytes(output: output)
    (self.temporary, self.shouldContinue) = (temporary, shouldContinue)
  }

  /// Removes what is beyond the limits, and finishes removals that were interrupted. Without limits it does only that.
  ///
  /// - Parameters:
  ///   - nowMs: in unix milliseconds.
  ///   - isDryRun: whether to remove nothing and only report.
  package func run(nowMs: Int64, isDryRun: Bool = false) -> RetentionReport {
    var report = RetentionReport()
    do {
      let entries = try Directory.entries(ifAt: output).filter { $0.kind == .directory }
      let sessions = entries.compactMap { SessionID($0.name) }
      if !isDryRun && !limits.isEmpty { removeHidden(among: entries, &report) }
      let age = limits.ageMs.map { RemovalRule.published(byMs: nowMs - $0) }
      for session in sessions where shouldContinue() { perform(age, on: session, isDryRun, &report) }
      if let maximum = limits.maximumBytes, shouldContinue() {
        let oldest = OldestSegments(
          sessions: SizedOutput(output: output, bytes: bytes), nowMs: nowMs, shouldContinue: shouldContinue)
        try removeOldest(oldest, of: sessions, beyond: maximum, isDryRun, &report)
        if !isDryRun { removeSuperseded(of: sessions, beyond: RetentionLimits.most(of: maximum), &report) }
        bytes.keep(sessions)
      }
    } catch {
      report.failures.append(error)
    }
    report.sort()
    return report
  }

  /// Removes the oldest segments. The bytes that go with a segment are an estimate, so all are counted again, and more are removed.
  private func removeOldest(
    _ oldest: OldestSegments<SizedOutput>, of sessions: [SessionID], beyond maximum: Int, _ isDryRun: Bool,
    _ report: inout RetentionReport
  ) throws {
    for _ in 0..<(isDryRun ? 1 : Self.rounds) {
      let before = report.segments
      for (session, rule) in try oldest.rules(for: sessions, maximumBytes: maximum) where shouldContinue() {
        perform(rule, on: session, isDryRun, &report)
      }
      guard report.segments > before, shouldContinue() else { return }
    }
  }

  /// Removes files of `hls/` that no playlist names, before their time: the limit of the disk comes before players that are late.
  private func removeSuperseded(of sessions: [SessionID], beyond most: Int, _ report: inout RetentionReport) {
    let sizes = sessions.compactMap { session in (try? bytes.bytes(of: session)).map { (session: session, bytes: $0) } }
    var all = sizes.reduce(0) { $0 + $1.bytes.all }
    for (session, size) in sizes.sorted(by: { $0.bytes.superseded > $1.bytes.superseded }) {
      guard all > most, size.superseded > 0, shouldContinue() else { return }
      do {
        let directory = SessionDirectory(output: output, session: session)
        let lists = SupersededLists(output: output, temporary: try temporary())
        if try directory.lockedIfFree({ try lists.removeDue(in: directory, atMs: .max) }) != nil {
          all -= size.superseded
        }
      } catch is SessionHeld {
        // The next pass removes them.
      } catch {
        report.failures.append(error)
      }
    }
  }

  /// Removes the sessions that are on their way out.
  private func removeHidden(among entries: [Directory.Entry], _ report: inout RetentionReport) {
    for entry in entries where SessionDirectory.isHidden(entry.name) {
      do {
        try SegmentRemoval.removeTree(output + "/" + entry.name, cancellation)
      } catch is Cancelled {
        return
      } catch {
        report.failures.append(error)
      }
    }
  }

  private var cancellation: Cancellation { Cancellation { [shouldContinue] in !shouldContinue() } }

  private func perform(
    _ rule: RemovalRule?, on session: SessionID, _ isDryRun: Bool, _ report: inout RetentionReport
  ) {
    var removed = RemovedSegments(session)
    do {
      let directory = SessionDirectory(output: output, session: session)
      if isDryRun {
        if let rule { try directory.preview(rule, &removed) }
      } else if try directory.retention()?.isRemoving == true || rule.map(directory.mayRemove) == true {
        let removal = SegmentRemoval(
          directory: directory, views: views, temporary: temporary, cancellation: cancellation)
        while try removal.step(rule, &removed), shouldContinue() {}
      }
    } catch is SessionHeld {
      report.held.append(session)
    } catch let error where error is Cancelled || error is SessionDeleted {
      // The next pass goes on; a deleted session has nothing to remove.
    } catch {
      report.failures.append(error)
    }
    report.add(removed, isDryRun)
  }
}

extension SessionDirectory {
  /// Whether a rule may remove a first segment, at a cost that does not depend on their number. The session is not locked.
  fileprivate func mayRemove(_ rule: RemovalRule) throws -> Bool {
    try firstStart().map { try rule.removes($0, of: self) } ?? false
  }

  fileprivate func preview(_ rule: RemovalRule, _ removed: inout RemovedSegments) throws {
    let starts = try publishedStarts()
    let isOver = try isOver(rule, starts)
    removed.isWhole = try isOver && hasAnnouncedEnd()
    removed.isEnding = isOver && !removed.isWhole
    removed.add(
      try removed.isWhole ? starts.map(segment) : firstSegments(rule, of: starts, limit: .max))
  }
}
