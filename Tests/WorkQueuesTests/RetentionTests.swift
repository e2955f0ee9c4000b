import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import Sessions
@testable import WorkQueues

/// Removal by age.
@Suite struct RetentionTests {
  private static let dayMs: Int64 = 86_400_000

  private let scratch: ScratchDirectory
  private let spool: Spool
  private let output: String

  init() throws {
    scratch = try ScratchDirectory()
    spool = try Spool(creating: scratch.path("spool"))
    output = spool.defaultOutput
    _ = try scratch.directory("spool/done/kept")
    try scratch.file("spool/done/kept/1.jpg", [1, 2, 3])
    try scratch.file("spool/quarantine/bad", [1, 2, 3, 4])
    try scratch.file("spool/quarantine/bad.reason.json", Array(#"{"format":"quarantine-reason/1","worker":"x"}"#.utf8))
    try session("walk", names: ["segment-1767859512340.mp4", "segment-1767859512340.json", "session.json"])
  }

  private func session(_ name: String, names: [String]) throws {
    _ = try scratch.directory("spool/output/\(name)")
    for file in names { try scratch.file("spool/output/\(name)/\(file)", Array("12345".utf8)) }
  }

  private func state(_ path: String) -> stat {
    var state = stat()
    lstat(path, &state)
    return state
  }

  private func cameMs(_ path: String) -> Int64 {
    let time = state(path).st_ctim
    return WallClock.unixMs(time.tv_sec, time.tv_nsec)
  }

  private func setTime(_ path: String, unixMs: Int64) {
    let time = timespec(tv_sec: Int(unixMs / 1_000), tv_nsec: Int(unixMs % 1_000) * 1_000_000)
    #expect(utimensat(AT_FDCWD, path, [time, time], AT_SYMLINK_NOFOLLOW) == 0)
  }

  /// Prunes with a maximum age of one day, at a time two days from now. By default, everything is older.
  private func prune(
    kept: Int64? = dayMs, quarantined: Int64? = dayMs, sessions: Int64? = dayMs, at nowMs: Int64? = nil,
    isDryRun: Bool = false
  ) -> Pruning.Result {
    var retention = Retention(nowMs: nowMs ?? Int64(time(nil)) * 1_000 + 2 * Self.dayMs)
    (retention.keptMs, retention.quarantinedMs, retention.sessionsMs) = (kept, quarantined, sessions)
    return Pruning(spool: spool, output: nil, retention: retention, isDryRun: isDryRun)
      .run(with: HeartbeatMonitor(lease: 10))
  }

  private func isThere(_ name: String) -> Bool { DurableFile.exists(spool.path + "/" + name) }

  @Test func olderBatchIsRemovedWithItsBytes() throws {
    let result = prune()
    #expect(result.failures.isEmpty && result.skipped.isEmpty)
    #expect(result.pruned.map(\.path) == ["done/kept", "quarantine/bad", "output/walk"].map { spool.path + "/" + $0 })
    #expect(result.pruned.map(\.bytes) == [3, 4, 15])
    for place in ["done", "quarantine", "output", "trash"] { #expect(try names(in: spool.path + "/" + place).isEmpty) }
  }

  @Test func extremeFileTimesDoNotOverflow() {
    for seconds in [Int.min, -1, 0, 1 << 60, Int.max] {
      let ms = WallClock.unixMs(seconds, 999_999_999)
      #expect(ms.subtractingReportingOverflow(-(1 << 60)).overflow == false)
    }
    #expect(WallClock.unixMs(12, 345_000_000) == 12_345)
  }

  @Test func directoriesWithoutAMaximumAgeAreNotPruned() throws {
    #expect(prune(kept: nil, quarantined: nil, sessions: nil).pruned.isEmpty)
    #expect(isThere("done/kept/1.jpg") && isThere("quarantine/bad") && isThere("output/walk/session.json"))
    #expect(prune(kept: nil, sessions: nil).pruned.map(\.path) == [spool.quarantine + "/bad"])
  }

  @Test(arguments: ["done/kept", "quarantine/bad"])
  func batchIsPrunedOneMillisecondAfterItsMaximumAge(batch: String) {
    let firstMs = cameMs(spool.path + "/" + batch)
    // The producer's modification time does not count.
    setTime(spool.path + "/" + batch, unixMs: 1_000_000_000_000)
    let laterMs = cameMs(spool.path + "/" + batch)
    #expect(laterMs >= firstMs)
    _ = prune(sessions: nil, at: laterMs + Self.dayMs)
    #expect(isThere(batch))
    _ = prune(sessions: nil, at: laterMs + Self.dayMs + 1)
    #expect(!isThere(batch))
  }

  @Test func ageOfASessionCountsFromItsLastPublication() throws {
    let lastMs: Int64 = 1_700_000_000_123
    try scratch.file("spool/output/walk/segment-1767859517340.json", [])
    // The time of the view does not count: others write it, too.
    func setTimes(_ times: [Int64]) {
      let files = ["segment-1767859512340.json", "segment-1767859517340.json"]
      for (file, ms) in zip(files, times) { setTime(output + "/walk/" + file, unixMs: ms) }
    }
    for times in [[lastMs, 0], [0, lastMs]] {
      setTimes(times)
      #expect(prune(kept: nil, quarantined: nil, at: lastMs + Self.dayMs).pruned.isEmpty)
      #expect(prune(kept: nil, quarantined: nil, at: lastMs - Self.dayMs).pruned.isEmpty)
    }
    let result = prune(kept: nil, quarantined: nil, at: lastMs + Self.dayMs + 1)
    #expect(result.pruned.map(\.what) == ["a session"] && !isThere("output/walk"))
  }

  @Test func dryRunChangesNothingAndReportsTheSame() throws {
    let before = try snapshot(of: spool.path)
    let said = prune(isDryRun: true).pruned
    #expect(try snapshot(of: spool.path) == before && said.count == 3)
    let gone = prune().pruned
    #expect(gone.map(\.path) == said.map(\.path) && gone.map(\.bytes) == said.map(\.bytes))
  }

  /// Waiting batches, directories that are not sessions, and unknown files.
  @Test func otherFilesAreNotPruned() throws {
    for file in ["incoming/owed", "claimed/elsewhere~1~x1/1.1.0/held", "tmp/draft", "output/notes/read.me"] {
      _ = try scratch.directory("spool/" + (file as NSString).deletingLastPathComponent)
      try scratch.file("spool/" + file, [1])
    }
    try session(".hidden", names: ["segment-1767859512340.json"])
    try scratch.file("spool/quarantine/somebody's.reason.json", [1])
    _ = prune()
    for file in ["incoming/owed", "claimed/elsewhere~1~x1/1.1.0/held", "tmp/draft", "output/notes/read.me"] {
      #expect(isThere(file), "\(file)")
    }
    #expect(isThere("output/.hidden/segment-1767859512340.json") && !isThere("output/walk"))
  }

  @Test func linksAreNeverFollowed() throws {
    let precious = try scratch.directory("precious")
    for file in ["1.jpg", "segment-1767859512340.json"] { try scratch.file("precious/" + file, [1]) }
    let links = [
      "done/link", "done/kept/deeper", "quarantine/link", "output/link", "output/walk/hls",
      "output/.pruned~link", "output/walk/segment-1767859517340.json",
    ]
    for link in links {
      let target = link.hasSuffix(".json") ? precious + "/1.jpg" : precious
      try FileManager.default.createSymbolicLink(atPath: spool.path + "/" + link, withDestinationPath: target)
    }
    let result = prune()
    #expect(result.failures.isEmpty, "\(result.failures)")
    #expect(try names(in: precious) == ["1.jpg", "segment-1767859512340.json"])
    #expect(!isThere("done/link") && !isThere("quarantine/link") && !isThere("output/walk"))
    #expect(isThere("output/link") && isThere("output/.pruned~link"))
  }

  /// A directory that is a link may lead to files of another owner.
  @Test func spoolDirectoryThatIsALinkIsAFailure() throws {
    let elsewhere = try scratch.directory("elsewhere")
    try FileManager.default.moveItem(atPath: spool.done + "/kept", toPath: elsewhere + "/kept")
    try FileManager.default.removeItem(atPath: spool.done)
    try FileManager.default.createSymbolicLink(atPath: spool.done, withDestinationPath: elsewhere)
    let result = prune()
    #expect(result.failures.count == 1 && "\(result.failures)".contains("/done"), "\(result.failures)")
    #expect(try names(in: elsewhere) == ["kept"])
    #expect(!isThere("output/walk"))
  }

  @Test func lockedSessionIsSkippedAndReported() throws {
    try session("other", names: ["segment-1767859512340.json"])
    let lock = open(output + "/walk", O_RDONLY | O_DIRECTORY)
    #expect(flock(lock, LOCK_EX) == 0)
    let result = prune()
    #expect(result.skipped == [output + "/walk"] && result.failures.isEmpty)
    #expect(isThere("output/walk/segment-1767859512340.mp4") && !isThere("output/other"))
    close(lock)
    #expect(prune().pruned.map(\.path) == [output + "/walk"])
  }

  /// A worker that waits for the lock of a removed session gets a new session directory.
  @Test func sessionRemovedDuringALockWaitStartsEmpty() throws {
    let directory = SessionDirectory(output: output, session: try #require(SessionID("walk")))
    let lock = open(directory.path, O_RDONLY | O_DIRECTORY)
    #expect(flock(lock, LOCK_EX) == 0)
    // The session and its lock disappear while the worker waits.
    var hasGone = false
    func isCancelled() -> Bool {
      if !hasGone {
        hasGone = true
        rename(directory.path, output + "/.pruned~x")
        close(lock)
      }
      return false
    }
    let seen = try directory.locked(Cancellation(isCancelled)) { try directory.publishedStarts() }
    #expect(hasGone && seen.isEmpty && isThere("output/walk"))
  }

  /// The run resumes a removal that a crash interrupted at any step.
  @Test func interruptedRemovalIsCompletedWithoutAMaximumAge() throws {
    rename(output + "/walk", output + "/.pruned~somebody")
    rename(spool.done + "/kept", spool.trash + "/somebody~1~x~1")
    rename(spool.quarantine + "/bad", spool.trash + "/somebody~1~y~1")
    let result = prune(kept: nil, quarantined: nil, sessions: nil)
    #expect(result.failures.isEmpty && result.pruned.count == 4, "\(result)")
    for place in ["done", "quarantine", "output", "trash"] { #expect(try names(in: spool.path + "/" + place).isEmpty) }
  }

  /// A purged batch's reason, while the worker that wrote it still runs.
  @Test func reasonWithoutBatchIsPruned() throws {
    let alive = try SpoolQueue(spool, worker: WorkerID(), elsewhere: HeartbeatMonitor(lease: 10))
    defer { alive.leave() }
    let worker = try #require(names(in: spool.claimed).first)
    try scratch.file(
      "spool/quarantine/bad.reason.json", Array(#"{"format":"quarantine-reason/1","worker":"\#(worker)"}"#.utf8))
    unlink(spool.quarantine + "/bad")
    #expect(prune(quarantined: nil).pruned.contains { $0.path.hasSuffix("bad.reason.json") } == false)
    #expect(prune().pruned.map(\.path) == [spool.quarantine + "/bad.reason.json"])
  }
}
