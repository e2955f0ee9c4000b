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

  struct Place: ParsableArguments {
    @Option(help: ArgumentHelp("The spool.", valueName: "dir"), completion: .directory)
    var spool: String

    @OptionGroup
    var settings: SettingsOption

    func open() throws -> Quarantine { Quarantine(of: try Spool(opening: spool)) }
  }

  /// Which of them.
  struct BatchArgument: ParsableArguments {
    @Argument(help: ArgumentHelp("Names of batches in quarantine.", valueName: "name"))
    var names: [String] = []

    @Flag(help: "All batches in quarantine.")
    var all = false

    func validate() throws {
      guard all != !names.isEmpty else { throw ValidationError("name batches, or say --all") }
    }

    /// One that fails holds up no other.
    func forEach(of quarantine: Quarantine, _ body: (Quarantine.Batch) throws -> Void) throws {
      var first: (any Error)?
      for batch in try all ? quarantine.batches() : names.map(quarantine.batch) {
        do {
          try body(batch)
        } catch {
          if let first { say("encoder-worker: \(first)", .error) }
          first = error
        }
      }
      if let first { throw first }
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List quarantined batches with date and reason.")

    @OptionGroup
    var place: Place

    @Flag(help: "Print results as JSON, one object a line.")
    var json = false

    func run() throws {
      try reportingFailures {
        let batches = try place.open().batches()
        if json {
          for batch in batches { answer(batch.json) }
        } else if batches.isEmpty {
          say("nothing in quarantine")
        } else {
          let rows = batches.map { batch in
            [
              batch.name, batch.timeMs?.dateText ?? "",
              "\(batch.text("operation") ?? "?"): \(batch.text("cause") ?? "no reason beside it")",
            ]
          }
          answer(table([["batch", "since", "why"]] + rows))
        }
      }
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Show quarantined batches in full.")

    @OptionGroup
    var place: Place

    @Argument(help: ArgumentHelp("Names of batches in quarantine.", valueName: "name"))
    var names: [String]

    func run() throws {
      try reportingFailures {
        let quarantine = try place.open()
        for name in names {
          let batch = try quarantine.batch(name)
          let rows = ["batch", "operation", "file", "cause", "advice", "worker"].compactMap { member in
            batch.text(member).map { [member, $0] }
          }
          answer(table([["path", batch.path], ["since", batch.timeMs?.dateText ?? "?"]] + rows))
        }
      }
    }
  }

  struct Retry: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "retry", abstract: "Put batches back into the queue.")

    @OptionGroup
    var place: Place

    @OptionGroup
    var choice: BatchArgument

    func run() throws {
      try reportingFailures {
        let quarantine = try place.open()
        try choice.forEach(of: quarantine) { batch in
          answer("\(batch.name): waits again as \(try quarantine.retry(batch))".oneLine)
        }
      }
    }
  }

  struct Purge: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "purge", abstract: "Remove batches for good, with their reasons.")

    @OptionGroup
    var place: Place

    @OptionGroup
    var choice: BatchArgument

    @Flag(help: "Print what would be removed, and remove nothing.")
    var dryRun = false

    func run() throws {
      try reportingFailures {
        let quarantine = try place.open()
        try choice.forEach(of: quarantine) { batch in
          if !dryRun { try quarantine.purge(batch) }
          answer("\(batch.path): \(dryRun ? "would be removed" : "removed")".oneLine)
        }
      }
    }
  }
}
