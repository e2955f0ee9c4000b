import ArgumentParser
import FileSystem
import Remote
import SegmentEncoder
import Sessions
import WorkQueues

/// A queue and a store, used instead of a spool.
struct RemoteOptions: ParsableArguments {
  static let queueHelp =
    "Queue of batch names: redis://HOST, unix:///SOCKET, sqs://QUEUE or https://…. See docs/queue-and-store.md."
  static let storeHelp = "Object store of batches and sessions: s3://BUCKET[/PREFIX]."

  @Option(
    help: .setting(
      Self.queueHelp,
      valueName: "url", example: "redis://localhost", place: .store, secret: .queue))
  var queue: QueueAddress?

  @Option(
    help: .setting(
      Self.storeHelp,
      valueName: "url", example: "s3://bucket", place: .store),
    transform: S3Location.init(_:))
  var store: S3Location?

  @OptionGroup var access: StoreAccess

  @Flag(help: .setting("Allow a Redis without persistence; run reconcile often to queue lost batches again."))
  var allowNonDurableQueue = false

  func validate() throws {
    // The parser would repeat a password in its message.
    try queue?.validate("--queue")
    guard (queue == nil) == (store == nil) else {
      throw ValidationError(queue == nil ? "--store works with a --queue" : "--queue works with a --store")
    }
  }

  /// - Throws: wrong usage if the queue knows no such lease.
  func validate(lease: Int) throws {
    if let maximum = queue?.maximumLeaseS { try require("--lease for this queue", lease, in: 1...maximum, "seconds") }
  }

  /// Connects to the queue and the store.
  ///
  /// - Parameters:
  ///   - role: what this process does with the queue.
  ///   - isOverdue: whether requests have to end.
  /// - Returns: nil if there are no such options.
  func connect(
    as worker: WorkerID, _ role: QueueRole = .producer, lease: Int,
    isOverdue: @escaping @Sendable () -> Bool = { false }
  ) throws -> RemoteBackends? {
    guard let queue, let store else { return nil }
    return try RemoteBackends(
      queue, store, access, as: worker, role, lease: lease, allowsNonDurable: allowNonDurableQueue,
      isOverdue: isOverdue)
  }
}

extension S3Client {
  /// The number of requests, by their kind.
  var countsByKind: [String: Int] {
    let counted = requests
    return Self.kinds.reduce(into: [:]) { $0[$1] = counted[$1] ?? 0 }
  }
}

/// A queue and a store that are connected.
struct RemoteBackends {
  let names: any NameQueue
  let objects: S3Client
  /// The store's name in messages.
  var name: String { "\(objects.location)" }
  var batches: ObjectBatchRepository { ObjectBatchRepository(objects, name: name) }

  /// Connects to a queue and a store.
  ///
  /// - Parameter allowsNonDurable: whether to warn of a Redis that may lose data, instead of refusing it.
  init(
    _ queue: QueueAddress, _ store: S3Location, _ access: StoreAccess, as worker: WorkerID,
    _ role: QueueRole = .producer,
    lease: Int = Lease.defaultValue, allowsNonDurable: Bool, isOverdue: @escaping @Sendable () -> Bool = { false }
  ) throws {
    let settings = try access.settings()
    names = try queue.open(
      as: worker, role, beside: store, settings, queueSettings: { try access.queueSettings(beside: settings) },
      lease: lease, allowsNonDurable: allowsNonDurable, isOverdue: isOverdue,
      warn: { say("encoder-worker: \($0)", .warning) })
    objects = try S3Client(store, settings, isOverdue: isOverdue)
  }
}
