import ArgumentParser
import Glibc
import Remote

/// How requests to an object store are signed.
struct StoreAccess: ParsableArguments {
  @Flag(help: .setting("Send requests to the store without a signature, for stores that need none."))
  var unsigned = false

  /// Reads address, region and credentials of the store, as Amazon's tools do.
  ///
  /// - Throws: wrong usage that names the variable.
  func settings() throws -> S3Settings {
    do {
      return try S3Settings(
        environment: { getenv($0).map { String(cString: $0) } }, unsigned: unsigned,
        warn: { say("encoder-worker: \($0)", .warning) })
    } catch {
      throw ValidationError("\(error)")
    }
  }
}
