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

  package let name: String
  package let key: String

  package var description: String {
    "publish \(name)\(key): another worker has written something else there and has not listed it yet; tried again later"
  }
}
