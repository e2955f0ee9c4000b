import FrameBatches
import Sessions

extension BatchReader {
  /// Reads a batch of one session.
  package init(reading path: String, session: String? = nil, limits: Limits = Limits()) throws {
    let batch = try BatchSessions(reading: path, options: InputOptions(session: session), limits: limits)
    guard batch.readers.count == 1, batch.refused.isEmpty else { throw SeveralSessions() }
    self = batch.readers[0]
  }
}

/// A batch of several sessions where a test expects one.
struct SeveralSessions: Error {}

extension [Receipt] {
  /// Whether all sessions of the batch were published before.
  package var duplicate: Bool { !isEmpty && allSatisfy(\.duplicate) }
}
