import ArgumentParser
import FileSystem
import FrameBatches
import Remote
import SegmentEncoder
import WorkQueues

extension QuarantineCommand {
  struct Retry: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "retry",
      abstract: "Put batches back into the queue, or send refused events again, each with its key.")

    static let page = HelpPage(
      example: "quarantine retry --spool spool --all",
      required: [["spool"], ["queue", "store"], ["events", "store"]],
      common: ["all", "accept", "notify"])

    @Flag(help: "Events that their receiver has refused, instead of batches.")
    var events = false

    @Option(help: .setting(SpoolOptions.spoolHelp, valueName: "dir", place: .spool), completion: .directory)
    var spool: String?

    @OptionGroup var settings: SettingsOption

    @Option(help: .call(RemoteOptions.queueHelp, valueName: "url"))
    var queue: QueueAddress?

    @Option(
      help: .setting(
        RemoteOptions.storeHelp, valueName: "url",
        example: "s3://bucket", place: .store),
      transform: S3Location.init(_:))
    var store: S3Location?

    @OptionGroup var access: StoreAccess

    @Flag(help: LossOption.help)
    var accept = false

    @OptionGroup var selection: NamedItems

    @Option(
      help: .setting(
        "Send events to this address as HTTP POSTs, each at least once.", valueName: "url", example: "http://localhost",
        secret: .receiver, isNeeded: true))
    var notify: HTTPAddress?

    @OptionGroup var secret: SecretOption

    func validate() throws {
      try notify?.validate("--notify")
      try queue?.validate("--queue")
      if events {
        if queue != nil || accept { throw ValidationError("--queue and --accept do not work with --events") }
        try RefusedEvents.validate(spool: spool, store: store)
        if notify == nil { throw MissingOption.error("--notify <url>", "The address of the receiver.") }
        return
      }
      try CallOptions.refuse("--notify", "--notify-secret-file", without: "--events")
      if spool == nil && queue == nil { throw ValidationError("--spool DIR is missing, or --queue and --store") }
      if queue == nil {
        try CallOptions.refuse("--store", without: "--queue")
      } else if CallOptions.has("--spool") {
        throw ValidationError("--spool, or --queue and --store: one or the other")
      }
      if queue != nil && store == nil { throw ValidationError("--queue and --store belong together") }
    }

    func execute() throws {
      if events {
        let store = try RefusedEvents.open(spool: spool, store: store, access)
        guard let notify else { return }
        return try RefusedEvents.retry(selection, in: store, WebhookReceiver(notify, secret))
      }
      if let queue, let store { return try retry(in: queue, store) }
      let quarantine = Quarantine(of: try Spool(opening: spool ?? ""))
      try selection.forEach(all: quarantine.batches, named: quarantine.batch) { batch in
        answer("\(batch.name): waits again as \(try quarantine.retry(batch, accepting: accept))".oneLine)
      }
    }

    private func retry(in queue: QueueAddress, _ store: S3Location) throws {
      // The batch is in the store again before its name is in the queue: a queue that loses it costs a reconcile.
      let remote = try RemoteBackends(queue, store, access, as: WorkerID(), allowsNonDurable: true)
      defer { remote.names.leave() }
      try selection.forEach(all: remote.batches.quarantined.names, named: \.self) { name in
        let former = try remote.batches.retry(name, accepting: accept, in: remote.names)
        answer("\(name): waits again as \(former)".oneLine)
      }
    }
  }
}
