import FileSystem

/// The role of an EC2 instance, by version 2 of its metadata service (IMDSv2): one try, a second for each request.
struct InstanceMetadata: CredentialProvider {
  let endpoint: S3Endpoint
  /// Whether the configuration asks for it, so that its absence is a failure of the role.
  var isConfigured: Bool

  var name: String { "the instance's metadata (IMDS)" }

  private static let path = "/latest/meta-data/iam/security-credentials/"

  /// - Returns: nil if it is switched off.
  /// - Throws: ``Failure``, which names the variable.
  init?(_ environment: AWSEnvironment, isConfigured: Bool = false) throws {
    if try environment.isOn("AWS_EC2_METADATA_DISABLED") { return nil }
    let mode = environment["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"]?.lowercased()
    guard mode == nil || mode == "ipv4" || mode == "ipv6" else {
      throw Failure(.usage, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE is neither IPv4 nor IPv6")
    }
    let usual = mode == "ipv6" ? "http://[fd00:ec2::254]" : "http://169.254.169.254"
    let named = environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
    guard let endpoint = S3Endpoint(named ?? usual) else {
      throw Failure(.usage, "AWS_EC2_METADATA_SERVICE_ENDPOINT is no http:// address of a host")
    }
    self.endpoint = endpoint
    self.isConfigured = isConfigured || named != nil
  }

  func fetch(_ cancellation: Cancellation) throws -> FetchedCredentials {
    let token: String
    do {
      let lifetime = (name: "X-aws-ec2-metadata-token-ttl-seconds", value: "21600")
      let answer = try send(.put, "/latest/api/token", [lifetime], cancellation)
      guard let text = Self.line(answer) else {
        throw failure("no token from it, status \(answer.status)", "allow IMDSv2, with a hop limit of 2 for containers")
      }
      token = text
    } catch let failure as TransferFailure {
      // It may come up later: the network of an instance that starts, an agent that is restarted.
      throw self.failure(
        failure.cause.oneLine,
        isConfigured
          ? "check AWS_EC2_METADATA_SERVICE_ENDPOINT and the hop limit"
          : "run it again on an EC2 instance; elsewhere \(Failure.nothingConfigured.advice)")
    }
    let header = (name: "X-aws-ec2-metadata-token", value: token)
    do {
      let role = try send(.get, Self.path, [header], cancellation)
      guard let name = Self.line(role), name.isPlain(and: "+=,.@_-") else {
        throw failure(
          "no role from it, status \(role.status)", "attach a role to the instance, or set other credentials")
      }
      let answer = try send(.get, Self.path + PercentEncoding.encoded(name), [header], cancellation)
      guard answer.isGood else {
        throw failure("status \(answer.status) for role \(name)", "check the instance's role")
      }
      return try answer.jsonCredentials()
    } catch let failure as TransferFailure {
      throw self.failure(failure.cause.oneLine, "run it again")
    } catch let wrong as CredentialAnswerError {
      throw failure(wrong.cause, "check the instance's role")
    }
  }

  private func send(
    _ method: CurlRequest.Method, _ path: String, _ headers: [(name: String, value: String)],
    _ cancellation: Cancellation
  ) throws -> CredentialAnswer {
    try CredentialRequest(
      method: method, url: "\(endpoint.scheme)://\(endpoint.host)\(endpoint.path)\(path)", headers: headers
    ).send(cancellation)
  }

  /// Returns the first line of a good answer; nil if there is none.
  private static func line(_ answer: CredentialAnswer) -> String? {
    guard answer.isGood else { return nil }
    let line = answer.bytes.prefix { (33...126).contains($0) }
    return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
  }
}

/// The end of the chain, if IMDS is switched off.
struct NoCredentials: CredentialProvider {
  var name: String { Failure.nothingConfigured.subject }
  func fetch(_ cancellation: Cancellation) throws -> FetchedCredentials { throw Failure.nothingConfigured }
}

extension Failure {
  /// The end of the chain: a person has to configure something.
  static let nothingConfigured = Failure(
    .usage, "get credentials from", "this machine",
    "no keys, profile, web identity or container is configured, and IMDS is switched off",
    advice:
      "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, give it a role, or say --unsigned for a store without signatures"
  )
}
