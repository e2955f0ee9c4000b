import FileSystem

/// Lets a few requests at a time read their batches: a batch may take as much memory as its limits allow.
final class ReaderGate: Sendable {
  private static let width = 2
  private static let patienceMs = 30_000
  private let readers = Monitor(0)

  /// - Throws: ``Problem`` if the others take long.
  func pass<R>(_ body: () throws -> R) throws -> R {
    let untilMs = MonotonicClock.milliseconds() + Self.patienceMs
    let isFree = readers.wait { count -> Monitor<Int>.CheckResult<Bool> in
      if count < Self.width {
        count += 1
        return .found(true)
      }
      let leftMs = untilMs - MonotonicClock.milliseconds()
      return leftMs > 0 ? .wait(ms: leftMs) : .found(false)
    }
    guard isFree else { throw Problem(.tooMany, "other batches are being read", retryAfterS: 5) }
    defer { readers.change { $0 -= 1 } }
    return try body()
  }
}
