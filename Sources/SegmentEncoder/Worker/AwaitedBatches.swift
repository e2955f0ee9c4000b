import FrameBatches
import Sessions

/// Tells which requests for ends wait. A request waits for the batches that were in the queue when this process first saw it, unless
/// this process has read them and they are of other sessions.
///
/// All requests share one list of the queue: looks at it are numbered, and each batch and each request has the number of the look that
/// saw it first.
struct AwaitedBatches {
  private struct Seen {
    let request: EndRequest
    let look: Int
    /// Monotonic milliseconds.
    let sinceMs: Int
    /// Whether all that it waited for is finished.
    var isFree = false
    var isReported = false

    var isOpen: Bool { !isFree && (request.awaitsAll || !request.awaited.isEmpty) }
  }

  private var look = 0
  private var requests: [SessionID: Seen] = [:]
  private var batches: [String: Int] = [:]
  /// The sessions of the batches that this process has read and still holds.
  private var sessions: [String: Set<SessionID>] = [:]

  /// Notes the sessions of a batch that was read.
  mutating func note(_ batch: String, of sessions: [SessionID]) { self.sessions[batch] = Set(sessions) }

  /// Forgets a batch before its name may be another's.
  mutating func forget(_ batch: String) { sessions[batch] = nil }

  /// Returns a request as the last look has seen it.
  func request(of session: SessionID) -> EndRequest? { requests[session]?.request }

  /// Begins a look: notes all requests that there are.
  ///
  /// - Returns: whether any waits for batches, so that the queue has to be listed now.
  mutating func begin(_ present: [EndRequest], nowMs: Int) -> Bool {
    look += 1
    let known = requests
    requests = [:]
    for request in present {
      let same = known[request.session].flatMap { $0.request == request ? $0 : nil }
      requests[request.session] = same ?? Seen(request: request, look: look, sinceMs: nowMs)
    }
    return requests.values.contains(where: \.isOpen)
  }

  /// Ends a look.
  ///
  /// - Parameter owed: the names of the batches that wait or are in work.
  /// - Returns: the sessions whose requests wait, each with one of its batches.
  mutating func waiting(for owed: [String]) -> [SessionID: String] {
    let counts = Dictionary(owed.map { ($0, 1) }, uniquingKeysWith: +)
    batches = counts.reduce(into: [:]) { $0[$1.key] = batches[$1.key] ?? look }
    // Two batches of one name: one of them may not be read.
    let others = sessions.filter { counts[$0.key] == 1 }
    let unread = batches.filter { others[$0.key] == nil }.min { $0.value < $1.value }
    var waiting: [SessionID: String] = [:]
    for (session, seen) in requests where seen.isOpen {
      let named = seen.request.awaited.first { batches[$0] != nil && others[$0]?.contains(session) != false }
      let own = others.first { $0.value.contains(session) && batches[$0.key, default: .max] <= seen.look }?.key
      let any = unread.flatMap { $0.value <= seen.look ? $0.key : nil } ?? own
      if let batch = named ?? (seen.request.awaitsAll ? any : nil) {
        waiting[session] = batch
      } else {
        requests[session]?.isFree = true
      }
    }
    return waiting
  }

  /// Returns how long a request has been there, in milliseconds.
  func ageMs(of session: SessionID, nowMs: Int) -> Int { requests[session].map { nowMs - $0.sinceMs } ?? 0 }

  /// Returns those of some sessions whose requests have been there for some time, each once.
  mutating func unreported(_ sessions: some Sequence<SessionID>, olderThanMs: Int, nowMs: Int) -> [SessionID] {
    let found = sessions.filter {
      requests[$0]?.isReported == false && ageMs(of: $0, nowMs: nowMs) >= olderThanMs
    }
    for session in found { requests[session]?.isReported = true }
    return found.sorted { $0.description < $1.description }
  }
}
