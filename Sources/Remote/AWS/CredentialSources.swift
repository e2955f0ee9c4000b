// The order of the steps, as Amazon's SDKs have it. The first that is configured is the only one that is asked.
// https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html

import FileSystem

/// Chooses the step of the chain.
struct CredentialSources {
  private let environment: AWSEnvironment
  private let service: SecurityTokenService
  private let config: SharedConfig

  /// A role may need another role, and so on.
  private static let maximumProfiles = 5

  /// - Throws: ``Failure`` for a configuration that is incomplete or not supported.
  static func provider(
    _ environment: AWSEnvironment, _ endpoints: AWSEndpoints, _ clock: SigningClock
  ) throws -> any CredentialProvider {
    // A named profile may take the keys to get its role.
    let isForProfile =
      environment.namesProfile && environment.profile?["role_arn"] != nil
      && environment.profile?["credential_source"]?.lowercased() == "environment"
    if !isForProfile, let keys = try EnvironmentKeys(environment) { return keys }
    let service = SecurityTokenService(base: endpoints.base(of: "sts"), region: endpoints.region, clock: clock)
    let sources = CredentialSources(
      environment: environment, service: service, config: try environment.files.load())
    let profile = { try environment.profile.flatMap { try sources.provider($0, []) } }
    // A named profile goes before web identity. One with a region only leaves the credentials to other steps.
    if environment.namesProfile, let provider = try profile() { return provider }
    if let role = try sources.webIdentity() { return role }
    if !environment.namesProfile, let provider = try profile() { return provider }
    if let container = try ContainerCredentials(environment) { return container }
    if let instance = try InstanceMetadata(environment) { return instance }
    return NoCredentials()
  }

  private func webIdentity() throws -> WebIdentityRole? {
    guard let file = environment["AWS_WEB_IDENTITY_TOKEN_FILE"] else { return nil }
    guard let role = environment["AWS_ROLE_ARN"] else {
      throw Failure(.usage, "AWS_WEB_IDENTITY_TOKEN_FILE needs AWS_ROLE_ARN; set both or none")
    }
    return WebIdentityRole(
      name: "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE", tokenFile: file,
      role: try Self.role(role, "AWS_ROLE_ARN"),
      session: try Self.session(environment["AWS_ROLE_SESSION_NAME"]), service: service)
  }

  /// Returns nil for a profile without anything on credentials.
  ///
  /// - Parameter users: the profiles whose roles need this one.
  private func provider(_ profile: AWSProfile, _ users: [String]) throws -> (any CredentialProvider)? {
    let name = "profile '\(profile.name)'"
    let isOwnSource = users.last == profile.name
    guard users.count < Self.maximumProfiles, isOwnSource || !users.contains(profile.name) else {
      throw Failure(
        .usage, "\(name): the profiles of source_profile are in a circle, or more than \(Self.maximumProfiles)")
    }
    if let arn = profile["role_arn"], !isOwnSource {
      if profile["mfa_serial"] != nil {
        throw Failure(.usage, "\(name): mfa_serial is not supported; use a role without it")
      }
      let role = try Self.role(arn, "role_arn of \(name)")
      let session = try Self.session(profile["role_session_name"])
      if let file = profile["web_identity_token_file"] {
        return WebIdentityRole(
          name: "the web identity of \(name)", tokenFile: file, role: role, session: session, service: service)
      }
      return AssumedRole(
        name: "role_arn of \(name)", role: role, session: session, externalID: profile["external_id"],
        durationS: profile["duration_seconds"], source: try source(of: profile, users), service: service)
    }
    if profile["aws_access_key_id"] ?? profile["aws_secret_access_key"] != nil {
      return ProfileKeys(profile: profile.name, files: environment.files)
    }
    for key in ["sso_session", "sso_start_url", "credential_process", "login_session"] where profile[key] != nil {
      throw Failure(
        .usage,
        "\(name): \(key) is not supported; set keys in the environment, as 'aws configure export-credentials --format env' prints them, or use a role"
      )
    }
    return nil
  }

  /// Returns the credentials that sign the request for a profile's role.
  private func source(of profile: AWSProfile, _ users: [String]) throws -> any CredentialProvider {
    let name = "profile '\(profile.name)'"
    switch (profile["source_profile"], profile["credential_source"]?.lowercased()) {
    case (let source?, nil):
      guard let other = config.profile(source), let provider = try provider(other, users + [profile.name]) else {
        throw Failure(.usage, "\(name): source_profile '\(source.oneLine)' is missing, or has no credentials")
      }
      return provider
    case (nil, "environment"?):
      guard let keys = try EnvironmentKeys(environment) else {
        throw Failure(
          .usage,
          "\(name): credential_source is Environment, but AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set")
      }
      return keys
    case (nil, "ec2instancemetadata"?):
      guard let instance = try InstanceMetadata(environment, isConfigured: true) else {
        throw Failure(.usage, "\(name): credential_source is Ec2InstanceMetadata, but AWS_EC2_METADATA_DISABLED is set")
      }
      return instance
    case (nil, "ecscontainer"?):
      guard let container = try ContainerCredentials(environment) else {
        throw Failure(
          .usage, "\(name): credential_source is EcsContainer, but AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set")
      }
      return container
    default:
      throw Failure(
        .usage,
        "\(name): role_arn needs source_profile, web_identity_token_file, or credential_source: Environment, Ec2InstanceMetadata or EcsContainer"
      )
    }
  }

  private static func role(_ arn: String, _ name: String) throws -> String {
    guard arn.utf8.count <= 2_048, arn.utf8.allSatisfy({ (33...126).contains($0) }) else {
      throw Failure(.usage, "\(name) is no ARN of a role; it begins with arn:aws:iam::")
    }
    return arn
  }

  /// The name of sessions in the log of Amazon.
  private static func session(_ name: String?) throws -> String {
    let name = name ?? "encoder-worker"
    guard (2...64).contains(name.utf8.count), name.isPlain(and: "_=,.@-") else {
      throw Failure(.usage, "AWS_ROLE_SESSION_NAME, role_session_name: 2 to 64 of A-Z a-z 0-9 _ = , . @ -")
    }
    return name
  }
}
