import FileSystem

/// Threads that work through a queue. It can be paused and closed. Nothing here runs on, or blocks, Swift's cooperative pool.
package final class ThreadPool<Element: Sendable>: @unchecked Sendable {
  private struct State {
    /// A FIFO queue, stored in reverse: the last element is the next one.
    var elements: [Element] = []
    var active = 0
    var done = 0
    var runsExclusively = false
    var isClosed = false
    var pausedUntilMs = 0
  }

  private let state = Monitor(State())
  private let isExclusive: @Sendable (Element) -> Bool
  /// Used on the owner's thread only.
  private let group = ThreadGroup()

  /// - Parameter isExclusive: whether an element must be worked on alone.
  package init(isExclusive: @escaping @Sendable (Element) -> Bool = { _ in false }) {
    self.isExclusive = isExclusive
  }

  /// Starts threads that work until the pool is closed. If one cannot be started, the others end.
  ///
  /// - Parameters:
  ///   - wake: called after each element.
  ///   - makeWork: called once on each thread. The result works on an element, and returns whether it counts as done.
  package func start(
    threads: Int, wake: @escaping @Sendable () -> Void, _ makeWork: @escaping @Sendable () -> (Element) -> Bool
  ) throws(DiskError) {
    do {
      for _ in 0..<threads {
        try group.start { [self] in
          let work = makeWork()
          while let element = next() {
            finish(isDone: work(element))
            wake()
          }
        }
      }
    } catch {
      close()
      join()
      throw error
    }
  }

  /// Adds work, to be done in this order.
  package func offer(_ more: [Element]) { state.change { $0.elements.insert(contentsOf: more.reversed(), at: 0) } }

  /// Waits for work; returns nil once the pool is closed.
  private func next() -> Element? {
    state.wait { state in
      if state.isClosed { return .found(nil) }
      let pauseMs = state.pausedUntilMs - MonotonicClock.milliseconds()
      if pauseMs > 0 { return .wait(ms: pauseMs) }
      guard let element = state.elements.last, !state.runsExclusively, state.active == 0 || !isExclusive(element) else {
        return .wait(ms: nil)
      }
      state.runsExclusively = isExclusive(element)
      state.active += 1
      state.elements.removeLast()
      return .found(element)
    }
  }

  private func finish(isDone: Bool) {
    state.change { state in
      state.active -= 1
      state.done += isDone ? 1 : 0
      state.runsExclusively = false
    }
  }

  /// Lets no thread begin another element for some milliseconds.
  func pause(ms: Int) {
    state.change { $0.pausedUntilMs = MonotonicClock.milliseconds() + ms }
  }

  /// Lets no thread begin another element.
  package func close() { state.change { $0.isClosed = true } }

  /// Waits until all threads of a closed pool have ended.
  package func join() { group.join() }

  /// The elements that no thread has begun.
  var remaining: [Element] { state.read { $0.elements.reversed() } }
  /// The number of elements in work.
  package var activeCount: Int { state.read(\.active) }
  /// The number of finished elements, and of waiting ones and those in work.
  package var counts: (done: Int, owed: Int) { state.read { ($0.done, $0.elements.count + $0.active) } }
  var isEmpty: Bool { state.read(\.elements.isEmpty) }
  package var isIdle: Bool { counts.owed == 0 }
}
