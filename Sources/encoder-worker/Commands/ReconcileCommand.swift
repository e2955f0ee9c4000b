import ArgumentParser
import FileSystem
import SegmentEncoder
import WorkQueues

struct ReconcileCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "reconcile",
    abstract: "Queue again the batches of a store that no queue names.",
    discussion: """
      Every batch in the store's incoming/ waits for a worker. This command queues those that have no entry: after the queue has lost its data, or when producers write objects only. It is safe at any time. SQS does not tell which names it has: then the command queues all of them, but only while the queue is empty.
      """)

  static let page = HelpPage(
    example: "reconcile --queue redis://localhost --store s3://bucket", required: [["queue", "store"]],
    common: ["json"])

  @OptionGroup var remote: RemoteOptions
  @OptionGroup var results: ResultOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if remote.queue == nil { throw ValidationError("--queue URL and --store URL are missing") }
  }

  func execute() throws {
    guard let result = try withProgress(in: "batches", reconcile) else { return }
    if result.isQueueInUse {
      say("nothing is queued: the queue is in use, and does not tell which names it has; run this when it is empty")
    }
    results.print(
      json: result.json,
      text: "\(count(result.owed, "batch is", "batches are")) waiting, \(result.queued) of them queued now")
  }

  private func reconcile(_ advance: (Int, Int) throws -> Void) throws -> ObjectBatchRepository.ReconcileResult? {
    guard let remote = try remote.connect(as: WorkerID(), lease: Lease.defaultValue) else { return nil }
    defer { remote.names.leave() }
    return try remote.batches.reconcile(with: remote.names) { try advance($0.owed, $0.owed) }
  }
}
