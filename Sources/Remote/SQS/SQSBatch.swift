import FileSystem
import FrameBatches
import Glibc
import JSON

/// Messages to send, ten at a time.
struct SQSBatch {
  private struct Message {
    let name: String
    /// Of a FIFO queue.
    let group: String?
    let deduplication: String?
  }

  private static let atOnce = 10
  /// Calls for the same messages, which a queue takes one by one.
  private static let attempts = 5

  private let messages: [Message]
  private let traceParent: TraceParent?
  private let address: SQSAddress

  /// - Parameter traceParent: the step of the trace that all messages carry.
  init(_ names: [String], _ traceParent: TraceParent?, of address: SQSAddress) {
    (self.traceParent, self.address) = (traceParent, address)
    guard address.isFIFO else {
      messages = names.map { Message(name: $0, group: nil, deduplication: nil) }
      return
    }
    // The same for each attempt, and for this call only: a batch may be queued again.
    let call = "\(UInt64.random(in: .min ... .max))"
    messages = names.enumerated().map { index, name in
      // `SESSION@START.tar`: the batches of a session come one after another.
      let stem = lastComponent(of: name).prefix { $0 != "@" }
      return Message(
        name: name, group: SHA256.hex(of: Array(stem.utf8)),
        deduplication: SHA256.hex(of: Array("\(call) \(index) \(name)".utf8)))
    }
  }

  /// - Parameter perform: sends entries, and returns the answer.
  /// - Throws: ``SQSError``, also if the queue has refused a message. Some may be sent then.
  func send(_ perform: ([JSONValue]) throws -> [String: JSONValue]) throws {
    for start in stride(from: 0, to: messages.count, by: Self.atOnce) {
      var left = Array(messages[start...].prefix(Self.atOnce))
      for attempt in 1...Self.attempts where !left.isEmpty {
        if attempt > 1 { usleep(UInt32(1_000 * BackOff.pauseMs(failures: attempt - 1, firstMs: 100))) }
        let reply = try perform(left.enumerated().map { entry($0.element, $0.offset) })
        left = try unsent(left, reply, isLast: attempt == Self.attempts)
      }
    }
  }

  private func entry(_ message: Message, _ index: Int) -> JSONValue {
    var members: [String: JSONValue] = [
      "Id": .string("\(index)"), "MessageBody": .string(SQSMessage.body(naming: message.name)),
    ]
    members["MessageGroupId"] = message.group.map { .string($0) }
    members["MessageDeduplicationId"] = message.deduplication.map { .string($0) }
    members["MessageAttributes"] = traceParent.map {
      .object([
        TraceParent.key: .object(["DataType": .string("String"), "StringValue": .string($0.description)])
      ])
    }
    return .object(members)
  }

  /// Returns the messages that the queue has not taken, for another attempt.
  private func unsent(_ sent: [Message], _ reply: [String: JSONValue], isLast: Bool) throws -> [Message] {
    let taken = Set((reply["Successful"]?.array ?? []).compactMap { $0.object?["Id"]?.string })
    let failed = (reply["Failed"]?.array ?? []).compactMap(\.object)
    let unsent = sent.indices.filter { !taken.contains("\($0)") }
    if let fault = failed.first(where: { $0["SenderFault"]?.bool ?? ($0["SenderFault"]?.string == "true") }) {
      throw error(fault)
    }
    if isLast, let first = unsent.first {
      throw error(failed.first { $0["Id"]?.string == "\(first)" } ?? [:])
    }
    return unsent.map { sent[$0] }
  }

  private func error(_ entry: [String: JSONValue]) -> SQSError {
    let code = entry["Code"]?.string.flatMap { $0.isPlain(and: ".-_") && $0.utf8.count <= 100 ? $0 : nil }
    return SQSError(
      queue: address.description, operation: "SendMessageBatch", status: nil, code: code,
      cause: entry["Message"]?.string?.shortened(to: 500).oneLine ?? "the queue has not taken a message",
      advice: "run it again; names that are queued twice do no harm")
  }
}
