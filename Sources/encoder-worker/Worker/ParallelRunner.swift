import ArgumentParser
import FileSystem
import Glibc
import SegmentEncoder
import Synchronization

/// A list of work that several threads do, until it is done or a stop is requested.
final class ParallelRunner<Element: Sendable>: Sendable {
  private let queue = WorkQueue<Element>()
  private let isStopped = Atomic(false)
  private let status = Mutex<ExitCode?>(nil)

  init(_ elements: [Element]) { queue.offer(elements) }

  /// Does all of it. The first signal cancels what is being done; the second one does not wait for that.
  ///
  /// - Parameters:
  ///   - signals: taken before anything was begun that must not be left behind.
  ///   - makeWork: called on each thread for what it does with an element; the result is an exit status when the element
  ///     failed.
  ///   - tick: called now and then on the caller's thread.
  /// - Throws: the gravest exit status. When cancelled, what was not begun is still to be done.
  func workOff(
    threads: Int, signals: TerminationSignals, tick: () -> Void = {},
    _ makeWork: @escaping @Sendable () -> (Element) -> ExitCode?
  ) throws {
    let wake = signals.wake
    let group = ThreadGroup()
    defer {
      queue.close()
      group.join()
    }
    for _ in 0..<min(threads, queue.counts.owed) {
      try group.start { [self] in
        let work = makeWork()
        while let element = queue.next() {
          note(work(element))
          queue.finished(isDone: true)
          wake()
        }
      }
    }
    while !queue.isIdle && !(isCancelled && queue.activeCount == 0) {
      tick()
      guard signals.wait(ms: 1_000) else { continue }
      if isCancelled {
        StandardError.removeBar()
        _exit(ExitStatus.temporaryFailure.rawValue)
      }
      isStopped.store(true, ordering: .relaxed)
      queue.close()
    }
    tick()
    if let status = queue.isIdle ? status.withLock({ $0 }) : ExitStatus.temporaryFailure { throw status }
  }

  /// How many elements are done with.
  var doneCount: Int { queue.counts.done }

  var isCancelled: Bool { isStopped.load(ordering: .relaxed) }

  /// A failed machine outweighs bad input: the run is to be repeated.
  private func note(_ failure: ExitCode?) {
    guard let failure else { return }
    status.withLock { $0 = ($0?.rawValue ?? 0) > failure.rawValue ? $0 : failure }
  }
}
