import Foundation

/// An S3 store with an empty bucket, and SQS without a queue, which stops when the last reference is released. It runs moto, which checks
/// signatures and serialises conditional writes. A partial upload of a killed client leaves no object.
public final class StoreServer: Sendable {
  public static let bucket = "replay"
  /// The reason that skipped store tests print.
  public static let reason = "moto is not there; scripts/setup test installs it"
  public static let isInstalled =
    (try? Tool.run(
      Tool.python, ["-c", "import sys; sys.path.insert(0, sys.argv[1]); import flask_cors, moto", modules]
    )
    .status) == 0
  /// The directory of moto, where Debian has no package of it.
  public static let modules = Fixture.root.appendingPathComponent(".build/moto").path

  public let port: UInt16
  private let process = Process()
  /// The server exits when this pipe closes.
  private let input = Pipe()

  /// - Parameters:
  ///   - script: The server script. `hostile.py` is a store whose faults depend on the object's name.
  ///   - variables: Variables for the script, which reads some from its environment.
  public init(_ script: String = "serve.py", variables: [String: String] = [:]) throws {
    let script = Fixture.root.appendingPathComponent("Tests/store/\(script)").path
    // Debian's Python, for which moto is installed.
    process.executableURL = URL(fileURLWithPath: Tool.python)
    process.arguments = ["-B", script, Self.bucket]
    process.environment = ProcessInfo.processInfo.environment.merging(variables) { $1 }
    process.standardInput = input
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    var said = Data()
    while !said.contains(UInt8(ascii: "\n")) {
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { throw Tool.Failure("no store: \(String(decoding: said, as: UTF8.self))") }
      said += more
    }
    guard let port = UInt16(String(decoding: said, as: UTF8.self).prefix { $0.isNumber }) else {
      throw Tool.Failure("no port in \(String(decoding: said, as: UTF8.self))")
    }
    self.port = port
  }

  /// A shared store for tests that do not change objects of other tests. It exits with the test process.
  public static let shared = Result { try StoreServer() }

  deinit { stop() }

  /// Kills the server, which loses its contents.
  public func stop() {
    guard process.isRunning else { return }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Suspends the server: it sends no response and keeps its connections open until ``thaw()``.
  public func freeze() { kill(process.processIdentifier, SIGSTOP) }
  public func thaw() { kill(process.processIdentifier, SIGCONT) }

  public var endpoint: String { "http://127.0.0.1:\(port)" }

  /// The environment for clients of the store.
  public var environment: [String: String] {
    [
      "AWS_ENDPOINT_URL_S3": endpoint, "AWS_ENDPOINT_URL_SQS": endpoint, "AWS_REGION": "us-east-1",
      "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
      "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "AWS_SESSION_TOKEN": "",
      "no_proxy": "127.0.0.1",
    ]
  }

  /// Returns an object's bytes without the client under test, or nil if the object does not exist.
  public func object(_ key: String) throws -> Data? {
    let result = try Tool.run("curl", ["--noproxy", "*", "-sS", "-w", "\n%{http_code}", address(of: key)])
    guard result.status == 0, let end = result.output.lastIndex(of: UInt8(ascii: "\n")) else {
      throw Tool.Failure(result.errors)
    }
    switch String(decoding: result.output[(end + 1)...], as: UTF8.self) {
    case "200": return Data(result.output[..<end])
    case "404": return nil
    case let status: throw Tool.Failure("\(key): \(status)")
    }
  }

  /// Uploads an object without the client under test.
  public func put(_ key: String, _ bytes: Data) throws {
    // Without the last header, curl waits one second for `100 Continue`.
    let headers = ["Transfer-Encoding:", "Content-Length: \(bytes.count)", "Expect:"]
    let result = try Tool.run(
      "curl", ["--noproxy", "*", "-sSf", "-T", "-"] + headers.flatMap { ["-H", $0] } + [address(of: key)], input: bytes)
    guard result.status == 0 else { throw Tool.Failure(result.errors) }
  }

  /// Returns the keys of all objects in order, without the client under test.
  public func keys(_ prefix: String = "") throws -> [String] {
    let script = """
      import sys, urllib.parse, urllib.request, xml.etree.ElementTree as tree
      keys, after = [], ""
      while True:
          query = urllib.parse.urlencode({"list-type": 2, "prefix": sys.argv[2], "start-after": after})
          with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1] + "?" + query) as answer:
              page = [key.text for key in tree.parse(answer).iterfind(".//{*}Key")]
          if not page:
              break
          keys, after = keys + page, page[-1]
      print("\\0".join(keys), end="")
      """
    let output = try Tool.output(
      Tool.python, ["-c", script, "\(endpoint)/open/\(Self.bucket)", prefix])
    return output.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
  }

  private func address(of key: String) -> String {
    let allowed = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/")
    return "\(endpoint)/open/\(Self.bucket)/" + (key.addingPercentEncoding(withAllowedCharacters: allowed) ?? key)
  }
}
