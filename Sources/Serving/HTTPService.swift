// The steps of a request: its headers are checked, its body is dropped or given to a receiver, and the answer is sent.

import CLinux
import CMicroHTTP
import FileSystem
import Glibc
import Synchronization

/// The state of one request.
final class HTTPExchange {
  /// Takes the body, and has not answered yet.
  var receiver: (any BodyReceiver)?
  /// Whether the request was answered before its body was read.
  var isRefused = false
}

/// State that the threads of connections share.
final class HTTPService: Sendable {
  enum Routes {
    /// Answers GET and HEAD.
    case reading(@Sendable (HTTPRequest) -> HTTPResponse)
    /// Answers all methods, and takes bodies.
    case receiving(BodyRoutes)
  }

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
  /// Milliseconds for which the rest of a refused body is read, and the most connections that are read so.
  private static let (drainMs, maximumDrains): (Int32, Int) = (1_000, 128)

  let library: cmh_library
  let connections: ConnectionTable
  private let names: Set<String>
  private let routes: Routes
  private let drains = Atomic(0)

  init(library: cmh_library, names: Set<String>, _ routes: Routes) {
    self.library = library
    self.names = names
    self.routes = routes
    if case .receiving(let routes) = routes {
      connections = ConnectionTable(routes.limits)
    } else {
      connections = ConnectionTable()
    }
  }

  var takesBodies: Bool { if case .receiving = routes { true } else { false } }

  /// The headers have come.
  ///
  /// - Returns: false to close the connection; so do the next two.
  func begin(
    _ exchange: HTTPExchange, on connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ path: String,
    _ version: UnsafePointer<CChar>
  ) -> Bool {
    if let fault = fault(of: connection, method, version) {
      exchange.isRefused = takesBodies
      return sendLast(failure(400, fault), on: connection)
    }
    guard case .receiving(let routes) = routes else { return true }
    let request = request(on: connection, String(cString: method), path)
    // The answer to a request without a body is sent when the library has taken all of it.
    guard request.bodyBytes != 0 else { return true }
    switch refusal(of: request).map(Admission.answer) ?? routes.admit(request) {
    case .answer(let answer):
      connections.requestCompleted(on: connection)
      exchange.isRefused = true
      return sendLast(answer, on: connection)
    case .receive(let receiver):
      exchange.receiver = receiver
      connections.bodyBegan(on: connection)
      return true
    }
  }

  /// Some bytes of the body have come.
  func take(_ bytes: UnsafeRawBufferPointer, of exchange: HTTPExchange, on connection: OpaquePointer) -> Bool {
    guard let receiver = exchange.receiver else { return true }
    connections.bodyReceived(bytes.count, on: connection)
    guard let answer = receiver.take(bytes) else { return true }
    // The library takes no answer here.
    connections.requestCompleted(on: connection)
    exchange.receiver = nil
    exchange.isRefused = true
    let early = answer.early
    withUnsafePointer(to: library) { cmh_send_early(cmh_descriptor($0, connection), early, early.count) }
    return false
  }

  /// The request is complete.
  func end(_ exchange: HTTPExchange, on connection: OpaquePointer, _ method: String, _ path: String) -> Bool {
    let request = request(on: connection, method, path)
    switch routes {
    case .reading(let answer):
      var reply = (refusal(of: request) ?? answer(request)).answering(request)
      // A proxy may see another end of the body, so no further request is read from the connection.
      if request.header("Content-Length").map({ $0 != "0" }) ?? (request.header("Transfer-Encoding") != nil) {
        reply.headers.append(("Connection", "close"))
      }
      return send(reply, on: connection)
    case .receiving(let routes):
      if let receiver = exchange.receiver.take() { return send(receiver.finish(), on: connection) }
      switch refusal(of: request).map(Admission.answer) ?? routes.admit(request) {
      case .answer(let answer): return send(answer.answering(request), on: connection)
      case .receive(let receiver): return send(receiver.finish(), on: connection)
      }
    }
  }

