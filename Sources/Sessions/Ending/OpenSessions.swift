import FileSystem
import FrameBatches
import Synchronization

/// `open/SESSION` in an object store: the sessions that may still go on. Without it, a search for quiet sessions would have to list
/// all that were ever published.
final class OpenSessions: Sendable {
  static let prefix = "open/"

  private let objects: any ObjectClient
  /// The last publications of this process, in monotonic milliseconds.
  private let published = Mutex<[SessionID: Int]>([:])

  init(_ objects: any ObjectClient) { self.objects = objects }

  /// Notes that a batch of a session is about to be published.
  func note(_ session: SessionID) throws {
    let nowMs = MonotonicClock.milliseconds()
    if published.withLock({ $0.updateValue(nowMs, forKey: session) }) != nil { return }
    do {
      _ = try objects.put(Self.prefix + session.description, .bytes([]), .text, when: .absent)
    } catch {
      published.withLock { $0[session] = nil }
      throw error
    }
  }

  /// Notes that a session has ended.
  func close(_ session: SessionID) throws {
    try objects.delete(Self.prefix + session.description, nil)
    published.withLock { $0[session] = nil }
  }

  /// Returns the sessions of which nothing was published for some time.
  ///
  /// - Parameter isQuiet: asked for those of which this process has published nothing for that long.
  func quiet(forMs quietMs: Int, isQuiet: (SessionID) throws -> Bool) throws -> [SessionID] {
    let latestMs = MonotonicClock.milliseconds() - quietMs
    var (last, found): (String?, [SessionID]) = (nil, [])
    while true {
      let page = try objects.list(Self.prefix, after: last)
      guard let end = page.last else { return found }
      last = end.key
      for session in page.compactMap({ SessionID(String($0.key.dropFirst(Self.prefix.count))) }) {
        if let own = published.withLock({ $0[session] }), own > latestMs { continue }
        if try isQuiet(session) { found.append(session) }
      }
    }
  }
}
