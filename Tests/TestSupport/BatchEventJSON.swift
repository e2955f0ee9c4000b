/// The event of a batch, as a receiver and `run --json` get it: the members that tests read. `docs/event.schema.json` has all.
public struct BatchEventJSON: Decodable {
  public struct Session: Decodable {
    public struct Segment: Decodable {
      public let file: String
      public let durationMs: Int64
      public let sha256: String
    }

    public let session: String
    public let duplicate: Bool
    public let frames: Int
    public let segments: [Segment]
    public let gaps: [PublishedSession.Index.Gap]
    public let refusedCount: Int
  }
  public struct Reason: Decodable {
    public let operation, file, cause, advice: String
  }

  public let event: String
  public let key: String
  public let batch: String
  public let traceparent: String?
  public let sessions: [Session]
  /// The time of the whole and of its stages; nil if the batch is quarantined.
  public let durationsMs: [String: Int]?
  /// Nil unless the batch is quarantined.
  public let reason: Reason?
}
