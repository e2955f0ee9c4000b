import FileSystem

/// The variables and the profile of Amazon's tools, read once.
struct AWSEnvironment: Sendable, SecretValue {
  private let variables: [String: String]
  /// The profile that is in use; nil if the shared files have none of that name.
  let profile: AWSProfile?
  let files: SharedConfigFiles

  /// All variables that are read.
  static let names = [
    "HOME", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CREDENTIAL_EXPIRATION",
    "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
    "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_SQS",
    "AWS_ENDPOINT_URL_STS", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_USE_FIPS_ENDPOINT",
    "AWS_USE_DUALSTACK_ENDPOINT", "AWS_S3_ADDRESSING_STYLE",
  ]

  /// Empty variables are ignored.
  ///
  /// - Throws: ``Failure`` for a shared file that is no configuration, or a named profile that is missing.
  init(_ value: (String) -> String?) throws {
    var variables: [String: String] = [:]
    for name in Self.names { variables[name] = value(name).flatMap { $0.isEmpty ? nil : $0 } }
    self.variables = variables
    files = SharedConfigFiles(variables)
    let named = variables["AWS_PROFILE"] ?? variables["AWS_DEFAULT_PROFILE"]
    profile = try files.load().profile(named ?? "default")
    if profile == nil, let named {
      throw Failure(
        .usage,
        "AWS_PROFILE: there is no profile '\(named)' in \(files.paths); name one of these files, or unset AWS_PROFILE")
    }
  }

  subscript(name: String) -> String? { variables[name] }

  /// Whether a profile was named: its credentials go before those of a web identity.
  var namesProfile: Bool { variables["AWS_PROFILE"] ?? variables["AWS_DEFAULT_PROFILE"] != nil }

  /// Returns a switch of a variable, or else of the profile.
  ///
  /// - Throws: ``Failure`` for any text but `true` and `false`.
  func isOn(_ variable: String, profile key: String? = nil) throws -> Bool {
    guard let text = variables[variable] ?? key.flatMap({ profile?[$0] }) else { return false }
    switch text.lowercased() {
    case "true": return true
    case "false": return false
    default: throw Failure(.usage, "\(variable): '\(text.prefix(40).description.oneLine)' is neither true nor false")
    }
  }
}
