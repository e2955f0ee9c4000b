import FileSystem

extension Failure {
  /// Redis was not reachable, or refused a command.
  static func redis(_ queue: RedisURL, _ operation: String, _ cause: String, advice: String) -> Failure {
    // Without its password.
    Failure(.environment, "\(operation), in the queue", queue.description, cause, advice: advice)
  }

  /// - Parameter refusal: the error of Redis: `OOM command not allowed …`.
  static func redis(_ queue: RedisURL, _ operation: String, refusal: String) -> Failure {
    redis(queue, operation, refusal, advice: advice(on: refusal))
  }

  static func unexpectedReply(_ queue: RedisURL, _ operation: String) -> Failure {
    redis(queue, operation, "an unknown reply", advice: "check that it is Redis")
  }

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
