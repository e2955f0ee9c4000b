import CHiredis
import JSON

/// A reply of Redis.
enum RedisReply: Sendable, Equatable {
  case nothing
  case integer(Int)
  case bytes([UInt8])
  case list([RedisReply])
  /// An error, which begins with a word of capitals.
  case refusal(String)

  init(reading reply: UnsafePointer<redisReply>) {
    let value = reply.pointee
    switch value.type {
    case REDIS_REPLY_INTEGER: self = .integer(Int(value.integer))
    case REDIS_REPLY_STRING, REDIS_REPLY_STATUS: self = .bytes(Self.bytes(value))
    case REDIS_REPLY_ARRAY:
      // Each is there: the library gives no reply that is not whole.
      self = .list(
        UnsafeBufferPointer(start: value.element, count: Int(value.elements)).map { element in
          element.map { RedisReply(reading: $0) } ?? .nothing
        })
    case REDIS_REPLY_ERROR: self = .refusal(String(decoding: Self.bytes(value), as: UTF8.self))
    default: self = .nothing
    }
  }

  private static func bytes(_ value: redisReply) -> [UInt8] {
    Array(UnsafeRawBufferPointer(start: value.str, count: Int(value.len)))
  }

  var integer: Int? {
    if case .integer(let value) = self { value } else { nil }
  }

  /// Nil where it is no UTF-8.
  var text: String? {
    if case .bytes(let bytes) = self { String(validating: bytes, as: UTF8.self) } else { nil }
  }

  var list: [RedisReply]? {
    if case .list(let values) = self { values } else { nil }
  }

  /// The word that an error begins with: `NOGROUP`.
  var code: String? {
    if case .refusal(let text) = self { String(text.prefix { $0 != " " }) } else { nil }
  }
}
