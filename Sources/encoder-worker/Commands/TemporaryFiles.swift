import FileSystem
import Glibc
import Sessions

/// The directory for temporary files: `TMPDIR`, or `/tmp`.
var temporaryDirectory: String {
  let named = getenv("TMPDIR").map { String(cString: $0) } ?? ""
  return named.isEmpty ? "/tmp" : named
}

extension Staging {
  /// Opens a private directory below the one for temporary files. Removes what dead processes have left there.
  static func temporary(for worker: WorkerID) throws -> Staging {
    try Staging(scratch: "\(temporaryDirectory)/encoder-worker-\(geteuid())", worker: worker)
  }
}
