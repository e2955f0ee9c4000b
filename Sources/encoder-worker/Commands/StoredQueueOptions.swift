import ArgumentParser
import FileSystem
import Remote
import SegmentEncoder
import Sessions
import WorkQueues

/// A queue and a store for commands that look at them, and do not work in them.
struct StoredQueueOptions: ParsableArguments {
  @Option(
    help: .setting(
      RemoteOptions.queueHelp, valueName: "url", example: "redis://localhost", place: .store, secret: .queue))
  var queue: QueueAddress?

  @Option(
    help: .setting(RemoteOptions.storeHelp, valueName: "url", example: "s3://bucket", place: .store),
    transform: S3Location.init(_:))
  var store: S3Location?

  @OptionGroup var access: StoreAccess

  var isMissing: Bool { queue == nil && store == nil }

  func validate() throws { try queue?.validate("--queue") }

  /// - Throws: wrong usage if there is one without the other.
  func requireBoth() throws {
    guard (queue == nil) == (store == nil) else {
      throw ValidationError(queue == nil ? "--store works with a --queue" : "--queue works with a --store")
    }
  }

  /// - Parameter isOverdue: whether requests have to end.
  func open(isOverdue: @escaping @Sendable () -> Bool) throws -> Opened {
    guard let queue, let store else { throw MissingOption.error("--queue <url>", RemoteOptions.queueHelp) }
    let settings = try access.settings()
    return Opened(queue: queue, objects: try S3Client(store, settings, isOverdue: isOverdue)) {
      try queue.status(
        beside: store, queueSettings: { try access.queueSettings(beside: settings) }, isOverdue: isOverdue)
    }
  }

  /// A queue that is not joined, and a store.
  struct Opened {
    let queue: QueueAddress
    let objects: S3Client
    /// Asks the queue for its numbers.
    let names: () throws -> NameQueueStatus
    /// The store's name in messages.
    var name: String { "\(objects.location)" }
  }
}
