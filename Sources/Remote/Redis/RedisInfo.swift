import FileSystem

/// The reply of Redis to `INFO`.
struct RedisInfo {
  private let values: [String: String]

  init(_ reply: RedisReply) {
    let lines = (reply.text ?? "").split(whereSeparator: \.isNewline)
    let pairs = lines.map { $0.split(separator: ":", maxSplits: 1).map(String.init) }
    values = Dictionary(pairs.filter { $0.count == 2 }.map { ($0[0], $0[1]) }) { first, _ in first }
  }

  subscript(_ name: String) -> String? { values[name] }

  /// A value for logs and errors.
  func line(_ name: String) -> String? { values[name].map { RedisReply.line($0.utf8) } }

  /// The major version. Compatible servers such as Valkey report the version of Redis that they match.
  var generation: Int { self["redis_version"].flatMap { Int($0.prefix { $0 != "." }) } ?? 0 }

  /// The reasons why Redis may lose acknowledged writes.
  var weaknesses: [NonDurableRedis.Weakness] {
    var weaknesses: [NonDurableRedis.Weakness] = []
    if self["aof_enabled"] != "1" { weaknesses.append(.writesNothingDown) }
    if let status = self["aof_last_write_status"], status != "ok" { weaknesses.append(.cannotWrite) }
    let policy = self["maxmemory_policy"] ?? "noeviction"
    if (self["maxmemory"] ?? "0") != "0", policy != "noeviction" {
      weaknesses.append(.throwsAway(policy: RedisReply.line(policy.utf8)))
    }
    return weaknesses
  }
}

/// Redis may lose waiting batches: its settings, or those of the Redis that replaced it, do not make writes durable.
struct NonDurableRedis: ClassifiedError {
  var kind: Failure.Kind { .environment }
  enum Weakness: Equatable, Sendable {
    case writesNothingDown
    case cannotWrite
    case throwsAway(policy: String)

    fileprivate var text: String {
      switch self {
      case .writesNothingDown: "appendonly is off: a restart loses waiting batches (set appendonly yes)"
      case .cannotWrite:
        "its last write to the append-only file failed: a restart loses waiting batches (see its log, and its disk)"
      case .throwsAway(let policy):
        "maxmemory-policy is \(policy): when its memory is full it drops waiting batches (set maxmemory-policy noeviction)"
      }
    }
  }

  let queue: String
  let weaknesses: [Weakness]

  /// The reasons, each with its remedy.
  var risk: String { "the queue \(queue) is not durable: " + weaknesses.map(\.text).joined(separator: "; ") }

  var description: String {
    risk + "; or allow that with --allow-non-durable-queue and run reconcile often"
  }
}
