// The one place that sees libmicrohttpd: takes connections, hands requests to a function, sends what it returns.

import CLinux
import CMicroHTTP
import FileSystem
import Glibc
import JSON
import SegmentEncoder
import Sessions
import Synchronization
import WorkQueues

final class HTTPServer: Sendable {
  /// The maximum of concurrent connections, in all and of one address, and the idle timeout.
  private static let limits = cmh_limits(connections: 512, connectionsOfAnAddress: 384, idleSeconds: 30)

  /// Where it listens.
  var address: ListenAddress { socket.address }
  /// Headers of every response: no request of a page leaves this server, and pages of other sites get nothing from it.
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
  private let deadlines: RequestDeadlines
  private nonisolated(unsafe) let daemon: OpaquePointer
  private let socket: ListeningSocket

  private static let library = DynamicLibrary("libmicrohttpd", package: "libmicrohttpd12", cmh_library()) {
    cmh_load(&$0)
  }

  /// Starts to answer.
  ///
  /// - Parameters:
  ///   - hosts: further names under which it may be asked: a page of another site whose name leads here does not get
  ///     through.
  ///   - answer: called on the threads of connections.
  init(on socket: ListeningSocket, hosts: [String], answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse) throws {
    var library = try Self.library.functions()
    self.socket = socket
    let deadlines = RequestDeadlines()
    self.deadlines = deadlines
    service = Service(
      library: library, names: socket.address.acceptedNames(and: hosts), deadlines: deadlines, answer: answer)
    // The signals are the main thread's.
    var before = sigset_t()
    clinux_block_signals(&before)
    defer { clinux_restore_signals(&before) }
    let handler: MHD_AccessHandlerCallback = { context, connection, path, method, _, _, uploaded, state in
      guard let context, let connection, let path, let method, let state else { return .NO }
      let service = Unmanaged<Service>.fromOpaque(context).takeUnretainedValue()
      // First come the headers, then what is sent along, which is dropped.
      if state.pointee == nil {
        state.pointee = context
        return service.isAmbiguous(connection) ? (service.refuse(connection) ? .YES : .NO) : .YES
      }
      if let uploaded, uploaded.pointee > 0 {
        uploaded.pointee = 0
        return .YES
      }
      service.deadlines.requestCompleted(on: connection)
      return service.serve(connection, String(cString: method), String(cString: path)) ? .YES : .NO
    }
    let connected: MHD_NotifyConnectionCallback = { context, connection, _, event in
      guard let context, let connection else { return }
      let service = Unmanaged<Service>.fromOpaque(context).takeUnretainedValue()
      if cmh_is_start(event) != 0 {
        let descriptor = withUnsafePointer(to: service.library) { cmh_descriptor($0, connection) }
        service.deadlines.begin(connection, descriptor)
      } else {
        service.deadlines.end(connection)
      }
    }
    let completed: MHD_RequestCompletedCallback = { context, connection, _, _ in
      guard let context, let connection else { return }
      Unmanaged<Service>.fromOpaque(context).takeUnretainedValue().deadlines.responseCompleted(on: connection)
    }
    var limits = Self.limits
    try deadlines.start()
    guard
      let daemon = cmh_start(
        &library, socket.descriptor, &limits, handler, connected, completed,
        Unmanaged.passUnretained(service).toOpaque())
    else {
      let code = errno
      deadlines.stop()
      throw SystemError(operation: "serve at \(socket.address.description)", code: code)
    }
    self.daemon = daemon
  }

  /// Takes no more connections and ends those there are.
  deinit {
    deadlines.stop()
    service.library.MHD_stop_daemon(daemon)
  }

  /// State that the threads of connections share.
  private final class Service: Sendable {
    let library: cmh_library
    let names: Set<String>
    let deadlines: RequestDeadlines
    let answer: @Sendable (HTTPRequest) -> HTTPResponse

    init(
      library: cmh_library, names: Set<String>, deadlines: RequestDeadlines,
      answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse
    ) {
      self.library = library
      self.names = names
      self.deadlines = deadlines
      self.answer = answer
    }

    /// Whether a proxy may read another host or another end from these headers (RFC 9112, 11.2).
    func isAmbiguous(_ connection: OpaquePointer) -> Bool {
      let framing = withUnsafePointer(to: library) { cmh_framing_of($0, connection) }
      return framing.hosts > 1 || framing.lengths > 1 || framing.codings > 0 && framing.lengths > 0
    }

    func refuse(_ connection: OpaquePointer) -> Bool {
      var refusal = HTTPResponse.failure(
        400, "a request has one Host, and one of Content-Length and Transfer-Encoding at most")
      refusal.headers.append(("Connection", "close"))
      return send(refusal, on: connection)
    }

    func serve(_ connection: OpaquePointer, _ method: String, _ path: String) -> Bool {
      let request = HTTPRequest(method: method, path: path) { [library] name in
        withUnsafePointer(to: library) { cmh_header($0, connection, name).map { String(cString: $0) } }
      }
      return send(reply(to: request).answering(request), on: connection)
    }

    private func reply(to request: HTTPRequest) -> HTTPResponse {
      guard request.method == "GET" || request.method == "HEAD" else {
        var refusal = HTTPResponse.failure(405, "only GET and HEAD are answered")
        refusal.headers.append(("Allow", "GET, HEAD"))
        return refusal
      }
      // DNS rebinding needs a host name, so a request to an IP address is safe.
      if let host = request.header("Host").map(Self.name), !names.contains(host), !ListenAddress.isNumeric(host) {
        return .failure(421, "this server is not called \(host); name it with --host")
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

    private func send(_ reply: HTTPResponse, on connection: OpaquePointer) -> Bool {
      var headers = HTTPServer.headers + reply.headers.map { ($0.name, $0.value) }
      headers.append(("Content-Type", reply.kind.rawValue))
      // Browsers revalidate each response, so they do not show pruned or deleted sessions.
      headers.append(("Cache-Control", "private, no-cache"))
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
