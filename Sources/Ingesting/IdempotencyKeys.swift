import Synchronization

/// The content of the last requests with an `Idempotency-Key`.
final class IdempotencyKeys: Sendable {
  /// Keys that are remembered at least; twice as many at most.
  private static let remembered = 10_000

  /// Those of the last requests, and those from before.
  private let known = Mutex((new: [String: String](), old: [String: String]()))

  /// Notes a request; throws ``ProblemDetails`` if its key came with other content.
  func require(_ key: String?, of producer: Producer?, for content: String) throws(ProblemDetails) {
    guard let key else { return }
    guard key.utf8.count <= IngestSettings.keyBytes, !key.isEmpty else {
      throw ProblemDetails(
        .badRequest, "an Idempotency-Key has 1 to \(IngestSettings.keyBytes) bytes",
        advice: "send a shorter one")
    }
    let name = (producer?.name ?? "") + " " + key
    let before = known.withLock { known in
      if let before = known.new[name] ?? known.old[name] { return Optional(before) }
      if known.new.count >= Self.remembered { known = ([:], known.new) }
      known.new[name] = content
      return nil
    }
    guard before == nil || before == content else {
      throw ProblemDetails(
        .conflict, "the Idempotency-Key came with another request", advice: "use a key for one request only")
    }
  }
}
