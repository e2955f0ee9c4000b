// Watches a folder of loose screenshots, or all folders in it, and makes batches: it looks for new files, gives each one to the
// session of its folder, asks each session for the batches that are due, and publishes them together. An error of the disk ends a
// step and loses nothing: call `step` again.

import Batching
import FileSystem
import FrameBatches
import Glibc
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
    /// Names of one folder that are written again and again: perhaps each shows a source of its own.
    case inTurn(names: [String])
    case silent(SilentFolder)
    /// Folders with pictures that are not collected.
    case notRecursive(PictureFolders)
  }

  /// Milliseconds for work after the request to stop.
  private static let graceMs = 4_000
  /// Milliseconds between publications for so many sessions that they share the syncs.
  private static let shareMs = 1_000
  /// Milliseconds between looks for sessions that are to end.
  private static let askMs = 2_000
  /// New files that are copied at once. More are no versions of a few names: their batches copy them.
  private static let versions = 1_000
  /// Folders with nothing that can be taken that are reported one by one.
  private static let silent = 20

  private let rules: CollectRules
  private let limits: Limits
  private let folder: String
  /// The spool's path without links.
  private let spool: String
  /// The directory of the batcher.
  private let home: String
  /// Held until the end.
  private let lock: OutputFile
  private let clock: () -> Int
  private let report: (Event) -> Void
  private let batcher: Batcher
  private let closing: SessionClosing
  private let closingHome: String
  private let source: SourceFolders
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
  /// Streams whose files could not be read.
  private var troubled: Set<String> = []
  package private(set) var totals = CollectTotals()

  /// - Parameters:
  ///   - folder: its path without links.
  ///   - watch: tells of changes; nil for scans alone.
  ///   - clock: the monotonic time in milliseconds.
  ///   - report: gets the news.
  /// - Throws: ``Failure``, ``DiskError``.
  package init(
    _ folder: String, into spool: Spool, _ rules: CollectRules, options: InputOptions, limits: Limits = Limits(),
    watch: FolderWatch? = nil, clock: @escaping () -> Int = MonotonicClock.milliseconds,
    report: @escaping (Event) -> Void
  ) throws {
    (self.rules, self.limits, self.folder, self.clock, self.report) = (rules, limits, folder, clock, report)
    self.spool = DurableFile.resolved(spool.path)
    home = spool.collectors + "/" + String(SHA256.hex(of: Array(folder.utf8)).prefix(16))
    try DurableFile.makeDirectories(home)
    do throws(DiskError) {
      lock = try OutputFile(restarting: home + "/lock")
    } catch {
      guard error.code == EWOULDBLOCK else { throw error }
      throw Failure(.environment, "", folder, "another collect watches it", advice: "stop that one first")
    }
    times = CaptureTimes(folder, options: options, limits: limits)
    source = SourceFolders(folder, keepsSources: rules.keepsSources, times, limits: limits)
    batcher = try Batcher(
      home, into: spool, from: source, rules.ofBatches(limits, options), timeZone: options.timeZone?.description,
      limits: limits, clock: clock)
    let nowMs = clock()
    let held = batcher.held.versions
    tree = FolderTree(
      folder, rules, excluding: self.spool, held: held.map(\.picture.file), limits: limits,
      watch: watch, nowMs: nowMs)
    sessions = SessionTable(rules)
    (closing, closingHome) = (SessionClosing(spool, limits: limits), SessionClosing.home(ofCollector: home))
    publishAtMs = nowMs
    for version in held { try give(times.version(version.picture.file, held: version.picture.held)) }
  }

  /// Pictures that no batch has yet.
  package var waiting: Int { batcher.waiting }

  /// Milliseconds until ``step(_:shouldContinue:)`` has something to do.
  package var waitMs: Int {
    let dueMs = max(batcher.dueMs ?? .max, publishAtMs)
    return min(max(10, min(tree.scanAtMs, dueMs) - clock()), Self.askMs)
  }

  /// Publishes what is due.
  ///
  /// - Parameters:
  ///   - changes: the events since the last step.
  ///   - shouldContinue: asked between files and between batches.
  /// - Throws: ``LowDiskSpace``: nothing is copied; ``DiskError``.
  package func step(_ changes: FolderChanges = FolderChanges(), shouldContinue: () -> Bool = { true }) throws {
    try rules.freeSpace.require(at: home)
    source.beginStep()
    try batcher.compactIfLarge()
    let ending = try closing.requests(to: closingHome)
    try look(changes, isWhole: !ending.isEmpty, shouldContinue)
    try publish(.due, shouldContinue)
    for session in ending where try publish(.session(session.description), shouldContinue) {
      closing.finish(session, in: closingHome)
    }
  }

  /// Publishes all complete files but the newest of each session, as far as there is time; the sessions go on in the next run.
  package func stop() throws {
    try rules.freeSpace.require(at: home)
    let deadlineMs = clock() + Self.graceMs
    source.beginStep()
    try look(FolderChanges(), isWhole: true) { clock() < deadlineMs }
    try publish(.known) { clock() < deadlineMs }
  }

  private func look(_ changes: FolderChanges, isWhole: Bool, _ shouldContinue: () -> Bool) throws {
    let nowMs = clock()
    try tree.look(changes, isWhole: isWhole, nowMs: nowMs, isTaken: batcher.isTaken) { scan, files in
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
    news.rewritten.forEach(source.noteRewriting)
    news.goneNames.forEach(source.forgetRewriting)
    for (name, count) in news.lost { noteLost(name, count) }
    if let names = source.takeNamesInTurn(of: scan.below) { report(.inTurn(names: names)) }
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
      if let sinceMs = rules.sinceMs, captured.picture.timeMs < sinceMs {
        totals.older += 1
        scan?.tally.older += 1
        return
      }
      if times.areOfVersions, batcher.hasOtherVersion(of: file) { source.noteRewriting(of: file.name) }
      if times.areOfVersions, holds {
        guard let copy = try copy(of: captured, nowMs) else { return }
        captured.picture.held = copy.isEmpty ? nil : copy
      }
      if try give(captured) { scan?.tally.taken += 1 } else { totals.left += 1 }
    } catch let failure as DiskError where failure.path.hasPrefix(home) {
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
  private func copy(of captured: CapturedFile, _ nowMs: Int) throws -> String? {
    let file = captured.picture.file
    let name = lastComponent(of: file.name)
    // A folder that is gone, or cannot be read: its batch tells.
    guard let directory = try? source.directory(of: file) else { return "" }
    let place = place(of: captured, in: sessions.folder(of: FolderTree.folder(of: file)))
    let copy = try batcher.held.hold(
      captured.picture, named: name, in: directory, for: place.stream,
      session: batcher.session(of: place.stream, place.names, at: captured.picture.timeMs))
    if let copy { return copy }
    if directory.sourceStamp(of: name) == file.stamp { return "" }
    tree.forget(file, nowMs: nowMs)
    return nil
  }

  private func place(of captured: CapturedFile, in folder: SessionFolder) -> (stream: String, names: FolderSessionNames)
  {
    let names = FolderSessionNames(folder, captured.group, rules)
    return (names.stream(of: folder), names)
  }

  /// - Returns: whether the file's folder has a session.
  @discardableResult
  private func give(_ captured: CapturedFile) throws -> Bool {
    let file = captured.picture.file
    let (folder, fault) = sessions.session(of: file)
    if let fault {
      tree[FolderTree.folder(of: file)]?.tally.isReported = true
      report(.leftFolder(fault))
    }
    guard let folder else {
      batcher.held.drop(file)
      return false
    }
    let place = place(of: captured, in: folder)
    // Without versions, a file that was replaced before it was taken.
    try batcher.add(
      captured.picture, to: place.stream, place.names,
      replacing: !times.areOfVersions && captured.picture.held == nil)
    return true
  }

  /// - Returns: whether all batches were made.
  @discardableResult
  private func publish(_ cut: Batcher.Cut, _ shouldContinue: () -> Bool) throws -> Bool {
    let nowMs = clock()
    if case .due = cut, nowMs < publishAtMs { return false }
    // Before all files that are there are found, an earlier one may still come.
    let unsettled = found.isEmpty ? Set(tree.unsettled.map(sessions.folder)) : nil
    defer { for file in source.takeUnremovable() { report(.unremovable(file)) } }
    let areAllMade = try batcher.cut(
      cut,
      isReady: { stream in
        unsettled.map { !$0.contains(FolderSessionNames.folder(ofStream: stream)) } ?? false
      },
      shouldContinue: shouldContinue, report: { news in note(news, nowMs) })
    if batcher.count > Directory.few { publishAtMs = nowMs + Self.shareMs }
    return areAllMade
  }

  private func note(_ news: Batcher.News, _ nowMs: Int) {
    switch news {
    case .published(let batch, let session, let pictures, let isFinal, let isRecovered):
      if isRecovered {
        report(.recovered(batch: batch))
      } else {
        totals.pictures += pictures
        totals.sessions.insert(session)
        report(.published(batch: batch, session: session, frames: pictures, isFinal: isFinal))
      }
    case .trouble(let stream, let error):
      guard troubled.insert(stream).inserted else { return }
      let path = FolderSessionNames.folder(ofStream: stream).path
      report(
        .leftFolder(
          LeftFile(
            name: path.isEmpty ? folder : path, reason: "\(error); the other folders go on",
            advice: "nothing is lost, it is tried again; check who may read the folder")))
    // The next scan finds it anew.
    case .changed(let file): tree.forget(file, nowMs: clock())
    case .gone(let file): noteLost(file.name, 1)
    case .left(let file):
      totals.left += 1
      report(.left(file))
    }
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
