import FileSystem
import WorkQueues

/// The address of a queue of batches: a Redis stream or an SQS queue. It may hold a password, so no message repeats it.
package struct QueueAddress: Sendable, CustomStringConvertible {
  enum Kind: Sendable {
    case redis(RedisURL)
    case sqs(SQSAddress)
  }

  /// nil if the address is invalid.
  let kind: Kind?
  /// The reason why the address is invalid; nil if it is valid.
  package let fault: Failure?

  /// Accepts any argument; ``fault`` says why one is invalid. The parser would print a refused value, with its password.
  package init(argument: String) {
    let scheme = argument.prefix { $0 != ":" }.lowercased()
    switch scheme {
    case "sqs", "https", "http":
      do throws(Failure) {
        (kind, fault) = (.sqs(try SQSAddress(argument)), nil)
      } catch {
        (kind, fault) = (nil, error)
      }
    case "redis", "rediss", "unix":
      let url = RedisURL(argument: argument)
      kind = url.fault == nil ? .redis(url) : nil
      fault = url.fault
    default:
      (kind, fault) = (nil, Failure.queueAddress("it has to be \(RedisURL.form), or \(SQSAddress.form)"))
    }
  }

  /// Without user and password.
  package var description: String {
    switch kind {
    case .redis(let url): url.description
    case .sqs(let address): address.description
    case nil: "an invalid address"
    }
  }
}

extension QueueAddress {
  /// The longest lease in seconds; nil if there is no bound.
  package var maximumLeaseS: Int? {
    if case .sqs? = kind { HeldMessages.maximumLeaseS } else { nil }
  }
}

extension QueueAddress {
  /// Connects to the queue.
  ///
  /// - Parameters:
  ///   - worker: this process's name, unique for each run.
  ///   - store: the store of the batches.
  ///   - settings: those of the store.
  ///   - queueSettings: returns those of SQS, which signs requests even if the store's are unsigned.
  ///   - lease: seconds without renewal after which other workers get a batch.
  ///   - allowsNonDurable: whether to warn of a Redis that may lose data, instead of refusing it.
  ///   - isOverdue: whether requests for the work on batches have to end.
  ///   - warn: called with a line for the log.
  /// - Throws: ``Failure``, and the errors of the queue.
  package func open(
    as worker: WorkerID, _ role: QueueRole, beside store: S3Location, _ settings: S3Settings,
    queueSettings: () throws -> AWSSettings, lease: Int, allowsNonDurable: Bool,
    isOverdue: @escaping @Sendable () -> Bool, warn: @escaping @Sendable (String) -> Void
  ) throws -> any NameQueue {
    switch kind {
    case .redis(let url):
      return try RedisStream(
        url, consumer: "\(worker)", store: "\(store)", lease: lease, allowsNonDurable: allowsNonDurable, warn: warn)
    case .sqs(let address):
      let grace = StopGrace(after: isOverdue)
      let client = try SQSClient(address, queueSettings()) { grace.isOver }
      let notes = try S3Client(store, settings) { grace.isOver }
      return try SQSQueue(client, objects: notes, place: store.place, role: role, lease: lease, warn: warn)
    case nil: throw fault ?? Failure.queueAddress("it is invalid")
    }
  }
}

extension QueueAddress {
  /// Returns the numbers of names in the queue. Changes nothing in it.
  ///
  /// Parameters and errors as of ``open(as:_:beside:_:queueSettings:lease:allowsNonDurable:isOverdue:warn:)``.
  package func status(
    beside store: S3Location, queueSettings: () throws -> AWSSettings, isOverdue: @escaping @Sendable () -> Bool
  ) throws -> NameQueueStatus {
    switch kind {
    case .redis(let url): try RedisStream.status(of: url, store: "\(store)")
    case .sqs(let address): try SQSQueue.status(of: SQSClient(address, queueSettings(), isOverdue: isOverdue))
    case nil: throw fault ?? Failure.queueAddress("it is invalid")
    }
  }
}

extension Failure {
  /// An invalid address of a queue. The message does not repeat it: it may hold a password.
  static func queueAddress(_ cause: String) -> Failure { Failure(.usage, "", "the queue's address", cause) }
}
