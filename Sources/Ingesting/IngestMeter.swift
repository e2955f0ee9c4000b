import Serving
import Synchronization

/// Counts what came over HTTP.
package final class IngestMeter: Sendable {
  package enum Outcome: String, CaseIterable, Sendable {
    case taken, known, refused, failed
  }

  private struct Refusal: Hashable {
    let status: Int
    /// Empty for strangers.
    let producer: String
  }

  private struct Counts {
    /// As many as statuses and producers of the file of tokens.
    var refusals: [Refusal: Int] = [:]
    var requests: [Outcome: Int] = [:]
    var (bytes, frames) = (0, 0)
    var bodies = HeldShares()
  }

  private let counts = Mutex(Counts())

  package init() {}

  /// Counts a refusal, also one of the HTTP server itself.
  func countRefusal(_ status: Int, of producer: Producer?) {
    counts.withLock { $0.refusals[Refusal(status: status, producer: producer?.name ?? ""), default: 0] += 1 }
  }

  /// Counts an answer to a request that would write.
  func count(_ response: HTTPResponse) {
    let outcome: Outcome =
      switch response.status {
      case 201, 202: .taken
      case 200: .known
      case 500...: .failed
      default: .refused
      }
    counts.withLock { $0.requests[outcome, default: 0] += 1 }
  }

  func addBytes(_ count: Int) { counts.withLock { $0.bytes += count } }
  func addFrame() { counts.withLock { $0.frames += 1 } }

  /// Counts a body that begins; returns false if there are as many as may be.
  func beginBody(of producer: Producer?, limit: Int) -> Bool {
    counts.withLock { counts in
      guard FairShare.allows(producer, own: counts.bodies[producer], all: counts.bodies.all, limit: limit) else {
        return false
      }
      counts.bodies.add(1, of: producer)
      return true
    }
  }

  func endBody(of producer: Producer?) { counts.withLock { $0.bodies.add(-1, of: producer) } }

  package func write(to text: inout MetricsText) {
    let counts = counts.withLock { $0 }
    text.metric(
      "encoder_worker_ingest_requests_total",
      "Requests to take a batch, a picture or the end of a session, by outcome; known: taken before.", "counter",
      by: "outcome", Outcome.allCases.map { ($0.rawValue, "\(counts.requests[$0] ?? 0)") })
    text.metric(
      "encoder_worker_ingest_refusals_total", "Refused requests, by status and producer; empty for strangers.",
      "counter", by: ["status", "producer"],
      counts.refusals.sorted { ($0.key.status, $0.key.producer) < ($1.key.status, $1.key.producer) }
        .map { (["\($0.key.status)", $0.key.producer], "\($0.value)") })
    text.metric(
      "encoder_worker_ingest_bytes_total", "Bytes of bodies that came, also of refused ones.", "counter",
      [("", "\(counts.bytes)")])
    text.metric(
      "encoder_worker_ingest_frames_total", "Pictures that were taken one by one.", "counter",
      [("", "\(counts.frames)")])
    text.gauge("encoder_worker_ingest_bodies_open", "Bodies that are coming.", counts.bodies.all)
  }
}
