import FrameBatches
import JSON

/// The actions on one queue; for several threads.
struct SQSActions: Sendable {
  struct Counts: Sendable, Equatable {
    var waiting = 0
    var delayed = 0
    var inFlight = 0
  }

  let client: SQSClient
  /// The URL of the queue, as the requests have it.
  private let url: String

  var address: SQSAddress { client.address }

  /// Finds the queue.
  init(_ client: SQSClient) throws {
    self.client = client
    if let url = client.address.url {
      self.url = url
      return
    }
    let action = "GetQueueUrl"
    var members: [String: JSONValue] = ["QueueName": .string(client.address.name)]
    members["QueueOwnerAWSAccountId"] = client.address.account.map { .string($0) }
    guard let url = try client.perform(action, members)["QueueUrl"]?.string, (1...2_048).contains(url.utf8.count)
    else { throw client.unexpectedReply(to: action) }
    self.url = url
  }

  private func perform(
    _ action: String, _ members: [String: JSONValue], waitS: Int = 0
  ) throws -> [String: JSONValue] {
    try client.perform(action, members.merging(["QueueUrl": .string(url)]) { $1 }, waitS: waitS)
  }

  func counts() throws -> Counts {
    let stem = "ApproximateNumberOfMessages"
    let values = try attributes([stem, stem + "Delayed", stem + "NotVisible"])
    func number(_ ending: String) -> Int { min(max(0, values[stem + ending].flatMap { Int($0) } ?? 0), 1 << 40) }
    return Counts(waiting: number(""), delayed: number("Delayed"), inFlight: number("NotVisible"))
  }

  /// Whether the queue has a place for messages that were delivered too often.
  func hasDeadLetters() throws -> Bool {
    let name = "RedrivePolicy"
    return try attributes([name])[name].map { !$0.isEmpty } ?? false
  }

  private func attributes(_ names: [String]) throws -> [String: String] {
    let reply = try perform("GetQueueAttributes", ["AttributeNames": .array(names.map { .string($0) })])
    // An answer without attributes says that none of these is set.
    return (reply["Attributes"]?.object ?? [:]).compactMapValues(\.string)
  }

  /// Receives one message; nil if none came in the seconds of `waitS`.
  func receive(leaseS: Int, waitS: Int) throws -> SQSMessage? {
    let action = "ReceiveMessage"
    let counted = JSONValue.array([.string("ApproximateReceiveCount"), .string("SentTimestamp")])
    let reply = try perform(
      action,
      [
        "MaxNumberOfMessages": .number(1), "VisibilityTimeout": .number(leaseS), "WaitTimeSeconds": .number(waitS),
        // The second is the name of the first since 2023. Other servers may know the first only.
        "AttributeNames": counted, "MessageSystemAttributeNames": counted,
        "MessageAttributeNames": .array([.string(TraceParent.key)]),
      ], waitS: waitS)
    guard let value = reply["Messages"]?.array?.first else { return nil }
    guard let message = SQSMessage(value) else { throw client.unexpectedReply(to: action) }
    return message
  }

  func delete(_ message: SQSReceipt) throws {
    try ignoringLoss { _ = try perform("DeleteMessage", ["ReceiptHandle": .string(message.handle)]) }
  }

  /// Lets the queue deliver a message again at once.
  func show(_ message: SQSReceipt) throws {
    let members = ["ReceiptHandle": JSONValue.string(message.handle), "VisibilityTimeout": .number(0)]
    try ignoringLoss { _ = try perform("ChangeMessageVisibility", members) }
  }

  /// Hides messages from others for some more seconds.
  ///
  /// - Parameter messages: ten at most.
  /// - Returns: the outcome of each: true if it is hidden, false if this worker has it no more, nil if the queue could not do it now.
  func hide(_ messages: [(handle: String, seconds: Int)]) throws -> [Bool?] {
    let entries = messages.enumerated().map { index, message in
      JSONValue.object([
        "Id": .string("\(index)"), "ReceiptHandle": .string(message.handle),
        "VisibilityTimeout": .number(message.seconds),
      ])
    }
    let reply = try perform("ChangeMessageVisibilityBatch", ["Entries": .array(entries)])
    func entry(_ list: String, _ index: Int) -> [String: JSONValue]? {
      reply[list]?.array?.lazy.compactMap(\.object).first { $0["Id"]?.string == "\(index)" }
    }
    return messages.indices.map { index in
      if entry("Successful", index) != nil { return true }
      return Self.isOfLoss(entry("Failed", index)?["Code"]?.string) ? false : nil
    }
  }

  /// Checks that this worker may hide messages: with a handle that names none.
  func checkHiding() throws { try ignoringLoss { _ = try hide([("none", 0)]) } }

  func send(_ names: [String], traceParent: TraceParent?) throws {
    try SQSBatch(names, traceParent, of: address).send { try perform("SendMessageBatch", ["Entries": .array($0)]) }
  }

  /// A handle that is of no use any more: the message is gone, or another worker has it.
  private func ignoringLoss(_ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as SQSError where Self.isOfLoss(error.code) {
      return
    }
  }

  private static func isOfLoss(_ code: String?) -> Bool {
    // The last one: the twelve hours of a message are over, or it is not hidden any more.
    let codes = ["ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue"]
    guard var code else { return false }
    let ending = "Exception"
    if code.hasSuffix(ending) { code.removeLast(ending.count) }
    return codes.contains { code.hasSuffix($0) }
  }
}
