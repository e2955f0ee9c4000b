import ArgumentParser
import FileSystem
import Glibc
import SegmentEncoder
import Sessions
import WorkQueues

struct PruneCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune",
    abstract: "Remove leftovers of dead workers, and everything older than an age.",
    discussion: """
      Removes directories of dead workers, drafts, videos without a manifest and reasons without a batch. With --done, --quarantine or --sessions, it also removes batches and sessions that are older than an age: 30m, 12h, 7d, 4w. It never removes batches that wait or are claimed. It may run beside workers, and first watches workers of other hosts for a lease.
      """)

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

  @Flag(help: "Refuse later batches of the sessions that --sessions removes, as delete does.")
  var tombstones = false

  @Flag(help: "Print what would be removed, and remove nothing.")
  var dryRun = false

  @OptionGroup var results: ResultOptions

  @Option(
    help: .setting(
      "Watch workers of other hosts for this many seconds before they count as dead.", valueName: "seconds"))
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
    let (pruned, skipped, failures) = pruning.run(with: monitor)
    for item in pruned {
      results.print(json: item.json, text: "\(item.path): \(item.what), \(count(item.bytes, "byte"))".oneLine)
    }
    for path in skipped { say("\(path): left, another process holds its lock") }
    for failure in failures { say("encoder-worker: \(failure)", .error) }
    let bytes = pruned.reduce(0) { $0 + $1.bytes }
    let verb = dryRun ? "would be removed" : "removed"
    say(pruned.isEmpty ? "nothing to remove" : "\(pruned.count) \(verb), \(count(bytes, "byte")) (\(size(bytes)))")
    if let failure = failures.first { throw ExitStatus.of(failure) }
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
    return Pruning(
      spool: spool, output: directories.output, retention: retention,
      tombstoneReason: tombstones ? "older than the maximum age of prune" : nil, isDryRun: dryRun)
  }
}

/// An age: a number with its unit, such as `12h`.
struct Age {
  private static let unitMs: [Character: Int64] = [
    "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000,
  ]
  /// The maximum, about 35 000 years: no time minus an age overflows.
  private static let maximumMs: Int64 = 1 << 50

  let ms: Int64

  @Sendable init(_ text: String) throws {
    let wrong = ValidationError("\(text): an age is a number above 0 and s, m, h, d or w: 30m, 12h, 7d, 4w")
    guard let unit = text.last.flatMap({ Self.unitMs[$0] }), text.dropLast().utf8.allSatisfy({ 48...57 ~= $0 }),
      let number = Int64(text.dropLast()), (1...Self.maximumMs / unit).contains(number)
    else { throw wrong }
    ms = number * unit
  }
}
