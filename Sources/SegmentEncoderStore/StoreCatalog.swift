// The sessions of an object store, for embedders. This is a module of its own, because it needs libcurl.

import Encoding
import FileSystem
import Glibc
import Remote
import Sessions
import Showing

extension SessionCatalog {
  /// Opens the sessions of an object store, and reads the list of all sessions.
  ///
  /// Address, region and credentials come from the environment, as for the program: `AWS_ENDPOINT_URL`, `AWS_REGION`,
  /// `AWS_ACCESS_KEY_ID` and others. `sessions()` looks at the list again if some seconds have passed; a call sends at most 18 requests, so
  /// the changes of a large store come with several calls.
  ///
  /// A session is copied into a private directory below `TMPDIR` when it is first asked for. The copies go with the catalog: keep it as
  /// long as you use a playback.
  ///
  /// - Parameters:
  ///   - url: `s3://BUCKET` or `s3://BUCKET/PREFIX`.
  ///   - decoders: the sandbox; nil to read trusted segments in this process.
  /// - Throws: an error that names the wrong URL or variable; an error of the store; `DiskError` if `TMPDIR` cannot be used.
  public convenience init(ofStore url: String, decoders: DecoderForkServer? = nil) throws {
    let location = try S3Location(url)
    let settings = try S3Settings(environment: { name in getenv(name).map { String(cString: $0) } })
    let sessions = StoredSessions(try S3Client(location, settings), name: "\(location)")
    let staging = try Staging.temporary(for: WorkerID())
    do {
      let stored = try StoredOutput(sessions, in: staging)
      try stored.heads.readAll {}
      self.init(of: stored, decoders: decoders)
    } catch {
      staging.remove()
      throw error
    }
  }
}
