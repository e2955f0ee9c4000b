import ArgumentParser
import Glibc
import SegmentEncoder

struct PruneCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune",
    abstract: "Remove what dead workers have left behind.",
    discussion: """
      Directories of workers that are gone, drafts, half-published videos, reasons without a batch. Never what is owed, published or in quarantine: batches that a dead worker holds are the next worker's. May run beside workers. Where workers of other hosts are there, it watches them for a lease first.
      """)

  @Option(help: ArgumentHelp("The spool.", valueName: "dir"), completion: .directory)
  var spool: String

  @Option(
    name: .shortAndLong, help: ArgumentHelp("Where sessions go. (default: SPOOL/output)", valueName: "dir"),
    completion: .directory)
  var output: String?

  @Flag(help: "Only say what would be removed.")
  var dryRun = false

  @Option(help: ArgumentHelp("How long workers of other hosts are watched.", valueName: "seconds"))
  var lease = Lease.usual

  @OptionGroup
  var settings: SettingsOption

  func validate() throws {
    guard Lease.range.contains(lease) else { throw ValidationError(Lease.rule) }
  }

  func run() throws {
    try reportingFailures {
      let pruning = Pruning(spool: try Spool(opening: spool), output: output, isRehearsal: dryRun)
      let witness = Witness(lease: lease)
      let others = try pruning.watch(with: witness)
      if others > 0 {
        say("watching \(count(others, "directory", "directories")) of other hosts' workers for \(lease) s")
        sleep(UInt32(lease))
      }
      let (pruned, failures) = pruning.run(with: witness)
      for item in pruned { answer("\(item.path): \(item.what)") }
      for failure in failures { say("encoder-worker: \(failure)") }
      if let failure = failures.first { throw ExitStatus.of(failure) }
    }
  }
}
