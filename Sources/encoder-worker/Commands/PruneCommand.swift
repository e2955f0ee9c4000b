import ArgumentParser
import FileSystem
import Glibc
import SegmentEncoder
import Sessions
import WorkQueues

struct PruneCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune",
    abstract: "Remove what dead workers have left behind, and what is too old.",
    discussion: """
      Directories of workers that are gone, drafts, half-published videos, reasons without a batch. With --done, --quarantine or --sessions, also kept batches, batches in quarantine or published sessions that are older than that: 30m, 12h, 7d, 4w. Never what is owed: batches that a dead worker holds are the next worker's. May run beside workers. Where workers of other hosts are there, it watches them for a lease first.
      """)

  @OptionGroup
  var place: SpoolOptions

  @Option(
    help: ArgumentHelp("Remove kept batches that came into SPOOL/done longer ago than this.", valueName: "age"),
    transform: Age.init)
  var done: Age?

  @Option(
    help: ArgumentHelp("Remove batches, and their reasons, that are in quarantine for longer.", valueName: "age"),
    transform: Age.init)
  var quarantine: Age?

  @Option(
    help: ArgumentHelp("Remove sessions of which nothing was published for longer.", valueName: "age"),
    transform: Age.init)
  var sessions: Age?

  @Flag(help: "Only say what would be removed.")
  var dryRun = false

  @Flag(help: "Results as JSON, one object a line.")
  var json = false

  @Option(help: ArgumentHelp("How long workers of other hosts are watched.", valueName: "seconds"))
  var lease = Lease.usual

  @OptionGroup
  var settings: SettingsOption

  func validate() throws {
    guard Lease.range.contains(lease) else { throw ValidationError(Lease.rule) }
  }

  func run() throws {
    try reportingFailures {
      let pruning = try pruning()
      let witness = Witness(lease: lease)
      let others = try pruning.watch(with: witness)
      if others > 0 {
        say("watching \(count(others, "directory", "directories")) of other hosts' workers for \(lease) s")
        sleep(UInt32(lease))
      }
      let (pruned, spared, failures) = pruning.run(with: witness)
      for item in pruned {
        answer(json ? item.json : "\(item.path): \(item.what), \(count(item.bytes, "byte"))".oneLine)
      }
      for path in spared { say("\(path): left, somebody holds its lock") }
      for failure in failures { say("encoder-worker: \(failure)", .error) }
      let bytes = pruned.reduce(0) { $0 + $1.bytes }
      let verb = dryRun ? "would be removed" : "removed"
      say(pruned.isEmpty ? "nothing to remove" : "\(pruned.count) \(verb), \(count(bytes, "byte")) (\(size(bytes)))")
      if let failure = failures.first { throw ExitStatus.of(failure) }
    }
  }

  private func pruning() throws -> Pruning {
    let spool = try Spool(opening: place.spool)
    if let output = place.output {
      let cause =
        !spool.isDirectory(output) ? "no directory" : !spool.allows(output: output) ? "batches lie there" : nil
      if let cause { throw BadTarget(path: output, cause: cause, advice: "name the directory where sessions go") }
    }
    var retention = Retention(nowMs: WallClock.nowMs)
    retention.keptMs = done?.ms
    retention.quarantinedMs = quarantine?.ms
    retention.sessionsMs = sessions?.ms
    return Pruning(spool: spool, output: place.output, retention: retention, isRehearsal: dryRun)
  }
}

/// A number and its unit.
struct Age {
  private static let unitMs: [Character: Int64] = [
    "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000,
  ]
  /// Some thousand years.
  private static let most: Int64 = 1 << 50

  let ms: Int64

  @Sendable init(_ text: String) throws {
    let wrong = ValidationError("\(text): an age is a number above 0 and s, m, h, d or w: 30m, 12h, 7d, 4w")
    guard let unit = text.last.flatMap({ Self.unitMs[$0] }), text.dropLast().utf8.allSatisfy({ 48...57 ~= $0 }),
      let number = Int64(text.dropLast()), (1...Self.most / unit).contains(number)
    else { throw wrong }
    ms = number * unit
  }
}
