import FileSystem
import Glibc
import Synchronization

/// A thread for the work of asynchronous encoders, which would block the threads of Swift concurrency for milliseconds a frame.
///
/// A process has one for each CPU, which its encoders share. An encoder keeps its thread, so that its frames stay in order.
final class EncodingThread: SerialExecutor {
  private let jobs = Monitor<[UnownedJob]>([])
  private let encoders = Atomic(0)

  /// Started with the first encoder. They end with the process. ThreadSanitizer sees the lock of a Monitor, not that of a Mutex.
  private static let all = Monitor<[EncodingThread]>([])

  /// Returns the thread with the fewest encoders, for one more. The encoder calls ``leave()`` at its end.
  static func join() throws(DiskError) -> EncodingThread {
    try all.change { threads -> Result<EncodingThread, DiskError> in
      do throws(DiskError) {
        while threads.count < ThreadGroup.processors { threads.append(try EncodingThread()) }
      } catch {
        return .failure(error)
      }
      let thread = threads.min { $0.count < $1.count } ?? threads[0]
      thread.encoders.add(1, ordering: .relaxed)
      return .success(thread)
    }.get()
  }

  private var count: Int { encoders.load(ordering: .relaxed) }

  func leave() { encoders.subtract(1, ordering: .relaxed) }

  private init() throws(DiskError) {
    try ThreadGroup().start { [self] in
      // Nobody joins this thread.
      pthread_detach(pthread_self())
      while true {
        let next = jobs.wait { jobs in
          defer { jobs = [] }
          return jobs.isEmpty ? .wait(ms: nil) : .found(jobs)
        }
        for job in next { job.runSynchronously(on: asUnownedSerialExecutor()) }
      }
    }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.change { $0.append(job) }
  }
}
