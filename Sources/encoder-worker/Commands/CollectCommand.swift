import ArgumentParser
import Collecting
import FileSystem
import FrameBatches
import Glibc
import Logging
import SegmentEncoder
import Synchronization
import WorkQueues

struct CollectCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "collect",
    abstract: "Watch folders of screenshots, and make batches of them.",
    discussion: """
      Takes each image file that is complete, and makes a batch of them every few seconds in SPOOL/incoming. Removes the files once a batch has them, or remembers them with --keep. Each picture is in exactly one batch, even if collect is killed. A session ends after --end-after-pause seconds without a picture. Capture times come from the names of the files, or with --times mtime from their modification times. Then a name may be written again and again: each version is a picture. With --recursive each folder below DIR is a session, called after its path; folders of dates, as 2026-11-25, belong to the folder above. With --to, the worker at this address gets the batches: those that it cannot take yet wait in SPOOL until it has answered that they are on its disk. SIGTERM or SIGINT: all pictures but the newest of each session go into batches; the next run goes on with that one.
      """)

  static let page = HelpPage(
    example: "collect Screenshots/ --spool spool", required: [["spool"], ["to"]],
    common: [
      "keep", "recursive", "times", "time-zone", "session", "session-every", "end-after-pause", "token-file",
      "verbose",
    ])

  @Argument(help: ArgumentHelp("The folder to watch.", valueName: "dir"), completion: .directory)
  var folder: String

  @Option(
    help: .setting(
      SpoolOptions.spoolHelp,
      default: "with --to: collect-<hash of DIR> in $STATE_DIRECTORY or ~/.local/state/encoder-worker",
      valueName: "dir", place: .spool), completion: .directory)
  var spool: String?

  @OptionGroup var sender: SenderOptions

  @Option(
    help: ArgumentHelp(
      SessionNameOption.idHelp + " (default: a new one after each pause, <dir>-<first capture>)", valueName: "id"))
  var session: String?

  @Option(help: .setting("Seconds between batches; 60 pictures make one earlier.", valueName: "seconds"))
  var batchEvery = 5

  @Option(help: .setting("End a session after this many seconds without a picture.", valueName: "seconds"))
  var endAfterPause = 60

  @Flag(help: .setting("Keep the files instead of removing them."))
  var keep = false

  @Flag(help: .setting("Make a session of each folder below DIR, too."))
  var recursive = false

  @Option(
    help: .setting(
      "Cut sessions at midnight of --time-zone (day), or every so many hours of the day (6h).", valueName: "period",
      example: "day"))
  var sessionEvery: String?

  @Option(help: ArgumentHelp("Leave older pictures: unix ms, ISO 8601, or an age such as 2h.", valueName: "time"))
  var since: String?

  @OptionGroup var freeSpace: FreeSpaceOption
  @OptionGroup var capture: CaptureArguments
  @OptionGroup var log: LogOptions
  @OptionGroup var settings: SettingsOption

  /// Seconds between attempts after a failure.
  private static let pause = 5

  func validate() throws {
    if spool == nil, sender.to == nil { throw ValidationError("--spool DIR is missing, or --to URL") }
    try requireSessionID(session)
    try require("--batch-every", batchEvery, in: 1...3_600, "seconds")
    try require("--end-after-pause", endAfterPause, in: 1...86_400, "seconds")
    _ = try period()
    _ = try sinceMs()
  }

  func execute() throws {
    let logger = log.logger()
    let options = try capture.options(readsLists: false)
    guard DurableFile.isReachableDirectory(folder) else {
      throw Failure(.usage, "\(folder): no directory; name the folder that screenshots are written to")
    }
    let path = DurableFile.resolved(folder)
    let place = try spool ?? Self.defaultSpool(of: path)
    let isNew = !DurableFile.isReachableDirectory(place + "/incoming")
    let spool = try Spool(creating: place)
    if isNew { say("made the spool \(spool.path)") }
    guard spool.allows(output: folder) else {
      throw Failure(
        .usage, "\(folder): a directory of the spool itself; name the folder that screenshots are written to")
    }
    let signals = try TerminationSignals()
    let watch = try FolderWatch(path, isRecursive: recursive)
    let stop = StopRequest()
    let news = CollectNews(logger)
    let collector = try Collector(
      path, into: spool, rules(path, options), options: options, watch: watch, report: news.log)
    let outgoing = sender.to.map { CollectSender(from: spool, to: $0.name, logger) }
    let wake = watch.wake
    try Self.listen(to: signals) {
      stop.value.store(true, ordering: .relaxed)
      wake()
    }
    try outgoing?.start(sender)
    let way = sender.to.map { "to \($0.name), by way of" } ?? "to"
    let fate = keep ? "the pictures stay" : "the pictures are removed once they are there"
    say(
      "watching \(path)\(recursive ? " and the folders in it" : ""); batches go \(way) \(spool.incoming), and \(fate)")
    defer {
      say(collector.totals.description(in: spool.incoming, waiting: collector.waiting))
      if let outgoing { say(Self.left(outgoing, in: spool)) }
    }
    try run(collector, watch, news, isStopping: { stop.value.load(ordering: .relaxed) }, logger)
  }

  /// Sends what can still be sent, and says what is left.
  private static func left(_ outgoing: CollectSender, in spool: Spool) -> String {
    do {
      let left = try outgoing.stop()
      return left == 0
        ? "all batches are sent"
        : "\(count(left, "batch", "batches")) in \(spool.incoming) left; the next run sends them"
    } catch {
      return "cannot count the batches that are left for the next run: \(error)"
    }
  }

  /// The place of batches that wait for a worker elsewhere. It depends on the folder alone, so that another address or token sends
  /// what waits there.
  ///
  /// - Throws: wrong usage.
  private static func defaultSpool(of folder: String) throws -> String {
    func variable(_ name: String) -> String? {
      getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    // systemd names several directories with colons between.
    let state = variable("STATE_DIRECTORY").map { String($0.prefix { $0 != ":" }) }
    let user = variable("XDG_STATE_HOME") ?? variable("HOME").map { $0 + "/.local/state" }
    guard let base = state ?? user.map({ $0 + "/encoder-worker" }) else {
      throw ValidationError("--spool DIR is missing: there is no home directory for batches that wait")
    }
    return base + "/collect-" + SHA256.hex(of: Array(folder.utf8)).prefix(16)
  }

  private func rules(_ path: String, _ options: InputOptions) throws -> CollectRules {
    var rules = CollectRules()
    rules.everyMs = batchEvery * 1_000
    rules.idleMs = endAfterPause * 1_000
    rules.keepsSources = keep
    rules.freeSpace = freeSpace.rule
    rules.session = session
    if session == nil {
      let found = try options.session(ofFolder: path)
      rules.session = found.id?.description
      if let warning = found.warning { say("\(warning), so each pause ends a session, as without the option") }
    }
    rules.folder = CollectRules.sessionBase(ofFolder: path)
    rules.isRecursive = recursive
    rules.period = try period()
    rules.sinceMs = try sinceMs()
    return rules
  }

  /// - Throws: wrong usage.
  private func period() throws -> SessionPeriod? {
    guard let sessionEvery else { return nil }
    guard let zone = try capture.options(readsLists: false).timeZone else {
      throw ValidationError("--session-every: needs the zone of its days; add --time-zone UTC, or one as Europe/Berlin")
    }
    guard let period = SessionPeriod(sessionEvery, in: zone) else {
      throw ValidationError("--session-every: '\(sessionEvery.shortened(to: 40))' is no period; \(SessionPeriod.rule)")
    }
    return period
  }

  /// - Throws: wrong usage.
  private func sinceMs() throws -> Int64? {
    guard let since else { return nil }
    if let age = try? Age(since) { return WallClock.nowMs - age.ms }
    switch SessionInstant(since) {
    case .unixMs(let ms): return ms
    case .afterStartMs:
      throw ValidationError("--since: '\(since.shortened(to: 40))' has no session to start from; write an age: 2h")
    case nil:
      throw ValidationError(
        "--since: '\(since.shortened(to: 40))' is \(SessionInstant.fault(of: since)), or an age: 2h")
    }
  }

  /// Collects until a stop request. A failure of the disk is a pause.
  private func run(
    _ collector: Collector, _ watch: FolderWatch, _ news: CollectNews, isStopping: () -> Bool, _ logger: Logger
  ) throws {
    var progress = Progress()
    defer { progress.finish() }
    var trouble: String?
    var changes = FolderChanges()
    while !isStopping() {
      var waitMs = Self.pause * 1_000
      let isRepeated = trouble != nil
      do {
        try collector.step(changes, shouldContinue: { !isStopping() })
        waitMs = collector.waitMs
        if isRepeated { logger.warning("environment recovered, resuming") }
        trouble = nil
        changes = FolderChanges()
      } catch {
        if trouble != "\(error)" { logger.error("\(error); nothing is lost, retrying every \(Self.pause) s") }
        trouble = "\(error)"
        // The step may have looked at some folders only.
        changes = FolderChanges()
        changes.areIncomplete = true
      }
      news.logShortage(of: watch)
      news.logLost(isDue: false)
      progress.show(collector.totals.pictures, of: collector.totals.pictures + collector.waiting, "pictures")
      let untilMs = MonotonicClock.milliseconds() + waitMs
      repeat {
        changes.append(watch.wait(ms: untilMs - MonotonicClock.milliseconds()))
        // Events must not shorten a pause.
      } while trouble != nil && !isStopping() && MonotonicClock.milliseconds() < untilMs
    }
    do {
      try collector.stop()
      news.logLost(isDue: true)
    } catch {
      logger.error("\(error); nothing is lost, run it again")
      throw ExitStatus.afterRetry(of: error)
    }
  }

  /// Calls `stop` at the first signal, and ends the process at the second.
  private static func listen(to signals: TerminationSignals, _ stop: @escaping @Sendable () -> Void) throws {
    try ThreadGroup().start {
      while !signals.wait(ms: -1) {}
      stop()
      while !signals.wait(ms: -1) {}
      StandardError.writeWithTimeout { StandardError.removeBar() }
      _exit(0)
    }
  }
}

/// A request to stop; for any thread.
private final class StopRequest: Sendable {
  let value = Atomic(false)
}
