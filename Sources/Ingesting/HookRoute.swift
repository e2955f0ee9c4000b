// POST /hooks/s3: the notification of an object store that batches are there. Their names are queued before the answer.

import FileSystem
import JSON
import Serving
import WorkQueues

/// The store that sends notifications, and the queue of its batches.
package struct StoreHook: Sendable {
  let place: ObjectPlace
  let names: any NameQueue

  /// - Parameter place: the keys of the store.
  package init(_ place: ObjectPlace, queueingIn names: any NameQueue) { (self.place, self.names) = (place, names) }
}

struct HookRoute: Sendable {
  static let path = "/hooks/s3"
  /// Bytes of a notification.
  private static let maximumBytes = 1 << 20

  let context: IngestContext
  /// nil without a store and a queue.
  let hook: StoreHook?

  /// - Throws: ``ProblemDetails``, or a failure of the environment.
  func admit(_ request: HTTPRequest, _ producer: Producer?) throws -> Admission {
    guard request.method == "POST" else { throw ProblemDetails(allowing: "POST", not: request.method) }
    if let producer, !producer.prefix.isEmpty {
      throw ProblemDetails(
        .forbidden, "\(producer.name) may write to its own sessions only, and a store tells of all",
        advice: "give the store a token without a session prefix")
    }
    guard let hook else {
      throw ProblemDetails(
        .notConfigured, "notifications of a store need a queue and a store", advice: "set --queue and --store")
    }
    try request.requireNoCoding()
    let upload = try request.upload(limit: Self.maximumBytes, producer)
    if let refusal = context.gate.stopRefusal { throw refusal }
    return .receive(
      try BodyUpload(upload, named: "notification", context) { draft in
        guard let bytes = try DurableFile.contents(of: draft.path, limit: Self.maximumBytes) else {
          throw ProblemDetails.failure
        }
        let batches = try Self.batches(in: bytes, hook.place)
        if !batches.names.isEmpty { _ = try hook.names.add(batches.names) }
        return .json(["queued": .number(batches.names.count), "ignored": .number(batches.ignored)])
      })
  }

  private static func batches(in bytes: [UInt8], _ place: ObjectPlace) throws(ProblemDetails) -> NotifiedBatches {
    let value: JSONValue
    do {
      value = try JSONParser.parse(bytes)
    } catch {
      throw ProblemDetails(.badRequest, "the body is \(error)", advice: "send the notification as JSON")
    }
    guard let notification = ObjectCreatedNotification(value) else {
      throw ProblemDetails(
        .badRequest, "the body is no notification of an object store",
        advice: "send notifications as S3, MinIO, Ceph, R2, SNS or EventBridge write them")
    }
    return NotifiedBatches(notification, in: place)
  }
}
