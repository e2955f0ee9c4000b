/// Region, addresses, credentials and time for services of Amazon, and for servers that speak their protocols.
package struct AWSSettings: Sendable {
  package let credentials: CredentialChain
  /// The time to sign with.
  let clock: SigningClock
  let endpoints: AWSEndpoints
  /// Seconds without a byte after which a request fails.
  var timeoutS = 30

  /// Reads settings as Amazon's tools do. Sends no request.
  ///
  /// - Parameters:
  ///   - value: returns an environment variable.
  ///   - isUnsigned: whether requests are sent without a signature.
  ///   - warn: called with a line for the log: a renewal that fails, a clock that is wrong.
  /// - Throws: ``Failure``, which names the variable.
  package init(
    environment value: (String) -> String?, unsigned isUnsigned: Bool = false,
    warn: @escaping @Sendable (String) -> Void = { _ in }
  ) throws {
    try self.init(AWSEnvironment(value), unsigned: isUnsigned, warn: warn)
  }

  init(
    _ environment: AWSEnvironment, unsigned isUnsigned: Bool, warn: @escaping @Sendable (String) -> Void
  ) throws {
    endpoints = try AWSEndpoints(environment)
    clock = SigningClock(warn: warn)
    credentials =
      try isUnsigned
      ? .unsigned : CredentialChain(CredentialSources.provider(environment, endpoints, clock), warn: warn)
  }

  package var region: String { endpoints.region }

  /// Returns the configured address of a service (`s3`, `sqs`, `sts`); nil for Amazon's.
  func endpoint(of service: String) -> S3Endpoint? { endpoints.named(service) }

  var usesFIPS: Bool { endpoints.usesFIPS }
  var usesDualStack: Bool { endpoints.usesDualStack }
}
