/// A finished span, as it is exported.
package struct SpanRecord: Sendable, Equatable {
  /// The value of an attribute.
  package enum Value: Sendable, Equatable {
    case text(String)
    case whole(Int64)
    case real(Double)
    case flag(Bool)
    case list([Value])
  }

  /// Something that happened in the span, such as an error.
  package struct Event: Sendable, Equatable {
    let name: String
    /// In unix nanoseconds.
    let timeNs: UInt64
    let attributes: [String: Value]
  }

  /// The kinds of OTLP, by their numbers.
  package enum Kind: Int, Sendable {
    case `internal` = 1
    case server, client, producer, consumer
  }

  /// A span without its trace, which is known later.
  package struct Draft: Sendable, Equatable {
    /// 16 hexadecimal digits, like ``parentID``.
    let id: String
    /// The span that this one is a part of; nil for the first one of a trace.
    var parentID: String?
    let name: String
    var kind = Kind.internal
    /// In unix nanoseconds, like ``endNs``.
    let startNs: UInt64
    let endNs: UInt64
    var attributes: [String: Value] = [:]
    var events: [Event] = []
    /// The message of the error that ended the span; nil without one.
    var error: String?
  }

  /// 32 hexadecimal digits.
  let traceID: String
  let span: Draft

  init(_ span: Draft, traceID: String) { (self.span, self.traceID) = (span, traceID) }
}
