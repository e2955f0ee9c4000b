import ArgumentParser

/// The queue of batches: a spool, or a queue and a store.
struct QueueOptions: ParsableArguments {
  @Option(
    help: .setting(SpoolOptions.spoolHelp, valueName: "dir", place: .spool),
    completion: .directory)
  var spool: String?

  @OptionGroup var remote: RemoteOptions

  var isMissing: Bool { spool == nil && remote.queue == nil }

  /// - Throws: wrong usage unless there is exactly one of both. Commands call this after their other checks of usage.
  func requireOne() throws {
    if isMissing { throw ValidationError("--spool DIR is missing, or --queue and --store") }
    if spool != nil && remote.queue != nil {
      throw ValidationError("--spool, or --queue and --store: one or the other")
    }
  }
}
