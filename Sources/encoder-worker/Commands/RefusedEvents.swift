import ArgumentParser
import FileSystem
import Notifying
import Remote
import SegmentEncoder
import WorkQueues

/// The work of `quarantine --events`: events that their receiver has refused.
enum RefusedEvents {
  /// - Throws: wrong usage unless the call names one place.
  static func validate(spool: String?, store: S3Location?) throws {
    guard (spool == nil) != (store == nil) else {
      throw ValidationError(spool == nil ? "--spool DIR is missing, or --store" : "--spool or --store: one of them")
    }
  }

  static func open(spool: String?, store: S3Location?, _ access: StoreAccess) throws -> RefusedNotifications {
    if let store { return RefusedNotifications(in: try S3Client(store, access.settings()), name: "\(store)") }
    return RefusedNotifications(spool: try Spool(opening: spool ?? "").path)
  }

  static func list(_ store: RefusedNotifications, _ results: ResultOptions) throws {
    let events = try store.all()
    if events.isEmpty && !results.json { return say("no refused events") }
    results.print(events, head: ["key", "since", "event", "batch", "why"]) { event in
      event.json.line
    } row: { event in
      [event.key, event.timeMs.dateText, event.text("event") ?? "?", event.text("batch") ?? "?", event.cause]
    }
  }

  /// Sends events again, each with its key.
  static func retry(_ selection: NamedItems, in store: RefusedNotifications, _ receiver: WebhookReceiver) throws {
    try selection.forEach(all: store.all, named: store.notification) { event in
      switch receiver.send(
        key: event.key, event: event.event, traceParent: event.traceParent, cancellation: .never)
      {
      case .accepted: try store.remove(event.key)
      case .refused(let cause): throw Failure(.input, "send", "\(event.key) to \(receiver.name)", cause)
      case .failed(let cause, _): throw notDelivered(event, to: receiver, cause)
      case .cancelled: throw notDelivered(event, to: receiver, "cancelled")
      }
      answer("\(event.key): delivered to \(receiver.name)")
    }
  }

  private static func notDelivered(_ event: RefusedNotification, to receiver: WebhookReceiver, _ cause: String)
    -> Failure
  {
    Failure(
      .environment, "send", "\(event.key) to \(receiver.name)", cause, advice: "nothing is lost, run it again")
  }
}
