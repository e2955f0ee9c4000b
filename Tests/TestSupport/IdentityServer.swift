import Foundation

/// A server that gives credentials as STS, a container's agent and IMDSv2 do. It is killed when the last reference is
/// released.
public final class IdentityServer {
  /// The behaviour of further requests, as `Tests/store/identity.py` reads it.
  public struct Rules: Encodable {
    /// Seconds that new credentials last.
    public var lifeS: Int?
    public var fault: String?
    /// Seconds that the server's clock is ahead.
    public var skewS: Int?
    /// The token of the pod.
    public var token: String?

    public init(lifeS: Int? = nil, fault: String? = nil, skewS: Int? = nil, token: String? = IdentityServer.token) {
      (self.lifeS, self.fault, self.skewS, self.token) = (lifeS, fault, skewS, token)
    }
  }

  /// Credentials that the server has issued.
  public struct Issued: Decodable, Sendable {
    public let key: String
    public let secret: String
    public let token: String
  }

  public static let token = "hush.web-identity.token"
  public static let role = "arn:aws:iam::123456789012:role/replay"

  public let port: UInt16
  private let scratch: ScratchDirectory
  private let process = Process()
  /// The server exits when this pipe closes.
  private let input = Pipe()

  public init() throws {
    scratch = try ScratchDirectory()
    let script = Fixture.root.appendingPathComponent("Tests/store/identity.py").path
    process.executableURL = URL(fileURLWithPath: Tool.python)
    process.arguments = ["-B", script] + ["issued", "log", "control"].map(scratch.path)
    process.standardInput = input
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let said = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    guard let port = UInt16(said.prefix { $0.isNumber }) else { throw Tool.Failure("no port in \(said)") }
    self.port = port
    _ = try scratch.file("token", Array((Self.token + "\n").utf8))
    set(Rules())
  }

  deinit { stop() }

  public func stop() {
    guard process.isRunning else { return }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  public var endpoint: String { "http://127.0.0.1:\(port)" }

  /// The file with the issued credentials, for a store that checks them.
  public var issuedPath: String { scratch.path("issued") }

  /// The file with the token of the pod.
  public var tokenPath: String { scratch.path("token") }

  /// Sets the behaviour of all further requests.
  public func set(_ rules: Rules) {
    try? JSONEncoder().encode(rules).write(to: URL(fileURLWithPath: scratch.path("control")), options: .atomic)
  }

  public func issued() throws -> [Issued] {
    guard let text = try? Data(contentsOf: URL(fileURLWithPath: issuedPath)) else { return [] }
    return try text.split(separator: UInt8(ascii: "\n")).map { try JSONDecoder().decode(Issued.self, from: Data($0)) }
  }

  /// The requests so far: method, path, and the action of STS.
  public func log() -> [String] {
    let text = (try? String(contentsOfFile: scratch.path("log"), encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  /// A way to get the server's credentials.
  public enum Step: String, CaseIterable, Sendable {
    case webIdentity, profile, container, instance
  }

  /// The environment of a process that gets its credentials by one step.
  public func environment(_ step: Step) throws -> [String: String] {
    // Nothing of the machine that runs the tests counts.
    var variables = [
      "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "HOME": scratch.path("none"),
      "AWS_REGION": "us-east-1", "no_proxy": "127.0.0.1", "AWS_ENDPOINT_URL_STS": endpoint,
    ]
    switch step {
    case .webIdentity:
      variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = tokenPath
      variables["AWS_ROLE_ARN"] = Self.role
    case .profile:
      let lines = [
        "[profile replay]", "role_arn = \(Self.role)", "source_profile = base", "[profile base]",
        "aws_access_key_id = AKIDSOURCE", "aws_secret_access_key = hushsource",
      ]
      variables["AWS_CONFIG_FILE"] = try scratch.file("config", Array(lines.joined(separator: "\n").utf8))
      variables["AWS_PROFILE"] = "replay"
    case .container:
      variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "\(endpoint)/container"
      variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = tokenPath
    case .instance: variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = endpoint
    }
    return variables
  }
}
