import ArgumentParser
import FrameBatches
import ISOMedia
import SegmentEncoder
import WorkQueues

struct QuarantineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "quarantine",
    abstract: "What could not be encoded, and why; try it again, or remove it.",
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
  struct Choice: ParsableArguments {
    @Argument(help: ArgumentHelp("Batches by their names in quarantine.", valueName: "name"))
    var names: [String] = []

    @Flag(help: "All that are there.")
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
      commandName: "list", abstract: "A line for each batch: when it came there, and why.")

    @OptionGroup
    var place: Place

    @Flag(help: "Results as JSON, one object a line.")
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
      commandName: "show", abstract: "All that is known of batches in quarantine.")

    @OptionGroup
    var place: Place

    @Argument(help: ArgumentHelp("Batches by their names in quarantine.", valueName: "name"))
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
      commandName: "retry", abstract: "Put batches back where they are owed.")

    @OptionGroup
    var place: Place

    @OptionGroup
    var choice: Choice

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
    var choice: Choice

    @Flag(help: "Only say what would be removed.")
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
