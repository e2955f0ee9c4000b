// The private directories of processes that have no output, such as readers of an object store.

import FileSystem
import Glibc

extension Staging {
  /// The directory for temporary files: `TMPDIR`, or `/tmp`.
  package static var temporaryDirectory: String {
    let named = getenv("TMPDIR").map { String(cString: $0) } ?? ""
    return named.isEmpty ? "/tmp" : named
  }

  /// Opens a private directory below the one for temporary files. Removes what dead processes have left there.
  package static func temporary(for worker: WorkerID) throws -> Staging {
    try Staging(scratch: "\(temporaryDirectory)/encoder-worker-\(geteuid())", worker: worker)
  }
}
