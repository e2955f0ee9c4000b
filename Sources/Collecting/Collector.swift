// Watches a folder of loose screenshots and makes batches of them: it scans, gives each file its time and group, asks each group
// for the batch that is due, and publishes that one. An error of the disk ends a step and loses nothing: call `step` again.

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
    case unremovable(UnremovableFile)
  }

  /// Milliseconds between scans.
  private static let rescanMs = 2_000
  /// Milliseconds for work after the request to stop.
  private static let graceMs = 4_000

  private let rules: CollectRules
  private let options: InputOptions
  private let limits: Limits
  private let clock: () -> Int
  private let report: (Event) -> Void
  private let publisher: CollectPublisher
  private let times: CaptureTimes
  private var scan: FolderScan
  private var scanAtMs: Int
  /// Complete files that have no stream yet.
  private var found: [FolderFile] = []
  private var streams: [CaptureGroup: CaptureStream] = [:]
  private var hasFileWithoutTime = false
  /// Whether this run has begun a batch.
  private var hasPublished = false
  /// Frames in batches of this run.
  package private(set) var collected = 0

  /// - Parameters:
  ///   - folder: its path without links.
  ///   - clock: the monotonic time in milliseconds.
  ///   - report: gets the news.
  /// - Throws: ``FolderInUse``, ``DiskError``.
  package init(
    _ folder: String, into spool: Spool, _ rules: CollectRules, options: InputOptions, limits: Limits = Limits(),
    clock: @escaping () -> Int = MonotonicClock.milliseconds, report: @escaping (Event) -> Void
  ) throws {
    self.rules = rules
    self.options = options
    self.limits = limits
    self.clock = clock
    self.report = report
    publisher = try CollectPublisher(folder, spool, keepsSources: rules.keepsSources)
    times = CaptureTimes(folder, options: options, limits: limits)
    scan = FolderScan(folder, limits: limits)
    scanAtMs = clock()
  }

  /// Frames that no batch has yet.
  package var waiting: Int { streams.values.reduce(0) { $0 + $1.waiting.count } }

  /// Milliseconds until ``step(closed:shouldContinue:)`` has something to do.
  package var waitMs: Int {
    let dueMs = streams.values.compactMap(\.dueMs).min() ?? scanAtMs
    return max(10, min(scanAtMs, dueMs) - clock())
  }

  /// Publishes what is due.
  ///
  /// - Parameters:
  ///   - closed: files that were closed or renamed since the last step.
  ///   - shouldContinue: asked between files and between batches.
  package func step(closed: Set<String> = [], shouldContinue: () -> Bool = { true }) throws {
    try finish()
    try publisher.compactIfLarge()
    try look(closed: closed, all: clock() >= scanAtMs, shouldContinue)
    try publish(isStopping: false, shouldContinue)
  }

  /// Publishes all complete files, as far as there is time; the sessions go on in the next run.
  package func stop() throws {
    let deadlineMs = clock() + Self.graceMs
    try finish()
    try look(closed: [], all: true) { clock() < deadlineMs }
    try publish(isStopping: true) { clock() < deadlineMs }
  }

  private func look(closed: Set<String>, all: Bool, _ shouldContinue: () -> Bool) throws(DiskError) {
    let nowMs = clock()
    found += try scan.look(at: closed, nowMs: nowMs, isTaken: publisher.isTaken)
    if all {
      found += try scan.scan(nowMs: nowMs, isTaken: publisher.isTaken)
      // A scan of a large folder takes at most a twentieth of the time.
      scanAtMs = nowMs + max(Self.rescanMs, 20 * (clock() - nowMs))
    }
    for file in scan.takeLeft() { report(.left(file)) }
    var placed = 0
    while placed < found.count, shouldContinue() {
      place(found[placed], nowMs)
      placed += 1
    }
    found.removeFirst(placed)
  }

  /// Gives a file to the stream of its group.
  private func place(_ file: FolderFile, _ nowMs: Int) {
    do {
      let captured = try times.captured(file)
      // The longest name that a session of this group gets.
      let session = captured.group.session(rules.session ?? "\(rules.folder)-0000000000000")
      guard SessionID(session) != nil else {
        throw BadBatch("read", file.name, "the session id \"\(session)\" cannot be used", advice: SessionID.rule)
      }
      let open = publisher.sessions[captured.group]
      var stream =
        streams[captured.group]
        ?? CaptureStream(captured.group, rules, limits: limits, session: open, nowMs: nowMs)
      // A file that was replaced before it was taken.
      stream.drop(file.name)
      stream.add(captured, nowMs: nowMs)
      streams[captured.group] = stream
    } catch {
      let bad = error as? BadBatch
      let left = LeftFile(name: file.name, reason: bad?.cause ?? "\(error)", advice: bad?.advice)
      report(.withoutTime(left, isFirst: !hasFileWithoutTime))
      hasFileWithoutTime = true
    }
  }

  private func publish(isStopping: Bool, _ shouldContinue: () -> Bool) throws {
    for group in streams.keys.sorted(by: { $0.text < $1.text }) {
      while shouldContinue(), let plan = streams[group]?.next(nowMs: clock(), isStopping: isStopping) {
        let draft = try publisher.prepare(plan, options: options, limits: limits, refine: times.refined)
        hasPublished = true
        if let record = draft.record {
          streams[group]?.commit(plan, session: record.session, nowMs: clock())
        }
        for name in draft.dropped + draft.left.map(\.name) { streams[group]?.drop(name) }
        // The next scan finds them anew.
        for name in draft.dropped { scan.forget(name) }
        for file in draft.left { report(.left(file)) }
        try finish()
      }
    }
  }

  private func finish() throws {
    while let record = try publisher.finish() {
      if hasPublished {
        collected += record.files.count
        report(
          .published(
            batch: record.batch, session: record.session.name, frames: record.files.count, isFinal: record.isFinal))
      } else {
        report(.recovered(batch: record.batch))
      }
      for file in publisher.takeUnremovable() { report(.unremovable(file)) }
    }
  }
}
