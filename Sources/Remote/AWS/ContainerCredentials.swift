import FileSystem

/// The credentials endpoint of a container: ECS, and EKS Pod Identity.
struct ContainerCredentials: CredentialProvider, SecretValue {
  let name: String
  private let url: String
  private let tokenFile: String?
  private let token: String?

  /// Hosts that may be asked over http: this machine, and the link-local agents of ECS and EKS.
  private static let plainHosts: Set = ["localhost", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "[::1]"]

  /// - Returns: nil if nothing of it is configured.
  /// - Throws: ``Failure``, which names the variable.
  init?(_ environment: AWSEnvironment) throws {
    let relative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
    let full = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
    if let path = environment[relative] {
      guard path.hasPrefix("/"), Self.isPath(path) else {
        throw Failure(.usage, "\(relative) is no path; give it as the container agent does")
      }
      (name, url) = ("the container's \(relative)", "http://169.254.170.2" + path)
    } else if let text = environment[full] {
      guard let url = Self.checked(text) else {
        throw Failure(
          .usage,
          "\(full) is neither https:// nor http:// of this machine, 169.254.170.2, 169.254.170.23 or [fd00:ec2::23]")
      }
      (name, self.url) = ("the container's \(full)", url)
    } else {
      return nil
    }
    token = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
    tokenFile = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
    guard token?.utf8.allSatisfy({ (32...126).contains($0) }) != false else {
      throw Failure(.usage, "AWS_CONTAINER_AUTHORIZATION_TOKEN: a line end or no ASCII; give it as it is")
    }
  }

  private static func isPath(_ text: some StringProtocol) -> Bool { text.isPlain(and: ".-_~/?=&%:@+,") }

  /// Returns the address if it may be asked.
  private static func checked(_ text: String) -> String? {
    let isSecure = text.lowercased().hasPrefix("https://")
    guard isSecure || text.lowercased().hasPrefix("http://") else { return nil }
    let rest = text.dropFirst(isSecure ? 8 : 7)
    let authority = rest.prefix { $0 != "/" && $0 != "?" }.lowercased()
    guard !authority.isEmpty, authority.isPlain(and: ".-:[]"), isPath(rest.dropFirst(authority.count)) else {
      return nil
    }
    let end = authority.hasPrefix("[") ? authority.firstIndex(of: "]").map { authority.index(after: $0) } : nil
    let host = end.map { authority[..<$0] } ?? authority.prefix { $0 != ":" }
    let port = authority[host.endIndex...]
    guard port.isEmpty || port.hasPrefix(":") && UInt16(port.dropFirst()) != nil else { return nil }
    return isSecure || plainHosts.contains(String(host)) || isLoopback(host) ? text : nil
  }

  private static func isLoopback(_ host: Substring) -> Bool {
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil && $0.isDecimal }
  }

  func fetch(_ cancellation: Cancellation) throws -> FetchedCredentials {
    let answer: CredentialAnswer
    do {
      answer = try CredentialRequest(
        method: .get, url: url, headers: try authorization(), timeoutS: 2, usesProxy: false
      ).send(cancellation)
    } catch let failure as TransferFailure {
      throw self.failure(failure.cause.oneLine, "check that the container agent runs")
    }
    guard answer.isGood else {
      throw failure("the answer has status \(answer.status)", "check the role of this task or pod")
    }
    do {
      return try answer.jsonCredentials()
    } catch {
      throw failure(error.cause, "check the role of this task or pod")
    }
  }

  /// The file's token goes before the variable's. The agent replaces the file before the token expires.
  private func authorization() throws -> [(name: String, value: String)] {
    guard let tokenFile else { return token.map { [("Authorization", $0)] } ?? [] }
    let found: String?
    do {
      found = try CredentialFile.token(at: tokenFile)
    } catch {
      throw failure("\(error)", "mount the token, or correct AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    }
    guard let found else { throw failure("\(tokenFile.oneLine) holds no token", "write one line with the token") }
    return [("Authorization", found)]
  }
}
