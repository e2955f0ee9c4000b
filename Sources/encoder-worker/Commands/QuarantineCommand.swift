import ArgumentParser
import FrameBatches
import ISOMedia
import SegmentEncoder
import WorkQueues

struct QuarantineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "quarantine",
    abstract: "List, show, retry or remove batches that cannot be encoded.",
    subcommands: [List.self, Show.self, Retry.self, Purge.self],
    defaultSubcommand: List.self)

  struct SpoolOption: ParsableArguments {
    @Option(help: ArgumentHelp("The spool.", valueName: "dir"), completion: .directory)
    var spool: String

    @OptionGroup var settings: SettingsOption

    func open() throws -> Quarantine { Quarantine(of: try Spool(opening: spool)) }
  }

  /// The batches of a call.
  struct BatchNames: ParsableArguments {
    @Argument(help: ArgumentHelp("Names of batches in quarantine.", valueName: "name"))
    var names: [String] = []

    @Flag(help: "All batches in quarantine.")
    var all = false

    func validate() throws {
      guard all != !names.isEmpty else { throw ValidationError("name batches, or say --all") }
    }

    /// Runs `body` for each batch, also after a failure. Throws the last failure and prints those before it.
    func forEach(of quarantine: Quarantine, _ body: (Quarantine.Batch) throws -> Void) throws {
      var failure: (any Error)?
      for batch in try all ? quarantine.batches() : names.map(quarantine.batch) {
        do {
          try body(batch)
        } catch {
          if let failure { say("encoder-worker: \(failure)", .error) }
          failure = error
        }
      }
      if let failure { throw failure }
    }
  }

  struct List: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List quarantined batches with date and reason.")

    @OptionGroup var quarantine: SpoolOption
    @OptionGroup var results: ResultOptions

    func execute() throws {
      let batches = try quarantine.open().batches()
      if batches.isEmpty && !results.json { return say("nothing in quarantine") }
      results.print(batches, head: ["batch", "since", "why"], json: \.json) { batch in
        [
          batch.name, batch.timeMs?.dateText ?? "",
          "\(batch.text("operation") ?? "?"): \(batch.text("cause") ?? "no reason beside it")",
        ]
      }
    }
  }

  struct Show: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Show quarantined batches in full.")

    @OptionGroup var quarantine: SpoolOption

    @Argument(help: ArgumentHelp("Names of batches in quarantine.", valueName: "name"))
    var names: [String]

    func execute() throws {
      let quarantine = try quarantine.open()
      for name in names {
        let batch = try quarantine.batch(name)
        let rows = ["batch", "operation", "file", "cause", "advice", "worker"].compactMap { member in
          batch.text(member).map { [member, $0] }
        }
        answer(table([["path", batch.path], ["since", batch.timeMs?.dateText ?? "?"]] + rows))
      }
    }
  }

  struct Retry: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "retry", abstract: "Put batches back into the queue.")

    @OptionGroup var quarantine: SpoolOption
    @OptionGroup var selection: BatchNames

    func execute() throws {
      let quarantine = try quarantine.open()
      try selection.forEach(of: quarantine) { batch in
        answer("\(batch.name): waits again as \(try quarantine.retry(batch))".oneLine)
      }
    }
  }

  struct Purge: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "purge", abstract: "Remove batches for good, with their reasons.")

    @OptionGroup var quarantine: SpoolOption
    @OptionGroup var selection: BatchNames

    @Flag(help: "Print what would be removed, and remove nothing.")
    var dryRun = false

    func execute() throws {
      let quarantine = try quarantine.open()
      try selection.forEach(of: quarantine) { batch in
        if !dryRun { try quarantine.purge(batch) }
        answer("\(batch.path): \(dryRun ? "would be removed" : "removed")".oneLine)
      }
    }
  }
}
