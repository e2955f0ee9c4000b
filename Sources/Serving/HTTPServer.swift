// The only file that uses libmicrohttpd.

import CLinux
import CMicroHTTP
import FileSystem
import Glibc

/// Answers requests with a function, on a thread for each connection.
package final class HTTPServer: Sendable {
  package var address: ListenAddress { socket.address }
  /// Headers of every response: pages send no request to other hosts, and pages of other sites get no response.
  private static let headers: [(name: String, value: String)] = [
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

  private static let library = DynamicLibrary("libmicrohttpd", package: "libmicrohttpd12", cmh_library()) {
    cmh_load(&$0)
  }

  /// Starts to answer requests.
  ///
  /// - Parameters:
  ///   - hosts: further host names to accept. Requests for other names are refused: their pages are of another site.
  ///   - answer: called on the threads of connections.
  package init(on socket: ListeningSocket, hosts: [String], answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse)
    throws
  {
    var library = try Self.library.functions()
    self.socket = socket
    service = Service(library: library, names: socket.address.acceptedNames(and: hosts), answer: answer)
    // Signals are for the main thread.
    var before = sigset_t()
    clinux_block_signals(&before)
    defer { clinux_restore_signals(&before) }
    let handler: MHD_AccessHandlerCallback = { context, connection, path, method, version, _, uploaded, state in
      guard let context, let connection, let path, let method, let version, let state else { return .NO }
      let service = Unmanaged<Service>.fromOpaque(context).takeUnretainedValue()
      // The first call has the headers, the next ones the body, which is dropped.
      if state.pointee == nil {
        state.pointee = context
        guard let fault = service.fault(of: connection, method, version) else { return .YES }
        return service.refuse(connection, fault) ? .YES : .NO
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
    var limits = cmh_limits(connections: 512, connectionsOfAnAddress: 384, idleSeconds: 30)
    try service.deadlines.start()
    guard
      let daemon = cmh_start(
        &library, socket.descriptor, &limits, handler, connected, completed,
        Unmanaged.passUnretained(service).toOpaque())
    else {
      let code = errno
      service.deadlines.stop()
      throw SystemError(operation: "serve at \(socket.address.description)", code: code)
    }
    self.daemon = daemon
  }

  /// Closes all connections.
  deinit {
    service.deadlines.stop()
    service.library.MHD_stop_daemon(daemon)
  }

  /// State that the threads of connections share.
  private final class Service: Sendable {
    let library: cmh_library
    let names: Set<String>
    let deadlines = RequestDeadlines()
    let answer: @Sendable (HTTPRequest) -> HTTPResponse

    init(library: cmh_library, names: Set<String>, answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse) {
      self.library = library
      self.names = names
      self.answer = answer
    }

    /// Returns the reason why a proxy may read another host, another length or other headers from a request (RFC 9112, 11.2);
    /// nil if there is none.
    func fault(
      of connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
    ) -> String? {
      let headers = withUnsafePointer(to: library) { cmh_headers_of($0, connection, method) }
      if headers.folded > 0 { return "a header continues on the next line; write it on one line" }
      if headers.malformed > 0 { return "a header has a character that is not allowed there" }
      if headers.hosts > 1 || headers.lengths + headers.codings > 1 {
        return "a request has one Host, and one of Content-Length and Transfer-Encoding at most"
      }
      if headers.codings > headers.chunked || headers.codings > 0 && strcmp(version, "HTTP/1.0") == 0 {
        return "the Transfer-Encoding is not chunked, or not of HTTP/1.1"
      }
      return nil
    }

    func refuse(_ connection: OpaquePointer, _ fault: String) -> Bool {
      var refusal = HTTPResponse.failure(400, fault)
      refusal.headers.append(("Connection", "close"))
      return send(refusal, on: connection)
    }

    func serve(_ connection: OpaquePointer, _ method: String, _ path: String) -> Bool {
      var isProbed: Int32 = 0
      let request = HTTPRequest(method: method, path: path) { [library] name in
        withUnsafePointer(to: library) { cmh_header($0, connection, name).map { String(cString: $0) } }
      } argument: { [library] name in
        withUnsafePointer(to: library) { cmh_argument($0, connection, name).map { String(cString: $0) } }
      } isAbandoned: { [library] in
        withUnsafePointer(to: library) { cmh_is_client_gone($0, connection, &isProbed) != 0 }
      }
      var reply = reply(to: request).answering(request)
      // A proxy may see another end of the body, so no further request is read from the connection.
      if request.header("Content-Length").map({ $0 != "0" }) ?? (request.header("Transfer-Encoding") != nil) {
        reply.headers.append(("Connection", "close"))
      }
      return send(reply, on: connection)
    }

    private func reply(to request: HTTPRequest) -> HTTPResponse {
      if request.isAmbiguous { return .failure(400, "a path has no %2F, %5C and %00, and no part . or ..") }
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

    /// Returns a Host header without its port.
    private static func name(of host: String) -> String {
      if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return String(host[...end]).lowercased() }
      let parts = host.split(separator: ":", omittingEmptySubsequences: false)
      let isName = parts.count == 1 || parts.count == 2 && parts[1].isDecimal
      return (isName ? String(parts[0]) : host).lowercased()
    }

    private func send(_ reply: HTTPResponse, on connection: OpaquePointer) -> Bool {
      var headers = HTTPServer.headers + reply.headers
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
              library, connection, UInt32(reply.status), $0.baseAddress, $0.count, pointers, pointers.count) != 0
          }
        case .file(let file, let range):
          // The library releases it after sending.
          let part = cmh_part(
            file: file.descriptor, offset: UInt64(range.lowerBound), owner: Unmanaged.passRetained(file).toOpaque()
          ) { Unmanaged<OpenFile>.fromOpaque($0!).release() }
          return cmh_send_part(
            library, connection, UInt32(reply.status), range.count, part, pointers, pointers.count) != 0
        }
      }
    }
  }
}
