import ArgumentParser
import Glibc
import Remote

/// How requests to an object store are signed, and the headers of what is written.
struct StoreAccess: ParsableArguments {
  @Flag(help: .setting("Send requests to the store without a signature, for stores that need none."))
  var unsigned = false

  @Option(
    help: .setting(
      "Header of all objects that are written, for encryption, storage class or tags. May be given several times.",
      valueName: "name: value", example: "x-amz-storage-class:STANDARD_IA"),
    transform: StoreHeader.init(_:))
  var storeHeader: [StoreHeader] = []

  /// Reads address, region and credentials of the store, as Amazon's tools do.
  ///
  /// - Throws: wrong usage that names the variable.
  func settings() throws -> S3Settings {
    try asUsage {
      try S3Settings(environment: Self.variable, unsigned: unsigned, headers: storeHeader, warn: Self.warn)
    }
  }

  /// Returns the settings of SQS: those of the store, but always with credentials.
  ///
  /// - Throws: wrong usage that names the variable.
  func queueSettings(beside store: S3Settings) throws -> AWSSettings {
    guard unsigned else { return store.aws }
    return try asUsage { try AWSSettings(environment: Self.variable, warn: Self.warn) }
  }

  private func asUsage<Value>(_ read: () throws -> Value) throws -> Value {
    do {
      return try read()
    } catch {
      throw ValidationError("\(error)")
    }
  }

  private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  private static func warn(_ line: String) { say("encoder-worker: \(line)", .warning) }
}
