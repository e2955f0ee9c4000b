import Foundation
import JSON

/// A queue of SQS in a ``StoreServer``, without the client under test.
package struct MessageQueue {
  package struct Message: Equatable {
    package let id: String
    package let handle: String
    package let body: String
  }

  package let store: StoreServer
  package let name: String
  /// The URL as the server shows it.
  package let url: String

  /// Creates a queue.
  ///
  /// - Parameters:
  ///   - isFIFO: whether it keeps the order of messages.
  ///   - attributes: those of `CreateQueue`.
  package init(_ store: StoreServer, isFIFO: Bool = false, _ attributes: [String: String] = [:]) throws {
    self.store = store
    name = UUID().uuidString + (isFIFO ? ".fifo" : "")
    let all = attributes.merging(isFIFO ? ["FifoQueue": "true"] : [:]) { $1 }
    let reply = try Self.call(
      store, "AmazonSQS.CreateQueue",
      ["QueueName": .string(name), "Attributes": .object(all.mapValues { .string($0) })])
    guard let url = reply["QueueUrl"]?.string else { throw Tool.Failure("no queue: \(reply)") }
    self.url = url
  }

  /// The address for `--queue`.
  package var address: String { "sqs://\(name)" }

  package func send(_ bodies: String...) throws { for body in bodies { try send(body: body) } }

  package func send(body: String) throws { try call("AmazonSQS.SendMessage", ["MessageBody": .string(body)]) }

  /// The numbers of messages that wait, and that consumers hold.
  package func counts() throws -> (waiting: Int, held: Int) {
    let names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    let values = try attributes(names)
    return (Int(values[names[0]] ?? "") ?? -1, Int(values[names[1]] ?? "") ?? -1)
  }

  package func attributes(_ names: [String]) throws -> [String: String] {
    try call("AmazonSQS.GetQueueAttributes", ["AttributeNames": .array(names.map { .string($0) })])["Attributes"]?
      .object?.compactMapValues(\.string) ?? [:]
  }

  /// Receives messages as another consumer, and hides them for a time.
  package func receive(hidingFor seconds: Int = 3_600) throws -> [Message] {
    let reply = try call(
      "AmazonSQS.ReceiveMessage", ["MaxNumberOfMessages": .number(10), "VisibilityTimeout": .number(seconds)])
    return (reply["Messages"]?.array ?? []).compactMap { value in
      guard let id = value.object?["MessageId"]?.string, let handle = value.object?["ReceiptHandle"]?.string,
        let body = value.object?["Body"]?.string
      else { return nil }
      return Message(id: id, handle: handle, body: body)
    }
  }

  /// Makes all messages that are held visible again, as if nobody had renewed them.
  package func loseVisibility() throws { try call("Fault.LoseVisibility") }

  /// Performs so many of the next requests without an answer.
  package func loseAnswers(_ count: Int) throws { try call("Fault.LoseAnswers", ["Count": .number(count)]) }

  @discardableResult
  private func call(_ target: String, _ members: [String: JSONValue] = [:]) throws -> [String: JSONValue] {
    try Self.call(store, target, members.merging(["QueueUrl": .string(url)]) { $1 })
  }

  private static func call(
    _ store: StoreServer, _ target: String, _ members: [String: JSONValue]
  ) throws -> [String: JSONValue] {
    let headers = ["X-Amz-Target: \(target)", "Content-Type: application/x-amz-json-1.0"].flatMap { ["-H", $0] }
    let result = try Tool.run(
      "curl", ["--noproxy", "*", "-sSf"] + headers + ["--data-binary", "@-", "\(store.endpoint)/open/"],
      input: Data(JSONValue.object(members).bytes()))
    guard result.status == 0 else { throw Tool.Failure("\(target): \(result.errors)") }
    return (try? JSONParser.parse(Array(result.output)))?.object ?? [:]
  }
}
