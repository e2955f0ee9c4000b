import FileSystem

/// A role by the token of a web identity (`AssumeRoleWithWebIdentity`): EKS, and any other OIDC provider.
struct WebIdentityRole: CredentialProvider {
  let name: String
  let tokenFile: String
  let role: String
  let session: String
  let service: SecurityTokenService

  func fetch(_ cancellation: Cancellation) throws -> FetchedCredentials {
    let token: String?
    do {
      // The kubelet writes a new token before the old one expires.
      token = try CredentialFile.token(at: tokenFile)
    } catch {
      throw failure("\(error)", "mount the token, or correct AWS_WEB_IDENTITY_TOKEN_FILE")
    }
    guard let token else { throw failure("\(tokenFile.oneLine) holds no token", "write one line with the token") }
    do {
      return try service.role(
        "AssumeRoleWithWebIdentity", ["RoleArn": role, "RoleSessionName": session, "WebIdentityToken": token],
        cancellation: cancellation)
    } catch let step as StepFailure {
      throw failure(step.cause, "check that the trust policy of \(role) allows this identity")
    }
  }
}

/// A role of a profile (`AssumeRole`), by the credentials of another step.
struct AssumedRole: CredentialProvider {
  let name: String
  let role: String
  let session: String
  let externalID: String?
  let durationS: String?
  let source: any CredentialProvider
  let service: SecurityTokenService

  func fetch(_ cancellation: Cancellation) throws -> FetchedCredentials {
    let credentials = try source.fetch(cancellation).credentials
    var values = ["RoleArn": role, "RoleSessionName": session]
    values["ExternalId"] = externalID
    values["DurationSeconds"] = durationS
    do {
      return try service.role("AssumeRole", values, signedWith: credentials, cancellation: cancellation)
    } catch let step as StepFailure {
      throw failure(step.cause, "check that \(role) trusts the identity of \(source.name)")
    }
  }
}
