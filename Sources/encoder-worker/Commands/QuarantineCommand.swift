import ArgumentParser
import FileSystem
import FrameBatches
import ISOMedia
import Notifying
import Remote
import SegmentEncoder
import WorkQueues

struct QuarantineCommand: DescribedCommand {
  static let configuration = CommandConfiguration(
    commandName: "quarantine",
    abstract: "List, show, retry or remove failed batches and events.",
    subcommands: [List.self, Show.self, Retry.self, Purge.self],
    defaultSubcommand: List.self)

  static let page = HelpPage(example: "quarantine --spool spool")

  /// The place of batches in quarantine, or of events that their receiver has refused.
  struct PlaceOptions: ParsableArguments {
    @Flag(help: "Events that their receiver has refused, instead of batches.")
    var events = false

    @OptionGroup var place: BatchPlaceOptions
    @OptionGroup var settings: SettingsOption

    func validate() throws {
      guard events else { return try place.requireOne() }
      if place.queue != nil { throw ValidationError("--queue does not work with --events") }
      try RefusedEvents.validate(spool: place.spool, store: place.store)
    }

    func open() throws -> any BatchQuarantine {
      guard place.isOfStore, let store = place.store else {
        return Quarantine(of: try Spool(opening: place.spool ?? ""))
      }
      return ObjectBatchRepository(try S3Client(store, place.access.settings()), name: "\(store)").quarantined
    }

    func openEvents() throws -> RefusedNotifications {
      try RefusedEvents.open(spool: place.spool, store: place.store, place.access)
    }
  }
}

extension QuarantineCommand {
  struct List: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List quarantined batches, or refused events, with date and reason.")

    static let page = HelpPage(
      example: "quarantine list --spool spool", required: [["spool"], ["queue", "store"], ["events", "store"]],
      common: ["json"])

    @OptionGroup var place: PlaceOptions
    @OptionGroup var results: ResultOptions

    func execute() throws {
      if place.events { return try RefusedEvents.list(place.openEvents(), results) }
      let batches = try place.open().batches()
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
      commandName: "show",
      abstract: "Show quarantined batches in full, or refused events as they were sent, one object a line.")

    static let page = HelpPage(
      example: "quarantine show --spool spool bad.tar",
      required: [["spool"], ["queue", "store"], ["events", "store"]],
      common: ["report"])

    @OptionGroup var place: PlaceOptions
    @OptionGroup var report: ReportOptions
    @OptionGroup var sandbox: SandboxOptions

    @Argument(help: ArgumentHelp("Names of batches in quarantine, or keys of refused events.", valueName: "name"))
    var names: [String]

    func validate() throws {
      guard report.report != nil else { return }
      if place.events { throw ValidationError("--report is about batches; leave out --events") }
      if names.count > 1 { throw ValidationError("--report is about one batch; name that") }
    }

    func execute() throws {
      if place.events {
        let store = try place.openEvents()
        for key in names { answer(try store.notification(key).event) }
        return
      }
      var options = BatchEncoder.Options()
      // Decoders are made before the process has threads.
      if report.report != nil { options.decoders = try sandbox.decoders(options.limits) }
      let quarantine = try place.open()
      for name in names {
        let batch = try quarantine.batch(name)
        let rows = ["batch", "operation", "file", "cause", "advice", "worker"].compactMap { member in
          batch.text(member).map { [member, $0] }
        }
        answer(table([["path", batch.path], ["since", batch.timeMs?.dateText ?? "?"]] + rows))
        if let directory = report.report { try write(batch, of: quarantine, options, to: directory) }
      }
    }

    /// Writes the report to hand on.
    private func write(
      _ batch: Quarantine.Batch, of quarantine: any BatchQuarantine, _ options: BatchEncoder.Options,
      to directory: String
    ) throws {
      let written = try SessionStoreOptions.withScratch { scratch in
        try BatchReport.write(
          on: quarantine.localPath(of: batch, in: scratch, limit: options.limits.fileBytes), reason: batch.reason,
          to: directory, hasPixels: report.pixels, options, ReportOptions.origin(place.settings.config))
      }
      answer(written.text.oneLine)
    }
  }

  struct Purge: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "purge", abstract: "Remove batches for good, with their reasons, or refused events.")

    static let page = HelpPage(
      example: "quarantine purge --spool spool bad.tar",
      required: [["spool"], ["queue", "store"], ["events", "store"]],
      common: ["all", "dry-run"])

    @OptionGroup var place: PlaceOptions
    @OptionGroup var options: PurgeOptions

    func execute() throws {
      if place.events {
        let store = try place.openEvents()
        return try options.purge(all: store.all, named: store.notification, name: \.key) { try store.remove($0.key) }
      }
      let quarantine = try place.open()
      try options.purge(all: quarantine.batches, named: quarantine.batch, name: \.path, quarantine.purge)
    }
  }
}
