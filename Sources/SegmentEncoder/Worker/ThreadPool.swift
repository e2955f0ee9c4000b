import CLinux
import FileSystem
import Glibc

/// Threads that work through a queue. It can be paused and closed. It uses a lock and a condition variable, because
/// nothing here may run on, or block, Swift's cooperative pool.
package final class ThreadPool<Element: Sendable>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private let isExclusive: @Sendable (Element) -> Bool
  /// Used on the owner's thread only.
  private let group = ThreadGroup()
  // All guarded by `mutex`. `elements` is a FIFO queue, stored in reverse: the last element is the next one.
  private var elements: [Element] = []
  private var active = 0
  private var done = 0
  private var runsExclusively = false
  private var isClosed = false
  private var pausedUntil = timespec()

  /// - Parameter isExclusive: whether an element must be worked on alone.
  package init(isExclusive: @escaping @Sendable (Element) -> Bool = { _ in false }) {
    self.isExclusive = isExclusive
    pthread_mutex_init(mutex, nil)
    // A clock that cannot be set.
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(changed, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(mutex)
    changed.deallocate()
    mutex.deallocate()
  }

  /// Starts threads that work until the pool is closed. If one cannot be started, the others end.
  ///
  /// - Parameters:
  ///   - wake: called after each element.
  ///   - makeWork: called once on each thread. The result works on an element, and returns whether it counts as done.
  package func start(
    threads: Int, wake: @escaping @Sendable () -> Void, _ makeWork: @escaping @Sendable () -> (Element) -> Bool
  ) throws(ThreadError) {
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
  package func offer(_ more: [Element]) {
    locked {
      elements.insert(contentsOf: more.reversed(), at: 0)
      pthread_cond_broadcast(changed)
    }
  }

  /// Waits for work; returns nil once the pool is closed.
  private func next() -> Element? {
    locked {
      while !isClosed {
        if isPaused {
          var until = pausedUntil
          pthread_cond_timedwait(changed, mutex, &until)
        } else if let element = elements.last, !runsExclusively, active == 0 || !isExclusive(element) {
          runsExclusively = isExclusive(element)
          active += 1
          return elements.removeLast()
        } else {
          pthread_cond_wait(changed, mutex)
        }
      }
      return nil
    }
  }

  private func finish(isDone: Bool) {
    locked {
      active -= 1
      done += isDone ? 1 : 0
      runsExclusively = false
      pthread_cond_broadcast(changed)
    }
  }

  /// Lets no thread begin another element for some seconds.
  func pause(seconds: Int) {
    locked {
      clock_gettime(CLOCK_MONOTONIC, &pausedUntil)
      pausedUntil.tv_sec += seconds
    }
  }

  /// Lets no thread begin another element.
  package func close() {
    locked {
      isClosed = true
      pthread_cond_broadcast(changed)
    }
  }

  /// Waits until all threads of a closed pool have ended.
  package func join() { group.join() }

  /// The elements that no thread has begun.
  var remaining: [Element] { locked { elements.reversed() } }
  /// The number of elements in work.
  package var activeCount: Int { locked { active } }
  /// The number of finished elements, and of waiting ones and those in work.
  package var counts: (done: Int, owed: Int) { locked { (done, elements.count + active) } }
  var isEmpty: Bool { locked { elements.isEmpty } }
  package var isIdle: Bool { counts.owed == 0 }

  private var isPaused: Bool {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return (now.tv_sec, now.tv_nsec) < (pausedUntil.tv_sec, pausedUntil.tv_nsec)
  }

  private func locked<R>(_ body: () -> R) -> R {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }
}
