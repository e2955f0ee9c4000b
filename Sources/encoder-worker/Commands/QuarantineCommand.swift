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

    @Option(help: .setting("The spool.", valueName: "dir", place: .spool), completion: .directory)
    var spool: String?

    @OptionGroup var settings: SettingsOption

    @Option(help: .call("The workers' queue, for batches in the quarantine of a store.", valueName: "url"))
    var queue: String?

    @Option(help: .call("The workers' store.", valueName: "url"))
    var store: String?

    @Flag(help: "Publish the batches as they are, though most of their pictures, or a session, cannot be shown.")
    var accept = false

    @OptionGroup var selection: NamedItems

    func validate() throws {
      if spool == nil && queue == nil { throw ValidationError("--spool DIR is missing, or --queue and --store") }
      guard (queue == nil) == (store == nil) else { throw ValidationError("--queue and --store belong together") }
    }

    func execute() throws {
      if let queue, let store { return try retry(in: queue, store) }
      let quarantine = Quarantine(of: try Spool(opening: spool ?? ""))
      try selection.forEach(all: quarantine.batches, named: quarantine.batch) { batch in
        answer("\(batch.name): waits again as \(try quarantine.retry(batch, accepting: accept))".oneLine)
      }
    }

    private func retry(in queue: String, _ store: String) throws {
      let remote = try RemoteOptions.parse(["--queue", queue, "--store", store])
      guard let remote = try remote.connect(as: WorkerID(), lease: Lease.defaultValue) else { return }
      defer { remote.names.leave() }
      try selection.forEach(all: remote.batches.quarantined, named: \.self) { name in
        let former = try remote.batches.retry(name, accepting: accept, in: remote.names)
        answer("\(name): waits again as \(former)".oneLine)
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
