import FileSystem
import Glibc

/// An unlisted object with other content has the name: its worker is about to publish it, or has died. The batch is retried later.
/// A segment is replaced when no index has listed it for two hours.
package struct SegmentWriteConflict: ClassifiedError {
  package var kind: Failure.Kind { .environment }
  /// Waits before a retry after a lost race, with a random, growing pause; not before the first attempt.
  package static func pause(_ attempt: Int) {
    if attempt > 0 { usleep(UInt32.random(in: 0...UInt32(5_000 << min(attempt, 8)))) }
  }

  /// Calls `body` until it returns a value, with a pause after each lost race.
  ///
  /// - Parameter body: returns nil if another process was faster.
  /// - Throws: ``Cancelled``; errors of `body`.
  static func retrying<R>(_ cancellation: Cancellation, _ body: () throws -> R?) throws -> R {
    var attempt = 0
    while true {
      try cancellation.check()
      pause(attempt)
      attempt += 1
      if let result = try body() { return result }
    }
  }

  package let name: String
  package let key: String

  package var description: String {
    "publish \(name)\(key): another worker has written something else there and has not listed it yet; tried again later"
  }
}
