import ArgumentParser
import FileSystem
import SegmentEncoder
import WorkQueues

struct ReconcileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reconcile",
    abstract: "Queue again the batches in a store that no queue entry names.",
    discussion: """
      Every batch in the store's incoming/ waits for a worker. This command queues those that have no entry: after the queue has lost its data, or when producers write objects only. It is safe at any time.
      """)

  @OptionGroup
  var remote: RemoteOptions

  @Flag(help: "Print the result as JSON.")
  var json = false

  @OptionGroup
  var settings: SettingsOption

  func validate() throws {
    if remote.queue == nil { throw ValidationError("--queue URL and --store URL are missing") }
  }

  func run() throws {
    try reportingFailures {
      let signals = try TerminationSignals()
      guard let remote = try remote.connect(as: WorkerID(), lease: Lease.defaultValue) else { return }
      defer { remote.names.leave() }
      var progress = Progress()
      defer { progress.finish() }
      let result = try ObjectBatchRepository(remote.objects, name: remote.name).reconcile(with: remote.names) { found in
        progress.show(found.owed, of: found.owed, "batches")
        if signals.takePending() { throw Cancelled() }
      }
      progress.finish()
      answer(
        json
          ? result.json
          : "\(count(result.owed, "batch is", "batches are")) waiting, \(result.queued) of them queued now")
    }
  }
}
