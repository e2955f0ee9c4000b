import ArgumentParser
import CLinux
import Glibc

/// `HOST:PORT`, `[IPv6]:PORT`, or a port of this machine alone.
struct ListenAddress: ExpressibleByArgument, Equatable {
  let host: String
  let port: UInt16

  init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  init?(argument: String) {
    var host = "127.0.0.1"
    var port = argument[...]
    if let colon = argument.lastIndex(of: ":") {
      host = String(argument[..<colon])
      port = argument[argument.index(after: colon)...]
      if host.hasPrefix("[") && host.hasSuffix("]") {
        host = String(host.dropFirst().dropLast())
      } else if host.contains(":") {
        return nil
      }
    }
    guard !host.isEmpty, port.utf8.allSatisfy({ (48...57).contains($0) }), let number = UInt16(port) else { return nil }
    self.host = host
    self.port = number
  }

  var defaultValueDescription: String { description }

  var description: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }

  /// A socket that listens there, and the port it has: of 0 some free one.
  func listen() throws(SystemError) -> (socket: Int32, port: UInt16) {
    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &found)
    guard code == 0, let found else {
      throw SystemError(operation: "listen at \(description): \(String(cString: gai_strerror(code)))", code: 0)
    }
    defer { freeaddrinfo(found) }
    let address = found.pointee
    let file = socket(address.ai_family, address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), address.ai_protocol)
    guard file >= 0 else { throw SystemError(operation: "socket", code: errno) }
    var on: Int32 = 1
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    guard bind(file, address.ai_addr, address.ai_addrlen) == 0, Glibc.listen(file, 256) == 0 else {
      let failure = SystemError(operation: "listen at \(description)", code: errno)
      close(file)
      throw failure
    }
    return (file, Self.port(of: file) ?? port)
  }

  /// The names under which it may be asked, as browsers write them; any when empty.
  func acceptedHosts(and others: [String]) -> Set<String> {
    guard isLoopback || !others.isEmpty else { return [] }
    let own = host.contains(":") ? "[\(host)]" : host
    return Set((["localhost", "127.0.0.1", "[::1]", own] + others).map { $0.lowercased() })
  }

  /// Whether only this machine can reach it.
  var isLoopback: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

  private static func port(of file: Int32) -> UInt16? {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard getsockname(file, address, &size) == 0 else { return nil }
        // The port is at the same place in both kinds of address.
        return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
      }
    }
  }
}
