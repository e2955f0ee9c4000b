import FileSystem
import FrameBatches

/// The keys in the environment.
struct EnvironmentKeys: CredentialProvider, SecretValue {
  private let credentials: AWSCredentials
  /// In unix milliseconds; nil if nobody says.
  private let expiresMs: Int64?

  /// - Returns: nil without keys.
  /// - Throws: ``Failure``, which names the variables.
  init?(_ environment: AWSEnvironment) throws {
    switch (environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]) {
    case (nil, nil): return nil
    case (let key?, let secret?):
      guard let credentials = AWSCredentials(key: key, secret: secret, token: environment["AWS_SESSION_TOKEN"]) else {
        throw Failure(
          .usage, "AWS_ACCESS_KEY_ID, AWS_SESSION_TOKEN: a blank, a comma or no ASCII; give them as they are")
      }
      self.credentials = credentials
      let expiration = environment["AWS_CREDENTIAL_EXPIRATION"].map { SessionInstant($0) }
      guard case .unixMs(let expiresMs)?? = expiration else {
        guard expiration == nil else {
          throw Failure(.usage, "AWS_CREDENTIAL_EXPIRATION is no time; write it as 2026-11-27T12:00:00Z, or unset it")
        }
        self.expiresMs = nil
        return
      }
      self.expiresMs = expiresMs
    default: throw Failure(.usage, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together; set both or none")
    }
  }

  var name: String { "AWS_ACCESS_KEY_ID" }
  var remedy: String { "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN" }
  var isFixed: Bool { true }

  func fetch(_ cancellation: Cancellation) -> FetchedCredentials {
    FetchedCredentials(credentials: credentials, lifetimeMs: nil, expiresMs: expiresMs)
  }
}

/// The keys in a profile. The files are read again when a service refuses the keys.
struct ProfileKeys: CredentialProvider {
  let profile: String
  let files: SharedConfigFiles

  var name: String { "profile '\(profile)'" }
  var remedy: String { "check aws_access_key_id, aws_secret_access_key and aws_session_token of \(name)" }

  func fetch(_ cancellation: Cancellation) throws -> FetchedCredentials {
    let values: AWSProfile?
    do {
      values = try files.load().profile(profile)
    } catch {
      throw failure("\(error)", "correct the shared files of Amazon's tools")
    }
    guard let key = values?["aws_access_key_id"], let secret = values?["aws_secret_access_key"] else {
      throw failure("aws_access_key_id and aws_secret_access_key are not both there", "write both into \(files.paths)")
    }
    guard let credentials = AWSCredentials(key: key, secret: secret, token: values?["aws_session_token"]) else {
      throw failure("a key has a blank, a comma or no ASCII", "write it as it was given")
    }
    return FetchedCredentials(credentials: credentials, lifetimeMs: nil)
  }
}
