import ArgumentParser
import FileSystem
import Glibc
import SegmentEncoder
import Sessions
import WorkQueues

struct PruneCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune",
    abstract: "Remove leftovers of dead workers, and what is too old.",
    discussion: """
      Removes directories of dead workers, drafts, videos without a manifest and reasons without a batch. With --done, --quarantine or --sessions, it also removes batches and sessions that are older than an age: 30m, 12h, 7d, 4w. With --retain or --max-bytes, it removes the first segments of sessions that go on. A session without a publication for that age goes as a whole; with --max-bytes, after a day. A session that has not ended is ended first, and goes with the next run, after a worker has announced that. It never removes batches that wait or are claimed. It may run beside workers, and first watches workers of other hosts for a lease.
      """)

  static let page = HelpPage(
    example: "prune --spool spool --done 7d --dry-run", required: [["spool"]],
    common: ["done", "quarantine", "sessions", "retain", "max-bytes", "dry-run", "json"])

  @OptionGroup var directories: SpoolOptions

  @Option(
    help: ArgumentHelp("Remove kept batches that are older than this: 12h, 7d.", valueName: "age"),
    transform: Age.init)
  var done: Age?

  @Option(
    help: ArgumentHelp("Remove quarantined batches that are older than this.", valueName: "age"),
    transform: Age.init)
  var quarantine: Age?

  @Option(
    help: ArgumentHelp("Remove sessions whose last publication is older than this.", valueName: "age"),
    transform: Age.init)
  var sessions: Age?

  @Option(
    help: .call("Remove segments that were published longer ago than this.", valueName: "age", example: "7d"),
    transform: Age.init)
  var retain: Age?

  @OptionGroup var videos: VideoBytesOption

  @Flag(help: "Refuse later batches of the sessions that --sessions removes, as delete does.")
  var tombstones = false

  @Flag(help: "Show what would be done, and do nothing.")
  var dryRun = false

  @OptionGroup var results: ResultOptions

  @Option(
    help: .setting(
      "Seconds without a heartbeat after which a worker of another host counts as dead.", valueName: "seconds"))
  var lease = Lease.defaultValue

  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if tombstones && sessions == nil { throw ValidationError("--tombstones works with --sessions AGE") }
    try Lease.validate(lease)
  }

  func execute() throws {
    let pruning = try pruning()
    let monitor = HeartbeatMonitor(lease: lease)
    let watched = try pruning.watch(with: monitor)
    if watched > 0 {
      say("watching \(count(watched, "directory", "directories")) of other hosts' workers for \(lease) s")
      sleep(UInt32(lease))
    }
    let (pruned, skipped, ending, failures) = pruning.run(with: monitor)
    for item in pruned {
      results.print(json: item.json, text: "\(item.path): \(item.what), \(size(item.bytes))".oneLine)
    }
    for path in skipped { say("\(path): left, another process holds its lock") }
    for path in ending {
      say("\(path): \(dryRun ? "would end" : "has ended"); prune removes it after a worker has announced that")
    }
    for failure in failures { say("encoder-worker: \(failure)", .error) }
    let bytes = pruned.reduce(0) { $0 + $1.bytes }
    let verb = dryRun ? "would be removed" : "removed"
    say(pruned.isEmpty ? "nothing to remove" : "\(pruned.count) \(verb), \(size(bytes))")
    if let failure = failures.first { throw ExitStatus.afterRetry(of: failure) }
  }

  private func pruning() throws -> Pruning {
    let spool = try Spool(opening: directories.spool)
    if let output = directories.output {
      let cause =
        !DurableFile.isReachableDirectory(output)
        ? "no directory" : !spool.allows(output: output) ? "batches lie there" : nil
      if let cause { throw BadTarget(path: output, cause: cause, advice: "name the directory where sessions go") }
    }
    var retention = Retention(nowMs: WallClock.nowMs)
    retention.keptMs = done?.ms
    retention.quarantinedMs = quarantine?.ms
    retention.sessionsMs = sessions?.ms
    retention.segments = RetentionLimits(ageMs: retain?.ms, maximumBytes: videos.maxBytes)
    return Pruning(
      spool: spool, output: directories.output, retention: retention,
      tombstoneReason: tombstones ? "older than the maximum age of prune" : nil, isDryRun: dryRun)
  }
}
