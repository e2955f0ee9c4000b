import FileSystem
import Glibc

/// `HOST:PORT`, `[IPv6]:PORT`, or a port of localhost.
package struct ListenAddress {
  package let host: String
  package let port: UInt16

  package init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }
}

extension ListenAddress {
  @Sendable package init(_ text: String) throws {
    let wrong = Failure(
      .usage, "\(text): where to listen is a port, HOST:PORT or [IPv6]:PORT, with a port up to 65535")
    var host = "127.0.0.1"
    var port = text[...]
    if let colon = text.lastIndex(of: ":") {
      host = String(text[..<colon])
      port = text[text.index(after: colon)...]
      if host.hasPrefix("[") && host.hasSuffix("]") {
        host = String(host.dropFirst().dropLast())
      } else if host.contains(":") {
        throw wrong
      }
    }
    guard !host.isEmpty, port.isDecimal, let number = UInt16(port) else {
      throw wrong
    }
    self.init(host: host, port: number)
  }

  package var description: String { "\(name):\(port)" }

  /// The host as in a URL.
  private var name: String { host.contains(":") ? "[\(host)]" : host }

  /// The host names that requests may have, in lower case: this machine's names and the given ones.
  func acceptedNames(and others: [String]) -> Set<String> {
    var hostname = [CChar](repeating: 0, count: 256)
    gethostname(&hostname, hostname.count - 1)
    let localName = String(decoding: hostname.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    return Set((["localhost", localName, name] + others).map { $0.lowercased() })
  }

  /// Whether the host of a Host header is an IP address.
  static func isNumeric(_ host: String) -> Bool {
    var (four, six) = (in_addr(), in6_addr())
    if host.hasPrefix("["), host.hasSuffix("]") {
      return inet_pton(AF_INET6, String(host.dropFirst().dropLast()), &six) == 1
    }
    return inet_pton(AF_INET, host, &four) == 1
  }

  /// Whether only this machine can reach it.
  package var isLoopback: Bool {
    var address = in_addr()
    if inet_pton(AF_INET, host, &address) == 1 { return UInt32(bigEndian: address.s_addr) >> 24 == 127 }
    return host == "localhost" || host == "::1"
  }
}

/// A socket that listens, closed when the last reference goes.
package final class ListeningSocket: Sendable {
  let descriptor: Int32
  /// The address with its actual port: for port 0 the kernel chooses one.
  let address: ListenAddress

  package init(at address: ListenAddress) throws {
    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(address.host, String(address.port), &hints, &found)
    guard code == 0, let found else {
      throw Failure(
        .environment, "listen at", address.description, String(cString: gai_strerror(code)),
        advice: "name another address or port")
    }
    defer { freeaddrinfo(found) }
    let first = found.pointee
    let file = socket(first.ai_family, first.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), first.ai_protocol)
    guard file >= 0 else { throw Failure(.environment, "socket", "", String(cString: strerror(errno))) }
    var on: Int32 = 1
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    // Accepted sockets have these, too: answers that a client does not read fill no more of the kernel's memory, and leave it soon after
    // the close.
    for (option, value) in [(TCP_NOTSENT_LOWAT, 128 << 10), (TCP_USER_TIMEOUT, 30_000)] as [(Int32, Int32)] {
      var value = value
      setsockopt(file, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
    guard bind(file, first.ai_addr, first.ai_addrlen) == 0, listen(file, SOMAXCONN) == 0 else {
      let failure = Failure(
        .environment, "listen at", address.description, String(cString: strerror(errno)),
        advice: "name another address or port")
      close(file)
      throw failure
    }
    descriptor = file
    self.address = ListenAddress(host: address.host, port: Self.port(of: file) ?? address.port)
  }

  deinit { close(descriptor) }

  private static func port(of file: Int32) -> UInt16? {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard getsockname(file, address, &size) == 0 else { return nil }
        // sockaddr_in6 has its port at the same offset.
        return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
      }
    }
  }
}
