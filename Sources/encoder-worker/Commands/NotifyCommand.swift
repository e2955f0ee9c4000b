import ArgumentParser
import FileSystem
import Notifying
import Remote
import SegmentEncoder
import WorkQueues

struct NotifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "notify",
    abstract: "List, show, retry or remove events that their receiver has refused.",
    subcommands: [List.self, Show.self, Retry.self, Purge.self],
    defaultSubcommand: List.self)

  struct PlaceOptions: ParsableArguments {
    @Option(help: .setting("The spool.", valueName: "dir", place: .spool), completion: .directory)
    var spool: String?

    @Option(
      help: .setting(
        "The object store, instead of a spool: s3://BUCKET[/PREFIX].", valueName: "url", example: "s3://bucket",
        place: .store),
      transform: S3Location.init(_:))
    var store: S3Location?

    @OptionGroup var access: StoreAccess
    @OptionGroup var settings: SettingsOption

    func validate() throws {
      guard (spool == nil) != (store == nil) else {
        throw ValidationError(spool == nil ? "--spool DIR is missing, or --store" : "--spool or --store: one of them")
      }
    }

    func open() throws -> any NotificationStore {
      if let store { return ObjectNotifications(try S3Client(store, access.settings()), name: "\(store)") }
      return SpoolNotifications(in: try Spool(opening: spool ?? "").notifications)
    }
  }

  struct List: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List refused events with date and reason.")

    @OptionGroup var place: PlaceOptions
    @OptionGroup var results: ResultOptions

    func execute() throws {
      let events = try place.open().all()
      if events.isEmpty && !results.json { return say("no refused events") }
      results.print(events, head: ["key", "since", "event", "batch", "why"]) { event in
        event.json.line
      } row: { event in
        [event.key, event.timeMs.dateText, event.text("event") ?? "?", event.text("batch") ?? "?", event.cause]
      }
    }
  }

  struct Show: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Print refused events as they were sent, one object a line.")

    @OptionGroup var place: PlaceOptions

    @Argument(help: ArgumentHelp("Keys of refused events.", valueName: "key"))
    var keys: [String]

    func execute() throws {
      let store = try place.open()
      for key in keys { answer(try store.notification(key).event) }
    }
  }

  struct Retry: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "retry", abstract: "Send refused events again, each with its key.")

    @OptionGroup var place: PlaceOptions
    @OptionGroup var selection: NamedItems

    @Option(
      help: .setting("The address of the receiver.", valueName: "url", example: "http://localhost", secret: .receiver))
    var notify: HTTPAddress

    @OptionGroup var secret: SecretOption

    func validate() throws { try notify.validate("--notify") }

    func execute() throws {
      let store = try place.open()
      let receiver = try WebhookReceiver(notify, secret)
      try selection.forEach(all: store.all, named: store.notification) { event in
        switch receiver.send(
          key: event.key, event: event.event, traceParent: event.traceParent, cancellation: .never)
        {
        case .accepted: try store.remove(event.key)
        case .refused(let cause): throw StillRefused(key: event.key, receiver: receiver.name, cause: cause)
        case .failed(let cause, _): throw NotDelivered(key: event.key, receiver: receiver.name, cause: cause)
        case .cancelled: throw NotDelivered(key: event.key, receiver: receiver.name, cause: "cancelled")
        }
        answer("\(event.key): delivered to \(receiver.name)")
      }
    }
  }

  struct Purge: ReportingCommand {
    static let configuration = CommandConfiguration(
      commandName: "purge", abstract: "Remove refused events for good.")

    @OptionGroup var place: PlaceOptions
    @OptionGroup var options: PurgeOptions

    func execute() throws {
      let store = try place.open()
      try options.purge(all: store.all, named: store.notification, name: \.key) { try store.remove($0.key) }
    }
  }
}

/// The receiver took no event.
private struct NotDelivered: Error, CustomStringConvertible {
  let key: String
  let receiver: String
  let cause: String
  var description: String { "send \(key) to \(receiver): \(cause); nothing is lost, run it again" }
}
