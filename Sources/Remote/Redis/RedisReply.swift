import CHiredis
import FileSystem

/// A reply from Redis.
enum RedisReply: Sendable, Equatable {
  case nothing
  case integer(Int)
  case bytes([UInt8])
  case list([RedisReply])
  /// An error, as one line of limited length. Its first word is a code in capitals.
  case refusal(String)
  /// A reply of a type that no command of this program has.
  case unknown

  init(reading reply: UnsafePointer<redisReply>) {
    let value = reply.pointee
    switch value.type {
    case REDIS_REPLY_INTEGER: self = .integer(Int(value.integer))
    case REDIS_REPLY_STRING, REDIS_REPLY_STATUS: self = .bytes(Self.bytes(value))
    case REDIS_REPLY_ARRAY:
      self = .list(
        UnsafeBufferPointer(start: value.element, count: Int(value.elements)).map { element in
          element.map { RedisReply(reading: $0) } ?? .nothing
        })
    case REDIS_REPLY_ERROR: self = .refusal(Self.line(Self.bytes(value)))
    case REDIS_REPLY_NIL: self = .nothing
    default: self = .unknown
    }
  }

  private static func bytes(_ value: redisReply) -> [UInt8] {
    Array(UnsafeRawBufferPointer(start: value.str, count: Int(value.len)))
  }

  /// A text of Redis for logs and errors: at most 500 bytes of it, without control characters.
  static func line(_ text: some Sequence<UInt8>) -> String {
    String(decoding: Array(text.prefix(500)), as: UTF8.self).oneLine
  }

  /// A number of entries or attempts. Values outside 0…2⁴⁰ are clamped: Redis may lie, and sums must not overflow.
  var count: Int? {
    if case .integer(let value) = self { min(max(0, value), 1 << 40) } else { nil }
  }

  /// Nil for bytes that are not UTF-8.
  var text: String? {
    if case .bytes(let bytes) = self { String(validating: bytes, as: UTF8.self) } else { nil }
  }

  /// The ID of an entry, two numbers of 64 bits: `1767859512340-0`.
  var id: String? {
    guard let text, text.utf8.count <= 41 else { return nil }
    let numbers = text.split(separator: "-", omittingEmptySubsequences: false)
    return numbers.count == 2 && numbers.allSatisfy { UInt64($0) != nil && $0.first != "+" } ? text : nil
  }

  var list: [RedisReply]? {
    if case .list(let values) = self { values } else { nil }
  }

  /// The code of an error: `NOGROUP`.
  var code: String? {
    if case .refusal(let text) = self { String(text.prefix { $0 != " " }) } else { nil }
  }

  /// Returns the reply unless it is an error.
  func checked(_ queue: RedisURL, _ operation: String) throws(Failure) -> RedisReply {
    if case .refusal(let text) = self { throw Failure.redis(queue, operation, refusal: text) }
    return self
  }
}
