import ArgumentParser
import FileSystem
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
    @Option(help: .setting("The spool.", valueName: "dir", place: .spool), completion: .directory)
    var spool: String

    @OptionGroup var settings: SettingsOption

    func open() throws -> Quarantine { Quarantine(of: try Spool(opening: spool)) }
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
    @OptionGroup var selection: NamedItems

    func execute() throws {
      let quarantine = try quarantine.open()
      try selection.forEach(all: quarantine.batches, named: quarantine.batch) { batch in
        answer("\(batch.name): waits again as \(try quarantine.retry(batch))".oneLine)
      }
    }
  }

  struct Purge: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "purge", abstract: "Remove batches for good, with their reasons.")

    @OptionGroup var quarantine: SpoolOption
    @OptionGroup var options: PurgeOptions

    func execute() throws {
      let quarantine = try quarantine.open()
      try options.purge(all: quarantine.batches, named: quarantine.batch, name: \.path) { try quarantine.purge($0) }
    }
  }
}