  /// The request is answered, or its connection has ended.
  func forget(_ exchange: HTTPExchange, of connection: OpaquePointer) {
    exchange.receiver.take()?.abandon()
    guard exchange.isRefused else { return }
    defer { drains.subtract(1, ordering: .relaxed) }
    guard drains.add(1, ordering: .relaxed).newValue <= Self.maximumDrains else { return }
    withUnsafePointer(to: library) { cmh_drain($0, connection, Self.drainMs) }
  }

  private func request(on connection: OpaquePointer, _ method: String, _ path: String) -> HTTPRequest {
    var isProbed: Int32 = 0
    let network = withUnsafePointer(to: library) { cmh_network($0, connection) }
    return HTTPRequest(
      method: method, path: path,
      header: { [library] name in
        withUnsafePointer(to: library) { cmh_header($0, connection, name).map { String(cString: $0) } }
      },
      argument: { [library] name in
        withUnsafePointer(to: library) { cmh_argument($0, connection, name).map { String(cString: $0) } }
      },
      isAbandoned: { [library] in
        withUnsafePointer(to: library) { cmh_is_client_gone($0, connection, &isProbed) != 0 }
      }, network: network)
  }

  /// Returns the reason why a proxy may read another host, another length or other headers from a request (RFC 9112, 11.2);
  /// nil if there is none.
  private func fault(
    of connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
  ) -> String? {
    let headers = withUnsafePointer(to: library) { cmh_headers_of($0, connection, method) }
    if headers.folded > 0 { return "a header continues on the next line; write it on one line" }
    if headers.malformed > 0 { return "a header has a character that is not allowed there" }
    if headers.hosts > 1 || headers.lengths + headers.codings > 1 {
      return "a request has one Host, and one of Content-Length and Transfer-Encoding at most"
    }
    if headers.repeated > 0 { return "a header that has one value comes twice; send it once" }
    if withUnsafePointer(to: library, { cmh_repeats_argument($0, connection) }) != 0 {
      return "an argument of the address comes twice, or there are more than 64; send each once"
    }
    if headers.codings > headers.chunked || headers.codings > 0 && strcmp(version, "HTTP/1.0") == 0 {
      return "the Transfer-Encoding is not chunked, or not of HTTP/1.1"
    }
    return nil
  }

  private func failure(_ status: Int, _ text: String) -> HTTPResponse {
    if case .receiving(let routes) = routes { routes.refusal(status, text) } else { .failure(status, text) }
  }

  /// Returns the answer to a request that no route gets; nil for any other.
  private func refusal(of request: HTTPRequest) -> HTTPResponse? {
    if request.isAmbiguous { return failure(400, "a path has no %2F, %5C and %00, and no part . or ..") }
    if case .reading = routes, request.method != "GET" && request.method != "HEAD" {
      var refusal = HTTPResponse.failure(405, "only GET and HEAD are answered")
      refusal.headers.append(("Allow", "GET, HEAD"))
      return refusal
    }
    // DNS rebinding needs a host name, so a request to an IP address is safe.
    if let host = request.header("Host").map(Self.name), !names.contains(host), !ListenAddress.isNumeric(host) {
      return failure(421, "this server is not called \(host); name it with --host")
    }
    return nil
  }

  /// Returns a Host header without its port.
  private static func name(of host: String) -> String {
    if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return String(host[...end]).lowercased() }
    let parts = host.split(separator: ":", omittingEmptySubsequences: false)
    let isName = parts.count == 1 || parts.count == 2 && parts[1].isDecimal
    return (isName ? String(parts[0]) : host).lowercased()
  }

  private func sendLast(_ reply: HTTPResponse, on connection: OpaquePointer) -> Bool {
    var last = reply
    last.headers.append(("Connection", "close"))
    return send(last, on: connection)
  }

  private func send(_ reply: HTTPResponse, on connection: OpaquePointer) -> Bool {
    var headers = Self.headers + reply.headers
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
