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
    abstract: "Watch a folder of loose screenshots and make batches of them.",
    discussion: """
      Takes each image file that is complete, and makes a batch of them every few seconds in SPOOL/incoming. Removes the files then, or remembers them with --keep. Each picture is in exactly one batch, even if collect is killed. A session ends after --idle seconds without a picture. Capture times come from the names of the files, or with --times mtime from their modification times. SIGTERM or SIGINT: all complete pictures go into batches.
      """)

  @Argument(help: ArgumentHelp("The folder to watch.", valueName: "dir"), completion: .directory)
  var folder: String

  @Option(help: .setting("The spool for the batches.", valueName: "dir", place: .spool), completion: .directory)
  var spool: String

  @Option(
    help: ArgumentHelp(
      "Session of all pictures. (default: a new one after each pause, <dir>-<first capture>)", valueName: "id"))
  var session: String?

  @Option(help: .setting("Seconds between batches; 60 pictures make one earlier.", valueName: "seconds"))
  var every = 5

  @Option(help: .setting("Seconds without a picture that end the session.", valueName: "seconds"))
  var idle = 60

  @Flag(help: .setting("Keep the files instead of removing them."))
  var keep = false

  @OptionGroup var capture: CaptureArguments
  @OptionGroup var log: LogOptions
  @OptionGroup var settings: SettingsOption

  /// Seconds between attempts after a failure.
  private static let pause = 5

  func validate() throws {
    try requireSessionID(session)
    try require("--every", every, in: 1...3_600, "seconds")
    try require("--idle", idle, in: 1...86_400, "seconds")
  }

  func execute() throws {
    let logger = log.logger()
    let options = try capture.options()
    guard DurableFile.isReachableDirectory(folder) else {
      throw BadList("\(folder): no directory; name the folder that screenshots are written to")
    }
    let isNew = !DurableFile.isReachableDirectory(spool + "/incoming")
    let spool = try Spool(creating: spool)
    if isNew { say("made the spool \(spool.path)") }
    guard spool.allows(output: folder) else {
      throw BadList("\(folder): a directory of the spool itself; name the folder that screenshots are written to")
    }
    let path = DurableFile.resolved(folder)
    let signals = try TerminationSignals()
    let watch = try FolderWatch(path)
    let stop = StopRequest()
    let rules = try rules(path, options)
    let collector = try Collector(path, into: spool, rules, options: options) { Self.log($0, to: logger) }
    try Self.listen(to: signals) {
      stop.value.store(true, ordering: .relaxed)
      watch.wake()
    }
    say("watching \(path); batches go to \(spool.incoming)")
    try run(collector, watch, isStopping: { stop.value.load(ordering: .relaxed) }, logger)
  }

  private func rules(_ path: String, _ options: InputOptions) throws -> CollectRules {
    var rules = CollectRules()
    rules.everyMs = every * 1_000
    rules.idleMs = idle * 1_000
    rules.keepsSources = keep
    rules.session = session
    if session == nil {
      let found = try options.session(ofFolder: path)
      rules.session = found.id?.description
      if let warning = found.warning { say("\(warning), so each pause ends a session, as without the option") }
    }
    rules.folder = CollectRules.sessionBase(ofFolder: path)
    return rules
  }

  /// Collects until a stop request. A failure of the disk is a pause.
  private func run(
    _ collector: Collector, _ watch: FolderWatch, isStopping: () -> Bool, _ logger: Logger
  ) throws {
    var progress = Progress()
    defer { progress.finish() }
    var trouble: String?
    var closed: Set<String> = []
    while !isStopping() {
      var waitMs = Self.pause * 1_000
      do {
        watch.renew()
        try collector.step(closed: closed, shouldContinue: { !isStopping() })
        waitMs = collector.waitMs
        if trouble != nil { logger.warning("environment recovered, resuming") }
        trouble = nil
      } catch {
        if trouble != "\(error)" { logger.error("\(error); nothing is lost, retrying every \(Self.pause) s") }
        trouble = "\(error)"
      }
      progress.show(collector.collected, of: collector.collected + collector.waiting, "pictures")
      let untilMs = MonotonicClock.milliseconds() + waitMs
      closed = []
      repeat {
        closed.formUnion(watch.wait(ms: untilMs - MonotonicClock.milliseconds()))
        // Events must not shorten a pause.
      } while trouble != nil && !isStopping() && MonotonicClock.milliseconds() < untilMs
    }
    do {
      try collector.stop()
    } catch {
      logger.error("\(error); nothing is lost, run it again")
      throw ExitStatus.of(error)
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

  private static func log(_ event: Collector.Event, to logger: Logger) {
    switch event {
    case .published(let batch, let session, let frames, let isFinal):
      logger.info(
        "collected \(count(frames, "picture"))\(isFinal ? ", the session ends" : "")",
        metadata: ["batch": "\(batch)", "session": "\(session)"])
    case .recovered(let batch):
      logger.warning("finished a batch of a collect that was killed", metadata: ["batch": "\(batch)"])
    case .left(let file):
      logger.warning("left where it is: \(file.reason)", metadata: facts(of: file))
    case .withoutTime(let file, let isFirst):
      logger.log(level: isFirst ? .warning : .info, "left where it is: \(file.reason)", metadata: facts(of: file))
    case .unremovable(let file):
      logger.warning("collected, but cannot be removed: \(file.error)", metadata: ["file": "\(file.name)"])
    }
  }

  private static func facts(of file: LeftFile) -> Logger.Metadata {
    var facts: Logger.Metadata = ["file": "\(file.name)"]
    if let advice = file.advice { facts["advice"] = "\(advice)" }
    return facts
  }
}

/// A request to stop; for any thread.
private final class StopRequest: Sendable {
  let value = Atomic(false)
}
