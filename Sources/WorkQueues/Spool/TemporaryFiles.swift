import FileSystem
import Sessions
import Synchronization

/// Names of temporary files in an output. Their directory is made with the first one; after a crash the next worker removes it.
final class TemporaryFiles: Sendable {
  private let output: String
  private let staging = Mutex<Staging?>(nil)

  init(output: String) { self.output = output }

  func next() throws -> String {
    try staging.withLock { staging in
      let made = try staging ?? Staging(output: output, worker: WorkerID())
      staging = made
      return made.temporaryFile()
    }
  }

  func remove() { staging.withLock { $0?.remove() } }
}
