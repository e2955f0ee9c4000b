// The last segments that this process has published in packs. The playlist lists the last one of a batch with the next batch, and need not
// fetch it again.

import FrameBatches
import Synchronization

/// For any thread.
final class RecentSegments: Sendable {
  /// The number of sessions, and of segments of each: the last one that a playlist lists, and the one that it holds back.
  private static let (sessions, segments) = (512, 2)

  private struct State {
    var known: [SessionID: [KnownSegment]] = [:]
    /// From the one whose last batch is the oldest.
    var order: [SessionID] = []
  }

  private let state = Mutex(State())

  /// By their starts.
  func segments(of session: SessionID) -> [Int64: KnownSegment] {
    let known = state.withLock { $0.known[session] ?? [] }
    return Dictionary(known.map { ($0.segment.startMs, $0) }) { $1 }
  }

  func note(_ published: some Sequence<KnownSegment>, of session: SessionID) {
    let packed = published.filter { $0.layout != nil && $0.marks != nil }.map(\.withoutVideo)
    if packed.isEmpty { return }
    let starts = Set(packed.map(\.segment.startMs))
    state.withLock { state in
      let others = state.known[session]?.filter { !starts.contains($0.segment.startMs) } ?? []
      let all = (others + packed).sorted { $0.segment.startMs < $1.segment.startMs }
      state.known[session] = all.suffix(Self.segments)
      state.order.removeAll { $0 == session }
      state.order.append(session)
      while state.order.count > Self.sessions { state.known[state.order.removeFirst()] = nil }
    }
  }
}
