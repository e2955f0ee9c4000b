import Foundation
import TestSupport

/// Runs a script that waits for schedulers or leases, on a separate thread. The thread pool stays free for tests that
/// compute.
func runWaiting(_ script: String) async throws -> Tool.Result {
  let path = Fixture.root.appendingPathComponent("Tests/" + script).path
  return try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread {
      continuation.resume(
        with: Result { try Tool.run(Tool.python, [path], environment: ["ENCODER_WORKER": EncoderWorker.path]) })
    }
  }
}
