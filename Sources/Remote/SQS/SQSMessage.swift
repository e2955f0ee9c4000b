import FileSystem
import FrameBatches
import JSON
import WorkQueues

/// A delivery of a message, without its body.
struct SQSReceipt: Sendable, Equatable {
  /// Of the message: the same for each delivery.
  let id: String
  /// Names this delivery.
  let handle: String
  /// The number of deliveries, this one included.
  let receiveCount: Int
  /// The step of the sender's trace.
  let traceParent: TraceParent?
  /// When it was sent, in unix milliseconds; nil if the queue does not tell.
  var sentMs: Int64?
}

/// A message as a queue delivers it.
struct SQSMessage: Sendable, Equatable {
  /// The meaning of a body.
  enum Content: Equatable {
    /// The name of a batch.
    case name(String)
    /// The batches of which an object store tells; none if it tells of other objects, or of a test.
    case notified(NotifiedBatches)
    case unusable(String)
  }

  let receipt: SQSReceipt
  let body: String

  /// Returns the message of a reply; nil if it is none.
  init?(_ value: JSONValue) {
    guard let members = value.object, let id = members["MessageId"]?.string, id.isPlain(and: "-_"),
      (1...100).contains(id.utf8.count), let handle = members["ReceiptHandle"]?.string,
      (1...4_096).contains(handle.utf8.count), let body = members["Body"]?.string
    else { return nil }
    let count = members["Attributes"]?.object?["ApproximateReceiveCount"]?.string.flatMap { Int($0) }
    let trace = members["MessageAttributes"]?.object?[TraceParent.key]?.object?["StringValue"]?.string
    self.body = body
    receipt = SQSReceipt(
      id: id, handle: handle, receiveCount: min(max(1, count ?? 1), 1 << 30),
      traceParent: trace.flatMap { TraceParent($0) },
      sentMs: members["Attributes"]?.object?["SentTimestamp"]?.string.flatMap { Int64($0) }
        .flatMap { Claim.instants.contains($0) ? $0 : nil })
  }

  /// Reads the body: the name of a batch, `{"batch": NAME}`, or a notification of an object store.
  func content(in place: ObjectPlace) -> Content {
    let text = Self.trimmed(body)
    guard text.first == "{" else { return Self.named(text) }
    guard let value = try? JSONParser.parse(Array(text.utf8)) else { return .unusable("is no JSON") }
    if let name = value.object?["batch"]?.string { return Self.named(name) }
    guard let notification = ObjectCreatedNotification(value) else {
      return .unusable("is neither a batch's name nor a notification of an object store")
    }
    let batches = NotifiedBatches(notification, in: place)
    if batches.names.isEmpty, batches.unreadable > 0 { return .unusable("has a record without a usable key") }
    if batches.names.isEmpty, batches.foreign > 0 { return .unusable("tells of an object outside of the store") }
    return .notified(batches)
  }

  /// The text without blanks and line ends around it, as tools add them.
  private static func trimmed(_ text: String) -> String {
    guard let first = text.firstIndex(where: { !$0.isWhitespace }),
      let last = text.lastIndex(where: { !$0.isWhitespace })
    else { return "" }
    return String(text[first...last])
  }

  private static func named(_ name: String) -> Content {
    QueuedName.fault(of: name).map { .unusable("has a name that \($0)") } ?? .name(name)
  }

  /// Returns the body of a message that names a batch. Escapes of JSON stand for characters that messages may not have.
  static func body(naming name: String) -> String {
    func isPlain(_ scalar: Unicode.Scalar) -> Bool { (0x20...0xFFFD).contains(scalar.value) || scalar.value > 0xFFFF }
    let isText = name.unicodeScalars.allSatisfy(isPlain) && name.first != "{" && trimmed(name) == name
    if isText { return name }
    var body = ""
    // JSON itself escapes those below a blank, but not U+FFFE and U+FFFF.
    for scalar in JSONValue.object(["batch": .string(name)]).line.unicodeScalars {
      if isPlain(scalar) { body.unicodeScalars.append(scalar) } else { body += "\\u" + String(scalar.value, radix: 16) }
    }
    return body
  }
}
