import Glibc

/// Limits the number of threads that run a body at the same time.
final class Semaphore: @unchecked Sendable {
  private let semaphore: UnsafeMutablePointer<sem_t>

  init(width: UInt32) {
    semaphore = .allocate(capacity: 1)
    sem_init(semaphore, 0, width)
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func pass<R>(_ body: () throws -> R) rethrows -> R {
    while sem_wait(semaphore) != 0 && errno == EINTR {}
    defer { sem_post(semaphore) }
    return try body()
  }
}
