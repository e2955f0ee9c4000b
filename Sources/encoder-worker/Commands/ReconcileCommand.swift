import ArgumentParser
import FileSystem
import SegmentEncoder
import WorkQueues

struct ReconcileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reconcile",
    abstract: "Queue again what an object store owes.",
    discussion: """
      Each batch in the store's incoming/ is owed: one that is published, or in quarantine, is removed from there. Those that the queue does not know are added to it: after the queue has lost its data, or where producers only write objects and leave the queue to this. Safe at any time, beside workers and producers, and again.
      """)

  @OptionGroup
  var remote: RemoteOptions

  @Flag(help: "The result as JSON.")
  var json = false

  @OptionGroup
  var settings: SettingsOption

  func validate() throws {
    if remote.queue == nil { throw ValidationError("--queue URL and --store URL are missing") }
  }

  func run() throws {
    try reportingFailures {
      let signals = try TerminationSignals()
      guard let remote = try remote.connect(as: WorkerID(), lease: Lease.usual) else { return }
      defer { remote.names.leave() }
      var progress = Progress()
      defer { progress.finish() }
      let result = try StoredBatches(remote.objects, name: remote.name).reconcile(with: remote.names) { found in
        progress.show(found.owed, of: found.owed, "batches")
        if signals.takePending() { throw Cancelled() }
      }
      progress.finish()
      answer(
        json
          ? result.json
          : "\(count(result.owed, "batch is", "batches are")) owed, \(result.queued) of them queued now")
    }
  }
}
