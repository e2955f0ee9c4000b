import Glibc

/// Threads for long work, which would block the threads of Swift concurrency.
package final class ThreadGroup {
  /// The number of CPUs that are online.
  package static var processors: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  private var threads: [pthread_t] = []

  package init() {}

  /// Starts a thread that runs `body` to its end.
  package func start(_ body: @escaping @Sendable () -> Void) throws(DiskError) {
    let box = Unmanaged.passRetained(Body(run: body))
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { argument in
        Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue().run()
        return nil
      }, box.toOpaque())
    guard status == 0 else {
      box.release()
      throw DiskError("start", "a thread", code: status)
    }
    threads.append(thread)
  }

  /// Waits until all threads have ended.
  package func join() {
    for thread in threads { pthread_join(thread, nil) }
    threads = []
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(run: @escaping @Sendable () -> Void) { self.run = run }
  }
}
