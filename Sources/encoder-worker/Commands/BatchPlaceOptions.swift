import ArgumentParser
import Remote
import SegmentEncoder

/// The place of batches that an operator looks after: a spool, or a store with its queue.
struct BatchPlaceOptions: ParsableArguments {
  @Option(help: .setting(SpoolOptions.spoolHelp, valueName: "dir", place: .spool), completion: .directory)
  var spool: String?

  @Option(help: .call(RemoteOptions.queueHelp, valueName: "url"))
  var queue: QueueAddress?

  @Option(
    help: .setting(
      RemoteOptions.storeHelp, valueName: "url",
      example: "s3://bucket", place: .store),
    transform: S3Location.init(_:))
  var store: S3Location?

  @OptionGroup var access: StoreAccess

  func validate() throws { try queue?.validate("--queue") }

  /// - Throws: wrong usage unless the call names one place.
  func requireOne() throws {
    guard isOfStore else {
      if spool == nil { throw ValidationError("--spool DIR is missing, or --queue and --store") }
      return
    }
    if store == nil { throw ValidationError("--queue and --store belong together") }
    if CallOptions.has("--spool") { throw ValidationError("--spool, or --queue and --store: one or the other") }
  }

  /// Whether the call is about a store. A store of a file or of the environment does not count beside a spool.
  var isOfStore: Bool {
    queue != nil || store != nil && (spool == nil || CallOptions.has("--store"))
  }
}
