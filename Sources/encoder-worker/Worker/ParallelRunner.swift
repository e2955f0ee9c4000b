import ArgumentParser
import FileSystem
import Glibc
import SegmentEncoder
import Synchronization

/// Works through a list on several threads, until it is done or a stop is requested.
final class ParallelRunner<Element: Sendable>: Sendable {
  private let pool = ThreadPool<Element>()
  private let isStopped = Atomic(false)
  private let gravestStatus = Atomic<Int32>(0)

  init(_ elements: [Element]) { pool.offer(elements) }

  /// Adds elements behind those that wait. Call it while an element is in work.
  func add(_ more: [Element], _ signals: TerminationSignals) {
    pool.offer(more)
    // There may be work for further threads.
    signals.wake()
  }

  /// Works through the list. The first signal cancels the work in progress; the second ends the process at once.
  ///
  /// - Parameters:
  ///   - signals: made before anything that must not be left behind.
  ///   - tick: called about once a second on the caller's thread.
  ///   - makeWork: called once on each thread. The result works on an element, and returns an exit status if it failed.
  /// - Throws: the gravest exit status. After a signal, elements that no thread began are left.
  func workOff(
    threads: Int, signals: TerminationSignals, tick: () -> Void,
    _ makeWork: @escaping @Sendable () -> (Element) -> ExitCode?
  ) throws {
    defer {
      pool.close()
      pool.join()
    }
    var started = 0
    while !pool.isIdle && !(isCancelled && pool.activeCount == 0) {
      let wanted = isCancelled ? 0 : min(threads, pool.counts.owed)
      if wanted > started {
        try start(threads: wanted - started, signals, makeWork)
        started = wanted
      }
      tick()
      guard signals.wait(ms: 1_000) else { continue }
      if isCancelled {
        StandardError.removeBar()
        _exit(ExitStatus.temporaryFailure.rawValue)
      }
      isStopped.store(true, ordering: .relaxed)
      pool.close()
    }
    tick()
    if !pool.isIdle { throw ExitStatus.temporaryFailure }
    let status = gravestStatus.load(ordering: .relaxed)
    if status != 0 { throw ExitCode(status) }
  }

  private func start(
    threads: Int, _ signals: TerminationSignals, _ makeWork: @escaping @Sendable () -> (Element) -> ExitCode?
  ) throws {
    try pool.start(threads: threads, wake: signals.wake) {
      let work = makeWork()
      return { [self] element in
        // A failed machine outweighs bad input: the run is to be repeated.
        if let failure = work(element) { gravestStatus.max(failure.rawValue, ordering: .relaxed) }
        return true
      }
    }
  }

  /// The number of finished elements.
  var doneCount: Int { pool.counts.done }

  /// The number of all elements.
  var count: Int {
    let counts = pool.counts
    return counts.done + counts.owed
  }

  var isCancelled: Bool { isStopped.load(ordering: .relaxed) }

  /// For the work on one item.
  var cancellation: Cancellation { Cancellation { self.isCancelled } }
}
