import FileSystem

/// Requests to a store from several threads: each waits for the network most of its time.
package enum ParallelFetch {
  private static let threads = 8
  /// Maximum time between two calls of `progress`, in milliseconds.
  private static let progressMs = 100

  private struct State<Result> {
    var next = 0
    var results: [Int: Result] = [:]
    var failure: (index: Int, error: any Error)?
    var running: Int
  }

  /// Returns the results for items, in their order.
  ///
  /// - Parameters:
  ///   - body: called on other threads, or on this one for a single item.
  ///   - progress: called on this thread with the number of finished items; an error that it throws ends the work.
  /// - Throws: the error of the first item that failed. The items behind it may be left out.
  package static func map<Item: Sendable, Result: Sendable>(
    _ items: [Item], _ body: @escaping @Sendable (Item) throws -> Result, progress: (Int) throws -> Void
  ) throws -> [Result] {
    if items.count < 2 {
      let results = try items.map(body)
      try progress(items.count)
      return results
    }
    let count = min(threads, items.count)
    let state = Monitor(State<Result>(running: count))
    let group = ThreadGroup()
    for _ in 0..<count {
      do {
        try group.start { work(items, state, body) }
      } catch {
        state.change { state in
          state.running -= 1
          state.failure = state.failure ?? (items.count, error)
        }
      }
    }
    defer { group.join() }
    while let done = waitForNews(state) {
      do {
        try progress(done)
      } catch {
        state.change { $0.next = items.count }
        throw error
      }
    }
    let (results, failure) = state.read { ($0.results, $0.failure) }
    if let failure { throw failure.error }
    return items.indices.compactMap { results[$0] }
  }

  /// Waits for a result, but not for long.
  ///
  /// - Returns: the number of results; nil if no thread is at work any more.
  private static func waitForNews<Result>(_ state: Monitor<State<Result>>) -> Int? {
    var isWoken = false
    return state.wait { state in
      if state.running == 0 { return .found(nil) }
      if isWoken { return .found(state.results.count) }
      isWoken = true
      return .wait(ms: progressMs)
    }
  }

  private static func work<Item, Result: Sendable>(
    _ items: [Item], _ state: Monitor<State<Result>>, _ body: (Item) throws -> Result
  ) {
    func take() -> Int? {
      state.change { state in
        guard state.next < items.count, state.failure == nil else { return nil }
        defer { state.next += 1 }
        return state.next
      }
    }
    while let index = take() {
      do {
        let result = try body(items[index])
        state.change { $0.results[index] = result }
      } catch {
        let failed = error
        state.change { state in
          if state.failure.map({ $0.index > index }) ?? true { state.failure = (index, failed) }
        }
      }
    }
    state.change { $0.running -= 1 }
  }
}
