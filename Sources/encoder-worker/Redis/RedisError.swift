import FileSystem
import SegmentEncoder

/// A queue could not be asked, or would not do what it was asked: the environment's failure, never a batch's.
struct RedisError: EnvironmentFailure, CustomStringConvertible {
  /// Without its password.
  let queue: String
  /// The operation.
  let operation: String
  let cause: String
  let advice: String

  init(_ queue: RedisURL, _ operation: String, _ cause: String, advice: String) {
    self.queue = queue.description
    self.operation = operation
    self.cause = cause
    self.advice = advice
  }

  /// - Parameter refusal: as Redis words it: `OOM command not allowed …`.
  init(_ queue: RedisURL, _ operation: String, refusal: String) {
    self.init(queue, operation, refusal, advice: Self.advice(on: refusal))
  }

  var description: String { "\(operation), in the queue \(queue): \(cause); \(advice)" }

  private static func advice(on refusal: String) -> String {
    switch refusal.prefix(while: { $0 != " " }) {
    case "NOAUTH", "WRONGPASS": "give its user and password: redis://USER:PASSWORD@HOST"
    case "NOPERM": "allow this user the commands, and the keys STREAM and {STREAM}:*"
    case "OOM": "give Redis more memory (maxmemory), then it goes on"
    case "MISCONF": "Redis cannot write its files: see its log, then it goes on"
    case "LOADING": "it has just been started, and goes on when it has read its files"
    case "READONLY", "MASTERDOWN": "this is a replica: name the primary"
    case "MOVED", "ASK", "CLUSTERDOWN": "name the node of the cluster that has the stream's slot"
    case "WRONGTYPE": "somebody else's key has that name: choose another one with ?stream=NAME"
    default: "see Redis' documentation and log"
    }
  }
}

/// A Redis that came back as another one than it was is the environment's failure as well.
extension NonDurableRedis: EnvironmentFailure {}

/// A stream whose batches lie in another store: their names would mean nothing here, or something else.
struct StreamOfAnotherStore: EnvironmentFailure, CustomStringConvertible {
  let queue: String
  /// The key that says so.
  let key: String
  let store: String
  let asked: String

  var description: String {
    "the queue \(queue) is that of the store \(store), not of \(asked); name another stream with ?stream=NAME, or, if the store has moved, delete the key \(key)"
  }
}
