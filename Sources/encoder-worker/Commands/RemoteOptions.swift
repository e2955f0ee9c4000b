import ArgumentParser
import FileSystem
import Remote
import SegmentEncoder
import Sessions
import WorkQueues

/// A queue and a store, used instead of a spool.
struct RemoteOptions: ParsableArguments {
  @Option(
    help: .setting(
      "Redis stream with the batch names: redis://[[USER]:PASSWORD@]HOST[:PORT][/DB][?stream=NAME], or unix:///SOCKET[?stream=NAME].",
      valueName: "url", example: "redis://localhost", place: .store, secret: .queue))
  var queue: RedisURL?

  @Option(
    help: .setting(
      "Object store of batches and sessions: s3://BUCKET[/PREFIX]. Its address and credentials are set as for Amazon's tools.",
      valueName: "url", example: "s3://bucket", place: .store),
    transform: S3Location.init(_:))
  var store: S3Location?

  @OptionGroup var access: StoreAccess

  @Flag(help: .setting("Allow a Redis without persistence; run reconcile often to queue lost batches again."))
  var allowNonDurableQueue = false

  func validate() throws {
    // The parser would repeat a password in its message.
    try queue?.validate()
    guard (queue == nil) == (store == nil) else {
      throw ValidationError(queue == nil ? "--store works with a --queue" : "--queue works with a --store")
    }
  }

  /// Connects to the queue and the store.
  ///
  /// - Parameter isOverdue: whether requests to the store have to end.
  /// - Returns: nil if there are no such options.
  func connect(
    as worker: WorkerID, lease: Int, isOverdue: @escaping @Sendable () -> Bool = { false }
  ) throws -> RemoteBackends? {
    guard let queue, let store else { return nil }
    return RemoteBackends(
      names: try RedisStream(
        queue, consumer: "\(worker)", store: "\(store)", lease: lease,
        allowsNonDurable: allowNonDurableQueue,
        warn: { say("encoder-worker: \($0)", .warning) }),
      objects: try S3Client(store, access.settings(), isOverdue: isOverdue))
  }
}

/// A queue and a store that are connected.
struct RemoteBackends {
  let names: RedisStream
  let objects: S3Client
  /// The store's name in messages.
  var name: String { "\(objects.location)" }
  var batches: ObjectBatchRepository { ObjectBatchRepository(objects, name: name) }
}
