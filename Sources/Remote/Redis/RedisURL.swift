// The address of a queue. It may hold a password, so no message repeats it.

import FileSystem

/// `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?stream=NAME]`, or `unix:///SOCKET[?stream=NAME]`.
package struct RedisURL: Sendable, CustomStringConvertible {
  enum Server: Sendable, Equatable {
    case host(String, port: UInt16)
    case socket(String)
  }

  private static let defaultStream = "encoder-worker"
  static let form =
    "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?stream=NAME] or unix:///SOCKET[?stream=NAME]"

  let server: Server
  let user: String?
  let password: String?
  let database: Int
  /// The key of the stream.
  let stream: String
  /// The reason why the address is invalid; nil if it is valid.
  package let fault: Failure?

  package init(_ text: String) throws(Failure) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let scheme = parts[0].prefix { $0 != ":" }
    guard parts[0].dropFirst(scheme.count).hasPrefix("://") else {
      throw Failure.queueAddress("it has to be \(Self.form)")
    }
    let rest = parts[0].dropFirst(scheme.count + 3)
    let authority = rest.prefix { $0 != "/" }
    let path = rest.dropFirst(authority.count)
    // A password may hold an unencoded @; a host does not.
    let at = authority.lastIndex(of: "@")
    let host = at.map { authority[authority.index(after: $0)...] } ?? authority
    (user, password) = try Self.credentials(at.map { authority[..<$0] })
    let options = try Self.options(parts.count > 1 ? parts[1] : "")
    stream = try Self.stream(options["stream"])
    fault = nil
    switch scheme.lowercased() {
    case "redis":
      server = try Self.host(host)
      guard options["db"] == nil else { throw Failure.queueAddress("the database's number follows the host: /3") }
      database = try Self.database(path.dropFirst())
    case "unix":
      let socket = try Self.decoded(path)
      // sockaddr_un(7)
      guard host.isEmpty, socket.count > 1, socket.utf8.count < 108 else {
        throw Failure.queueAddress("a socket is an absolute path of less than 108 bytes: unix:///run/redis/redis.sock")
      }
      server = .socket(socket)
      database = try Self.database(options["db"].map { $0[...] } ?? "")
    case "rediss":
      throw Failure.queueAddress(
        "hiredis 0.14 has no TLS: run a TLS proxy on this machine (stunnel, or a sidecar) and name that with redis://")
    default: throw Failure.queueAddress("it has to be \(Self.form)")
    }
  }

  /// Accepts any argument; ``fault`` says why one is invalid. The parser would print a refused value, with its
  /// password.
  package init(argument: String) {
    do throws(Failure) {
      self = try RedisURL(argument)
    } catch {
      server = .socket("")
      (user, password, database, stream) = (nil, nil, 0, Self.defaultStream)
      fault = error
    }
  }

  /// Without user and password.
  package var description: String {
    let base =
      switch server {
      case .host(let host, let port):
        "redis://\(host.contains(":") ? "[\(host)]" : host):\(port)" + (database == 0 ? "" : "/\(database)")
      case .socket(let path): "unix://\(path)"
      }
    return stream == Self.defaultStream ? base : base + "?stream=\(stream)"
  }

  private static func credentials(_ text: Substring?) throws(Failure) -> (user: String?, password: String?) {
    guard let text else { return (nil, nil) }
    guard let colon = text.firstIndex(of: ":") else {
      throw Failure.queueAddress("write USER:PASSWORD or :PASSWORD before the @")
    }
    let user = try decoded(text[..<colon])
    return (user.isEmpty ? nil : user, try decoded(text[text.index(after: colon)...]))
  }

  private static func host(_ text: Substring) throws(Failure) -> Server {
    var host = text
    var port: UInt16 = 6_379
    if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
      let digits = text[text.index(after: colon)...]
      guard digits.isDecimal, let number = UInt16(digits), number > 0 else {
        throw Failure.queueAddress("its port is not a number from 1 to 65535; write an IPv6 address in brackets")
      }
      (host, port) = (text[..<colon], number)
    }
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      throw Failure.queueAddress("write an IPv6 address in brackets: redis://[::1]:6379")
    }
    let name = try decoded(host)
    guard !name.isEmpty else { throw Failure.queueAddress("it names no host: \(form)") }
    return .host(name, port: port)
  }

  private static func database(_ text: Substring) throws(Failure) -> Int {
    if text.isEmpty { return 0 }
    guard text.utf8.count < 6, text.isDecimal, let number = Int(text) else {
      throw Failure.queueAddress("its database is not a number; the default is /0")
    }
    return number
  }

  private static func options(_ text: Substring) throws(Failure) -> [String: String] {
    var options: [String: String] = [:]
    for part in text.split(separator: "&") {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2, ["stream", "db"].contains(pair[0]), options[String(pair[0])] == nil else {
        throw Failure.queueAddress("stream=NAME follows the ?; write a ? of a password as %3F")
      }
      options[String(pair[0])] = try decoded(pair[1])
    }
    return options
  }

  private static func stream(_ name: String?) throws(Failure) -> String {
    guard let name else { return defaultStream }
    let isUsable = !name.isEmpty && name.utf8.count <= 200 && name.oneLine == name
    guard isUsable, !name.contains(where: { "{}".contains($0) || $0.isWhitespace }) else {
      throw Failure.queueAddress("a stream's name is of up to 200 bytes, without spaces and braces")
    }
    return name
  }

  private static func decoded(_ text: Substring) throws(Failure) -> String {
    guard let bytes = PercentEncoding.decoded(text) else {
      throw Failure.queueAddress("a % is followed by two hexadecimal digits; % itself is %25")
    }
    guard let decoded = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
      throw Failure.queueAddress("its decoded bytes are not UTF-8")
    }
    return decoded
  }
}
