import FileSystem

/// Redis was not reachable, or refused a command: a failure of the environment.
struct RedisError: EnvironmentFailure, CustomStringConvertible {
  /// Without its password.
  let queue: String
  let operation: String
  let cause: String
  let advice: String

  init(_ queue: RedisURL, _ operation: String, _ cause: String, advice: String) {
    self.queue = queue.description
    self.operation = operation
    self.cause = cause
    self.advice = advice
  }

  /// - Parameter refusal: the error of Redis: `OOM command not allowed …`.
  init(_ queue: RedisURL, _ operation: String, refusal: String) {
    self.init(queue, operation, refusal, advice: Self.advice(on: refusal))
  }

  static func unexpectedReply(_ queue: RedisURL, _ operation: String) -> RedisError {
    RedisError(queue, operation, "an unknown reply", advice: "check that it is Redis")
  }

  var description: String { "\(operation), in the queue \(queue): \(cause); \(advice)" }

  private static func advice(on refusal: String) -> String {
    switch refusal.prefix(while: { $0 != " " }) {
    case "NOAUTH", "WRONGPASS": "give its user and password: redis://USER:PASSWORD@HOST"
    case "NOPERM": "allow this user the commands, and the keys STREAM and {STREAM}:*"
    case "OOM": "give Redis more memory (maxmemory)"
    case "MISCONF": "Redis cannot write its files: see its log"
    case "LOADING": "wait until Redis has read its files"
    case "READONLY", "MASTERDOWN": "this is a replica: name the primary"
    case "MOVED", "ASK", "CLUSTERDOWN": "name the node of the cluster that has the stream's slot"
    case "WRONGTYPE": "that key is no stream: choose another one with ?stream=NAME"
    default: "see Redis' documentation and log"
    }
  }
}

/// The stream belongs to another store, where its batches lie.
struct StreamOfAnotherStore: EnvironmentFailure, CustomStringConvertible {
  let queue: String
  /// The key with the name of the store.
  let key: String
  let store: String
  let expected: String

  var description: String {
    "the queue \(queue) is of the store \(store), not of \(expected); name another stream with ?stream=NAME, or, if the store has moved, delete the key \(key)"
  }
}
