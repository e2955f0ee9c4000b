import ArgumentParser
import FileSystem
import Glibc
import SegmentEncoder
import Synchronization

/// A list of work that several threads do, until it is done or somebody asks to stop.
final class WorkList<Element: Sendable>: Sendable {
  private struct State {
    var taken = 0
    var done = 0
    var threads = 0
    var isCancelled = false
    var status: ExitCode?
  }

  private let elements: [Element]
  private let state = Mutex(State())

  init(_ elements: [Element]) { self.elements = elements }

  /// Does all of it. The first signal cancels what is being done; the second one does not wait for that.
  ///
  /// - Parameters:
  ///   - signals: taken before anything was begun that must not be left behind.
  ///   - makeWork: called on each thread for what it does with an element; the result is an exit status when the element
  ///     failed.
  ///   - tick: called now and then on the caller's thread.
  /// - Throws: the gravest exit status.
  func workOff(
    threads: Int, signals: TerminationSignals, tick: () -> Void = {},
    _ makeWork: @escaping @Sendable () -> (Element) -> ExitCode?
  ) throws {
    let wake = signals.wake
    let group = ThreadGroup()
    for _ in 0..<min(threads, elements.count) {
      state.withLock { $0.threads += 1 }
      try group.start {
        let work = makeWork()
        while let element = self.next() {
          self.finish(work(element))
          wake()
        }
        self.state.withLock { $0.threads -= 1 }
        wake()
      }
    }
    while isRunning {
      tick()
      guard signals.wait(ms: 1_000) else { continue }
      if isCancelled {
        StandardError.removeBar()
        _exit(ExitStatus.temporaryFailure.rawValue)
      }
      state.withLock { $0.isCancelled = true }
    }
    group.join()
    tick()
    if let status { throw status }
  }

  /// How many elements are done with.
  var doneCount: Int { state.withLock { $0.done } }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  private var isRunning: Bool { state.withLock { $0.threads > 0 } }

  private func next() -> Element? {
    state.withLock { state in
      guard !state.isCancelled, state.taken < elements.count else { return nil }
      state.taken += 1
      return elements[state.taken - 1]
    }
  }

  /// A failed machine outweighs bad input: the run is to be repeated.
  private func finish(_ status: ExitCode?) {
    state.withLock { $0.done += 1 }
    guard let status else { return }
    state.withLock { $0.status = ($0.status?.rawValue ?? 0) > status.rawValue ? $0.status : status }
  }

  /// When cancelled, what was not begun is still to be done.
  private var status: ExitCode? {
    state.withLock { $0.taken < elements.count ? ExitStatus.temporaryFailure : $0.status }
  }
}
