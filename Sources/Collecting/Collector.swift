// Watches a folder of loose screenshots, or all folders in it, and makes batches: it looks for new files, gives each one to the
// session of its folder, asks each session for the batches that are due, and publishes them together. An error of the disk ends a
// step and loses nothing: call `step` again.

import FileSystem
import FrameBatches
import WorkQueues

package final class Collector {
  /// The news of a step.
  package enum Event {
    case published(batch: String, session: String, frames: Int, isFinal: Bool)
    /// A batch that an earlier run had begun is published.
    case recovered(batch: String)
    case left(LeftFile)
    /// A file whose name tells no capture time; `isFirst` in this run.
    case withoutTime(LeftFile, isFirst: Bool)
    /// A folder that has no session, or cannot be read.
    case leftFolder(LeftFile)
    case unremovable(UnremovableFile)
    /// Versions of a name that were replaced before they were seen.
    case lost(name: String, count: Int)
    case silent(SilentFolder)
    /// Folders with pictures that are not collected.
    case notRecursive(PictureFolders)
  }

  /// Milliseconds for work after the request to stop.
  private static let graceMs = 4_000
  /// Milliseconds between publications for so many sessions that they share the syncs.
  private static let shareMs = 1_000
  /// Frames that are published together.
  private static let frames = 2_000
  /// New files that are copied at once. More are no versions of a few names: their batches copy them.
  private static let versions = 1_000
  /// Folders with nothing that can be taken that are reported one by one.
  private static let silent = 20

  private let rules: CollectRules
  private let limits: Limits
  private let folder: String
  /// The spool's path without links.
  private let spool: String
  private let clock: () -> Int
  private let report: (Event) -> Void
  private let publisher: CollectPublisher
  private let times: CaptureTimes
  private let tree: FolderTree
  private let sessions: SessionTable
  private var publishAtMs: Int
  /// Complete files that no session has yet.
  private var found: [FolderFile] = []
  private var hasFileWithoutTime = false
  private var hasLooked = false
  /// The monotonic time when folders are asked for their first minute again.
  private var silenceAtMs = 0
  /// Whether this run has begun a batch.
  private var hasPublished = false
  package private(set) var totals = CollectTotals()

  /// - Parameters:
  ///   - folder: its path without links.
  ///   - watch: tells of changes; nil for scans alone.
  ///   - clock: the monotonic time in milliseconds.
  ///   - report: gets the news.
  /// - Throws: ``FolderInUse``, ``DiskError``.
  package init(
    _ folder: String, into spool: Spool, _ rules: CollectRules, options: InputOptions, limits: Limits = Limits(),
    watch: FolderWatch? = nil, clock: @escaping () -> Int = MonotonicClock.milliseconds,
    report: @escaping (Event) -> Void
  ) throws {
    (self.rules, self.limits, self.folder, self.clock, self.report) = (rules, limits, folder, clock, report)
    self.spool = DurableFile.resolved(spool.path)
    publisher = try CollectPublisher(folder, spool, keepsSources: rules.keepsSources, limits: limits)
    times = CaptureTimes(folder, options: options, limits: limits)
    let nowMs = clock()
    let held = publisher.held.all
    tree = FolderTree(
      folder, rules, excluding: self.spool, held: held.map(\.file), limits: limits,
      watch: watch, nowMs: nowMs)
    sessions = SessionTable(rules, limits: limits)
    publishAtMs = nowMs
    for (file, copy) in held {
      var captured = times.version(file)
      captured.held = copy
      try give(captured, nowMs)
    }
  }

  /// Frames that no batch has yet.
  package var waiting: Int { sessions.all.reduce(0) { $0 + $1.waiting } }

  /// Milliseconds until ``step(_:shouldContinue:)`` has something to do.
  package var waitMs: Int {
    let dueMs = max(sessions.all.compactMap(\.dueMs).min() ?? .max, publishAtMs)
    return max(10, min(tree.scanAtMs, dueMs) - clock())
  }

  /// Publishes what is due.
  ///
  /// - Parameters:
  ///   - changes: the events since the last step.
  ///   - shouldContinue: asked between files and between batches.
  package func step(_ changes: FolderChanges = FolderChanges(), shouldContinue: () -> Bool = { true }) throws {
    try finish()
    try publisher.compactIfLarge()
    try look(changes, isWhole: false, shouldContinue)
    try publish(isStopping: false, shouldContinue)
  }

  /// Publishes all complete files, as far as there is time; the sessions go on in the next run.
  package func stop() throws {
    let deadlineMs = clock() + Self.graceMs
    try finish()
    try look(FolderChanges(), isWhole: true) { clock() < deadlineMs }
    try publish(isStopping: true) { clock() < deadlineMs }
  }

  private func look(_ changes: FolderChanges, isWhole: Bool, _ shouldContinue: () -> Bool) throws {
    let nowMs = clock()
    try tree.look(changes, isWhole: isWhole, nowMs: nowMs, isTaken: publisher.isTaken) { scan, files in
      found += files
      take(scan.takeNews(), of: scan)
    }
    // Scans of large folders take at most a twentieth of the time.
    tree.postpone(untilMs: nowMs + 20 * (clock() - nowMs))
    for folder in tree.takeLeft() { report(.leftFolder(folder)) }
    // More files at once are those of an earlier time.
    let areNew = found.count <= Self.versions
    var placed = 0
    defer { found.removeFirst(placed) }
    while placed < found.count, shouldContinue() {
      try place(found[placed], holds: areNew, nowMs)
      placed += 1
    }
    if placed == found.count { lookForSilence(nowMs) }
  }

  private func take(_ news: FolderScan.News, of scan: FolderScan) {
    for file in news.left {
      totals.left += 1
      scan.tally.note(left: file)
      report(.left(file))
    }
    guard times.areOfVersions else { return }
    news.rewritten.forEach(publisher.noteRewriting)
    news.goneNames.forEach(publisher.forgetRewriting)
    for (name, count) in news.lost { noteLost(name, count) }
  }

  private func noteLost(_ name: String, _ count: Int) {
    totals.lost += count
    report(.lost(name: name, count: count))
  }

  /// Gives a file to the session of its folder.
  private func place(_ file: FolderFile, holds: Bool, _ nowMs: Int) throws {
    let scan = tree[FolderTree.folder(of: file)]
    do {
      var captured = try times.captured(file)
      if let sinceMs = rules.sinceMs, captured.timeMs < sinceMs {
        totals.older += 1
        scan?.tally.older += 1
        return
      }
      if times.areOfVersions, publisher.hasOtherVersion(of: file) { publisher.noteRewriting(of: file.name) }
      if times.areOfVersions, holds {
        guard let copy = try copy(of: file, nowMs) else { return }
        captured.held = copy.isEmpty ? nil : copy
      }
      if try give(captured, nowMs) { scan?.tally.taken += 1 } else { totals.left += 1 }
    } catch let failure as DiskError where failure.path.hasPrefix(publisher.home) {
      throw failure
    } catch {
      let bad = error as? BadBatch
      let left = LeftFile(name: file.name, reason: bad?.cause ?? "\(error)", advice: bad?.advice)
      totals.left += 1
      scan?.tally.note(withoutTime: left)
      report(.withoutTime(left, isFirst: !hasFileWithoutTime))
      hasFileWithoutTime = true
    }
  }

  /// Copies a version before the next one replaces it.
  ///
  /// - Returns: the copy's name; empty for a file that its batch has to copy; nil for a version that is replaced.
  private func copy(of file: FolderFile, _ nowMs: Int) throws -> String? {
    var sources = SourceFolders(folder)
    let name = lastComponent(of: file.name)
    // A folder that is gone, or cannot be read: its batch tells.
    guard let directory = try? sources.directory(of: file) else { return "" }
    if let copy = try publisher.held.hold(file, named: name, in: directory) { return copy }
    if directory.sourceStamp(of: name) == file.stamp { return "" }
    tree.forget(file, nowMs: nowMs)
    return nil
  }

  /// - Returns: whether the file's folder has a session.
  @discardableResult
  private func give(_ captured: CapturedFile, _ nowMs: Int) throws -> Bool {
    let (session, fault) = sessions.session(of: captured.file)
    if let fault {
      tree[FolderTree.folder(of: captured.file)]?.tally.isReported = true
      report(.leftFolder(fault))
    }
    guard let session else {
      publisher.held.drop(captured.file)
      return false
    }
    try session.add(captured, areOfVersions: times.areOfVersions || captured.held != nil, nowMs: nowMs) {
      publisher.sessions[$0]
    }
    return true
  }

  private func publish(isStopping: Bool, _ shouldContinue: () -> Bool) throws {
    let nowMs = clock()
    guard isStopping || nowMs >= publishAtMs else { return }
    // The watched folder's own session may end without a file.
    let due = sessions.all.filter { isStopping || $0.folder.isTop || ($0.dueMs ?? .max) <= nowMs }
    for session in due.sorted(by: { $0.folder.path < $1.folder.path }) {
      while shouldContinue(), let plan = session.next(nowMs: clock(), isStopping: isStopping) {
        guard try prepare(plan, session) else { break }
        if publisher.begunFrames >= Self.frames { try finish() }
      }
    }
    try finish()
    if sessions.all.count > Directory.few { publishAtMs = nowMs + Self.shareMs }
  }

  /// - Returns: whether the plan's files could be read.
  private func prepare(_ plan: BatchPlan, _ session: SessionCollector) throws -> Bool {
    let draft: CollectDraft
    do {
      draft = try publisher.prepare(plan, times: times)
    } catch let failure as DiskError where !session.folder.isTop && !failure.path.hasPrefix(publisher.home) {
      // The next scan of its folder tells the fault.
      session.postpone(untilMs: clock() + FolderScan.rescanMs)
      return false
    }
    hasPublished = true
    session.commit(plan, draft, nowMs: clock())
    // The next scan finds them anew.
    for file in draft.changed { tree.forget(file, nowMs: clock()) }
    for file in draft.gone { noteLost(file.name, 1) }
    for file in draft.left {
      totals.left += 1
      report(.left(file))
    }
    return true
  }

  private func finish() throws {
    for record in try publisher.finish() {
      if hasPublished {
        totals.pictures += record.files.count
        totals.sessions.insert(record.session.name)
        report(
          .published(
            batch: record.batch, session: record.session.name, frames: record.files.count, isFinal: record.isFinal))
      } else {
        report(.recovered(batch: record.batch))
      }
    }
    for file in publisher.takeUnremovable() { report(.unremovable(file)) }
  }

  /// Reports folders with nothing that can be taken, and once the folders that are not looked at.
  private func lookForSilence(_ nowMs: Int) {
    if !hasLooked, !rules.isRecursive, let top = tree[""], let folders = PictureFolders(in: top, but: spool) {
      report(.notRecursive(folders))
    }
    hasLooked = true
    guard nowMs >= silenceAtMs else { return }
    silenceAtMs = nowMs + Self.shareMs
    for scan in tree.all where nowMs >= scan.silentAtMs ?? .max {
      // An empty folder is asked again.
      scan.silentAtMs = scan.count == 0 && !scan.below.isEmpty ? nowMs + rules.silenceMs : nil
      guard let silent = SilentFolder(scan, times, rules, top: folder, spool: spool, limits: limits) else { continue }
      totals.silent += 1
      if totals.silent <= Self.silent { report(.silent(silent)) }
    }
  }
}
