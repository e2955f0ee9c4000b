import FileSystem
import Foundation
import TestSupport
import Testing

@testable import Remote

/// Tests each step of the chain against a server that gives credentials, fails, hangs and lies.
@Suite struct IdentityTests {
  private let server: IdentityServer

  init() throws { server = try IdentityServer() }

  private func provider(_ step: IdentityServer.Step) throws -> any CredentialProvider {
    let variables = try server.environment(step)
    let environment = try AWSEnvironment { variables[$0] }
    return try CredentialSources.provider(environment, AWSEndpoints(environment), SigningClock())
  }

  @Test(arguments: IdentityServer.Step.allCases)
  func stepGivesCredentialsWithTheTimeThatTheyHaveLeft(step: IdentityServer.Step) throws {
    server.set(.init(lifeS: 3_600))
    let fetched = try provider(step).fetch()
    let issued = try #require(try server.issued().last)
    #expect(fetched.credentials == AWSCredentials(key: issued.key, secret: issued.secret, token: issued.token))
    #expect((3_000_000...3_601_000).contains(try #require(fetched.lifetimeMs)))
    let requests: [IdentityServer.Step: [String]] = [
      .webIdentity: ["POST / AssumeRoleWithWebIdentity"], .profile: ["POST / AssumeRole"],
      .container: ["GET /container"],
      .instance: [
        "PUT /latest/api/token", "GET /latest/meta-data/iam/security-credentials/",
        "GET /latest/meta-data/iam/security-credentials/replay-role",
      ],
    ]
    #expect(server.log() == requests[step])
  }

  /// A clock that is wrong neither shortens nor prolongs the life of credentials.
  @Test func lifeIsCountedByTheServersClock() throws {
    server.set(.init(lifeS: 900, skewS: -36_000))
    #expect((600_000...901_000).contains(try #require(try provider(.instance).fetch().lifetimeMs)))
  }

  /// Every fault of a configured step is an error that names the step. Nothing of it shows a secret.
  @Test(arguments: IdentityServer.Step.allCases)
  func faultIsAnErrorThatNamesTheStepAndShowsNoSecret(step: IdentityServer.Step) throws {
    for fault in ["garbage", "huge", "redirect", "echo", "status-403", "status-500", "gone", "expired", "evil"] {
      server.set(.init(fault: fault))
      let provider = try provider(step)
      let error = #expect(throws: Failure.self, "\(fault)") { try provider.fetch() }
      let said = try #require(error).description
      #expect(said.contains(provider.name) && error?.kind == .environment, "\(said)")
      #expect(!said.contains("hush") && !said.contains("session-token-of-imds"), "\(said)")
      #expect(said.utf8.count < 400)
    }
    #expect(!server.log().contains { $0.contains("elsewhere") })
  }

  /// It may come up later, so that a worker has to try again.
  @Test func absentMetadataServiceIsAFailureOfTheEnvironment() throws {
    var variables = try server.environment(.instance)
    // Unlike one that a variable names.
    variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = nil
    server.stop()
    let environment = try AWSEnvironment { variables[$0] }
    let step = try #require(try InstanceMetadata(environment))
    #expect(!step.isConfigured && step.endpoint.host == "169.254.169.254")
    let named = try provider(.instance)
    let error = #expect(throws: Failure.self) { try named.fetch() }
    #expect(error?.kind == .environment)
    var usual = try #require(named as? InstanceMetadata)
    usual.isConfigured = false
    let other = #expect(throws: Failure.self) { try usual.fetch() }
    #expect(other?.kind == .environment && other?.description.contains("--unsigned") == true)
  }

  @Test(arguments: IdentityServer.Step.allCases)
  func hangingStepIsGivenUp(step: IdentityServer.Step) throws {
    server.set(.init(fault: "hang"))
    let provider = try provider(step)
    let error = #expect(throws: Failure.self) { try provider.fetch() }
    #expect(error?.description.contains(provider.name) == true)
    // STS has a second try, the others have none.
    #expect(server.log().count <= 2)
  }

  @Test(arguments: IdentityServer.Step.allCases)
  func requestToAHangingStepIsCancelled(step: IdentityServer.Step) throws {
    server.set(.init(fault: "hang"))
    let provider = try provider(step)
    #expect(throws: Cancelled.self) { try provider.fetch(.never.or(afterMs: 200)) }
    #expect(server.log().count <= 1)
  }

  @Test func lifeWithoutAnEndIsRefused() throws {
    server.set(.init(fault: "forever"))
    #expect(throws: Failure.self) { try provider(.container).fetch() }
  }

  @Test func tokenFilesAreReadAgainEachTime() throws {
    for step in [IdentityServer.Step.webIdentity, .container] {
      server.set(.init(token: IdentityServer.token))
      try Data(IdentityServer.token.utf8).write(to: URL(fileURLWithPath: server.tokenPath))
      let provider = try provider(step)
      _ = try provider.fetch()
      server.set(.init(token: "hush.another"))
      #expect(throws: Failure.self) { try provider.fetch() }
      // Kubernetes replaces a link.
      try FileManager.default.removeItem(atPath: server.tokenPath)
      try Data("hush.another\n".utf8).write(to: URL(fileURLWithPath: server.tokenPath + ".2"))
      try FileManager.default.createSymbolicLink(
        atPath: server.tokenPath, withDestinationPath: server.tokenPath + ".2")
      _ = try provider.fetch()
      try FileManager.default.removeItem(atPath: server.tokenPath)
      let error = #expect(throws: Failure.self) { try provider.fetch() }
      #expect(error?.description.contains("_TOKEN_FILE") == true)
    }
  }

  @Test func noTextOfAValueShowsASecret() throws {
    for step in IdentityServer.Step.allCases {
      var variables = try server.environment(step)
      if step == .container { variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "hush" }
      variables["AWS_SESSION_TOKEN"] = "hush"
      let environment = try AWSEnvironment { variables[$0] }
      let provider = try CredentialSources.provider(environment, AWSEndpoints(environment), SigningClock())
      let fetched = try provider.fetch()
      let settings = try S3Settings { variables[$0] }
      let current = try settings.aws.credentials.current()
      let signer = AWSSigner(service: "s3", region: "eu-west-3", credentials: fetched.credentials)
      for value: Any in [environment, provider, fetched, fetched.credentials, settings, current as Any, signer] {
        var dumped = ""
        dump(value, to: &dumped)
        for text in ["\(value)", String(reflecting: value), dumped] { #expect(!text.contains("hush"), "\(text)") }
      }
    }
  }
}
