import FrameBatches
import Sessions

extension BatchReader {
  /// Reads a batch that has one session.
  package init(reading path: String, session: String? = nil, limits: Limits = Limits()) throws {
    let batch = try BatchSessions(reading: path, options: InputOptions(session: session), limits: limits)
    guard batch.readers.count == 1, batch.refused.isEmpty else { throw SeveralSessions() }
    self = batch.readers[0]
  }
}

/// Thrown if a batch has several sessions and a test expects one.
struct SeveralSessions: Error {}

extension [Receipt] {
  /// Whether all sessions of the batch were already published.
  package var duplicate: Bool { !isEmpty && allSatisfy(\.duplicate) }
}
