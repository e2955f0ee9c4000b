import FileSystem
import Sessions
import TestSupport
import Testing

@testable import Remote

/// Tests which step of the chain is asked, without a request.
@Suite struct CredentialSourcesTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func provider(_ variables: [String: String], config: String = "") throws -> any CredentialProvider {
    var variables = variables
    if !config.isEmpty {
      variables["AWS_CONFIG_FILE"] = try scratch.file("config", Array(config.utf8))
    }
    let environment = try AWSEnvironment { variables[$0] }
    return try CredentialSources.provider(environment, AWSEndpoints(environment), SigningClock())
  }

  private static let keys = ["AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "hush"]
  private static let web = ["AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": IdentityServer.role]
  private static let container = ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/x"]
  private static let profile = "[default]\naws_access_key_id = A\naws_secret_access_key = B\n"

  @Test func firstConfiguredStepIsAsked() throws {
    let all = Self.keys.merging(Self.web) { $1 }.merging(Self.container) { $1 }
    #expect(try provider(all, config: Self.profile).name == "AWS_ACCESS_KEY_ID")
    #expect(
      try provider(Self.web.merging(Self.container) { $1 }, config: Self.profile).name
        == "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE")
    #expect(try provider(Self.container, config: Self.profile).name == "profile 'default'")
    let named = Self.web.merging(["AWS_PROFILE": "default"]) { $1 }
    #expect(try provider(named, config: Self.profile).name == "profile 'default'")
    #expect(
      try provider(Self.container).name == "the container's AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    #expect(try provider([:]).name == "the instance's metadata (IMDS)")
    let off = try provider(["AWS_EC2_METADATA_DISABLED": "true"])
    let error = #expect(throws: Failure.self) { try off.fetch() }
    #expect(error?.kind == .usage && error?.description.contains("--unsigned") == true)
  }

  @Test func profileWithARoleTakesTheKeysOfAnother() throws {
    let config = """
      [profile one] # the role
      role_arn=\(IdentityServer.role)
      source_profile = two
      [profile two]
      aws_access_key_id = A
      aws_secret_access_key = B ; a comment
      [profile web]
      role_arn = \(IdentityServer.role)
      web_identity_token_file = /token
      [profile env]
      role_arn = \(IdentityServer.role)
      credential_source = Environment
      [profile self]
      role_arn = \(IdentityServer.role)
      source_profile = self
      aws_access_key_id = A
      aws_secret_access_key = B
      """
    let one = try #require(try provider(["AWS_PROFILE": "one"], config: config) as? AssumedRole)
    #expect(one.source.name == "profile 'two'" && one.role == IdentityServer.role)
    #expect(try one.source.fetch().credentials == AWSCredentials(key: "A", secret: "B", token: nil))
    let own = try #require(try provider(["AWS_PROFILE": "self"], config: config) as? AssumedRole)
    #expect(own.source.name == "profile 'self'")
    #expect(try provider(["AWS_PROFILE": "web"], config: config).name == "the web identity of profile 'web'")
    let env = Self.keys.merging(["AWS_PROFILE": "env"]) { $1 }
    #expect(try (provider(env, config: config) as? AssumedRole)?.source.name == "AWS_ACCESS_KEY_ID")
  }

  @Test(arguments: [
    ("sso_session = x", "sso_session is not supported"),
    ("credential_process = /bin/x", "credential_process is not supported"),
    ("role_arn = arn:aws:iam::1:role/x\nmfa_serial = y\nsource_profile = p", "mfa_serial is not supported"),
    ("role_arn = arn:aws:iam::1:role/x", "role_arn needs source_profile"),
    ("role_arn = arn:aws:iam::1:role/x\nsource_profile = q", "source_profile 'q' is missing"),
    ("role_arn = arn:aws:iam::1:role/x\ncredential_source = Environment", "AWS_ACCESS_KEY_ID"),
    ("role_arn = arn:aws:iam::1:role/x\ncredential_source = EcsContainer", "EcsContainer"),
    ("role_arn = arn:aws:iam::1:role/x\nsource_profile = r\n[profile r]\nrole_arn = z\nsource_profile = p", "circle"),
    ("aws_access_key_id = A\n  region = x", "config:3: 'region' is below a key that has a value"),
    ("no value", "config:2: neither [section] nor name = value"),
  ])
  func namedProfileThatCannotBeUsedIsAnError(lines: String, message: String) throws {
    let error = #expect(throws: Failure.self) {
      try provider(["AWS_PROFILE": "p"], config: "[profile p]\n\(lines)\n")
    }
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
  }

  @Test(arguments: [
    ["AWS_PROFILE": "nobody"], ["AWS_WEB_IDENTITY_TOKEN_FILE": "/token"],
    ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/x"],
    ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1.example.com/x"],
    ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2@example.com/x"],
    ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.169.254/x"],
    ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "file:///etc/passwd"],
    ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:99999/x"],
    ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "@example.com/x"],
    ["AWS_EC2_METADATA_SERVICE_ENDPOINT": "169.254.169.254"], ["AWS_EC2_METADATA_DISABLED": "yes"],
    ["AWS_USE_FIPS_ENDPOINT": "1"], ["AWS_USE_FIPS_ENDPOINT": "true", "AWS_ENDPOINT_URL": "http://x"],
  ])
  func invalidVariableIsNamed(variables: [String: String]) throws {
    let error = #expect(throws: Failure.self) { try provider(variables) }
    #expect(error?.description.contains(variables.keys.sorted().last ?? "-") == true, "\(error?.description ?? "")")
  }

  @Test(arguments: [
    "http://127.0.0.1:8080/x", "http://localhost/x", "http://169.254.170.2/x", "http://169.254.170.23/v1/credentials",
    "http://[fd00:ec2::23]/v1/credentials", "https://example.com/x?y=z",
  ])
  func containerEndpointOfThisMachineOrTheAgentIsAsked(url: String) throws {
    let step = try provider(["AWS_CONTAINER_CREDENTIALS_FULL_URI": url])
    #expect(step.name == "the container's AWS_CONTAINER_CREDENTIALS_FULL_URI")
  }

  @Test func keysOfTheEnvironmentExpireWhenTheirVariableSaysSo() throws {
    func keys(_ expiration: String) throws -> any CredentialProvider {
      try provider(Self.keys.merging(["AWS_CREDENTIAL_EXPIRATION": expiration]) { $1 })
    }
    #expect(try keys("").fetch().expiresMs == nil)
    // The store knows whether that time has passed: this machine's clock may be wrong.
    #expect(try keys("2020-01-01T00:00:00Z").fetch().expiresMs == 1_577_836_800_000)
    #expect(throws: Failure.self) { try keys("soon") }
  }

  @Test func linksEndWithKeysOfTheEnvironmentByTheStoresClock() throws {
    let variables = Self.keys.merging(["AWS_CREDENTIAL_EXPIRATION": "2020-01-01T00:00:00Z"]) { $1 }
    let client = try S3Client(S3Location("s3://replay"), S3Settings { variables[$0] })
    func expiresS(_ now: Int64) throws -> Int { try client.presigner(expires: 3_600, now: now).expiresS }
    #expect(try expiresS(1_577_836_800_000 - 600_000) == 600)
    #expect(try expiresS(1_577_836_800_000 - 7_200_000) == 3_600)
    #expect(throws: ObjectStoreError.self) { try expiresS(1_577_836_800_000) }
  }

  @Test func namedProfileWithoutCredentialsLeavesThemToOtherSteps() throws {
    let config = "[profile p]\nregion = eu-west-3\n" + Self.profile
    let named = ["AWS_PROFILE": "p"]
    #expect(try provider(named, config: config).name == "the instance's metadata (IMDS)")
    #expect(
      try provider(named.merging(Self.web) { $1 }, config: config).name
        == "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE")
  }

  /// The default profile counts only where nothing else is configured, and so do its faults.
  @Test func unusableDefaultProfileDoesNotHinderAWebIdentity() throws {
    #expect(
      try provider(Self.web, config: "[default]\nsso_session = x\n").name
        == "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE")
  }

  @Test func keysMayBeIndented() throws {
    let config = "[default]\n  aws_access_key_id = A\n  aws_secret_access_key = B\n  s3 =\n    use_x = true\n"
    #expect(try provider([:], config: config).fetch().credentials == AWSCredentials(key: "A", secret: "B", token: nil))
  }

  @Test func sessionTokenOfAnotherKeyPairIsNotUsed() throws {
    let file = try scratch.file(
      "credentials", Array("[default]\naws_secret_access_key = D\naws_access_key_id = C\n".utf8))
    let config = Self.profile + "aws_session_token = foreign\n"
    let step = try provider(["AWS_SHARED_CREDENTIALS_FILE": file], config: config)
    #expect(try step.fetch().credentials == AWSCredentials(key: "C", secret: "D", token: nil))
  }

  @Test func credentialsFileGoesBeforeTheConfigFile() throws {
    let file = try scratch.file(
      "credentials", Array("[default]\naws_access_key_id = C\naws_secret_access_key = D\n".utf8))
    let step = try provider(["AWS_SHARED_CREDENTIALS_FILE": file], config: Self.profile)
    #expect(try step.fetch().credentials.key == "C")
    // Another tool may have written new keys since.
    try scratch.file("credentials", Array("[default]\naws_access_key_id = E\naws_secret_access_key = F\n".utf8))
    #expect(try step.fetch().credentials.key == "E")
  }

  @Test func profileHasRegionEndpointsAndAddressingStyle() throws {
    let config = """
      [default]
      region = eu-west-3
      services = local
      s3 =
        addressing_style = virtual
      [services local]
      s3 =
        endpoint_url = http://store.example:9000
      sqs =
        endpoint_url = http://queue.example
      """
    let path = try scratch.file("config", Array(config.utf8))
    func address(_ others: [String: String]) throws -> String {
      let variables = ["AWS_CONFIG_FILE": path].merging(others) { $1 }
      return try S3Address(S3Location("s3://replay"), S3Settings { variables[$0] }).url(of: "a")
    }
    #expect(try address([:]) == "http://replay.store.example:9000/a")
    #expect(try address(["AWS_S3_ADDRESSING_STYLE": "path"]) == "http://store.example:9000/replay/a")
    #expect(try address(["AWS_ENDPOINT_URL": "http://other"]) == "http://replay.other/a")
    let ignoring = ["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true", "AWS_ENDPOINT_URL": "http://other"]
    #expect(try address(ignoring) == "https://replay.s3.eu-west-3.amazonaws.com/a")
    #expect(
      try address(ignoring.merging(["AWS_USE_FIPS_ENDPOINT": "true"]) { $1 })
        == "https://replay.s3-fips.eu-west-3.amazonaws.com/a")
    #expect(
      try address(ignoring.merging(["AWS_USE_DUALSTACK_ENDPOINT": "true"]) { $1 })
        == "https://replay.s3.dualstack.eu-west-3.amazonaws.com/a")
    let settings = try AWSSettings { ["AWS_CONFIG_FILE": path][$0] }
    #expect(settings.endpoint(of: "sqs")?.host == "queue.example" && settings.endpoint(of: "sts") == nil)
  }

  @Test(arguments: [
    ("us-east-1", false, "sqs.us-east-1.amazonaws.com"), ("us-east-1", true, "sqs-fips.us-east-1.amazonaws.com"),
    ("us-gov-west-1", true, "sqs.us-gov-west-1.amazonaws.com"),
    ("cn-north-1", false, "sqs.cn-north-1.amazonaws.com.cn"),
    ("eusc-de-east-1", false, "sqs.eusc-de-east-1.amazonaws.eu"),
    ("us-isob-east-1", false, "sqs.us-isob-east-1.sc2s.sgov.gov"),
  ])
  func hostOfAServiceFollowsTheRegion(region: String, isFIPS: Bool, host: String) throws {
    let variables = ["AWS_REGION": region, "AWS_USE_FIPS_ENDPOINT": "\(isFIPS)"]
    #expect(try AWSSettings { variables[$0] }.endpoints.amazonHost(of: "sqs") == host)
  }
}
