// The one place that sees libmicrohttpd: takes connections, hands requests to a function, sends what it returns.

import CLinux
import CMicroHTTP
import Glibc
import SegmentEncoder
import Synchronization

final class HTTPServer: Sendable {
  /// Connections at once; more are turned away.
  private static let connections: UInt32 = 512
  /// One that says nothing for so long is closed, in seconds.
  private static let patience: UInt32 = 30

  /// Where it listens.
  var address: ListenAddress { socket.address }
  /// What is sent with everything: no request of a page leaves this server, and nobody else's page gets anything from it.
  private static let headers = [
    ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    (
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
        + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
  ]

  private let service: Service
  private nonisolated(unsafe) let daemon: OpaquePointer
  private let socket: ListeningSocket

  /// Starts to answer.
  ///
  /// - Parameters:
  ///   - hosts: further names under which it may be asked: a page of somebody else's whose name leads here does not get
  ///     through.
  ///   - answer: called on the threads of connections.
  init(on socket: ListeningSocket, hosts: [String], answer: @escaping @Sendable (HTTPRequest) -> HTTPReply) throws {
    var library = cmh_library()
    if let reason = cmh_load(&library) {
      throw MissingHTTPLibrary(reason: String(cString: reason))
    }
    self.socket = socket
    service = Service(library: library, hosts: socket.address.acceptedHosts(and: hosts), answer: answer)
    // The signals are the main thread's.
    var before = sigset_t()
    clinux_block_signals(&before)
    defer { clinux_restore_signals(&before) }
    let handler: MHD_AccessHandlerCallback = { context, connection, path, method, _, _, uploaded, state in
      guard let context, let connection, let path, let method, let state else { return .NO }
      // First come the headers, then what is sent along, which is dropped.
      if state.pointee == nil {
        state.pointee = context
        return .YES
      }
      if let uploaded, uploaded.pointee > 0 {
        uploaded.pointee = 0
        return .YES
      }
      let service = Unmanaged<Service>.fromOpaque(context).takeUnretainedValue()
      return service.serve(connection, String(cString: method), String(cString: path)) ? .YES : .NO
    }
    guard
      let daemon = cmh_start(
        &library, socket.descriptor, Self.connections, Self.patience, handler,
        Unmanaged.passUnretained(service).toOpaque())
    else { throw SystemError(operation: "serve at \(socket.address.description)", code: errno) }
    self.daemon = daemon
  }

  /// Takes no more connections and ends those there are.
  deinit { service.library.MHD_stop_daemon(daemon) }

  /// What the threads of connections share.
  private final class Service: Sendable {
    nonisolated(unsafe) let library: cmh_library
    let hosts: Set<String>
    let answer: @Sendable (HTTPRequest) -> HTTPReply

    init(library: cmh_library, hosts: Set<String>, answer: @escaping @Sendable (HTTPRequest) -> HTTPReply) {
      self.library = library
      self.hosts = hosts
      self.answer = answer
    }

    func serve(_ connection: OpaquePointer, _ method: String, _ path: String) -> Bool {
      let request = HTTPRequest(method: method, path: path) { [library] name in
        withUnsafePointer(to: library) { cmh_header($0, connection, name).map { String(cString: $0) } }
      }
      return send(reply(to: request).answering(request), on: connection)
    }

    private func reply(to request: HTTPRequest) -> HTTPReply {
      guard request.method == "GET" || request.method == "HEAD" else {
        var refusal = HTTPReply.failure(405, "only GET and HEAD are answered")
        refusal.headers.append(("Allow", "GET, HEAD"))
        return refusal
      }
      if !hosts.isEmpty, let host = request.header("Host"), !hosts.contains(Self.name(of: host)) {
        return .failure(421, "this server is not called \(Self.name(of: host)); name it with --host")
      }
      return answer(request)
    }

    /// Without the port.
    private static func name(of host: String) -> String {
      if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return String(host[...end]).lowercased() }
      let parts = host.split(separator: ":", omittingEmptySubsequences: false)
      let isName = parts.count == 1 || parts.count == 2 && parts[1].utf8.allSatisfy { (48...57).contains($0) }
      return (isName ? String(parts[0]) : host).lowercased()
    }

    private func send(_ reply: HTTPReply, on connection: OpaquePointer) -> Bool {
      var headers = HTTPServer.headers + reply.headers.map { ($0.name, $0.value) }
      headers.append(("Content-Type", reply.kind.rawValue))
      let lasting = reply.isLasting && (200...206).contains(reply.status)
      headers.append(("Cache-Control", lasting ? "private, max-age=31536000, immutable" : "private, no-cache"))
      let strings = headers.flatMap { [strdup($0.0), strdup($0.1)] }
      defer { for string in strings { free(string) } }
      let pointers = strings.map { UnsafePointer($0) }
      return withUnsafePointer(to: library) { library in
        switch reply.body {
        case .bytes(let bytes):
          return bytes.withUnsafeBytes {
            cmh_send(
              library, connection, UInt32(reply.status), $0.baseAddress, $0.count, -1, 0, pointers, pointers.count) != 0
          }
        case .file(let file, let range):
          // Closed by the library when it is sent.
          let copy = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)
          guard copy >= 0 else { return false }
          return cmh_send(
            library, connection, UInt32(reply.status), nil, range.count, copy, UInt64(range.lowerBound), pointers,
            pointers.count) != 0
        }
      }
    }
  }
}

/// Nothing can be served on this machine.
struct MissingHTTPLibrary: Error, CustomStringConvertible {
  let reason: String
  var description: String { "load libmicrohttpd: \(reason); install it (Debian: libmicrohttpd12)" }
}
