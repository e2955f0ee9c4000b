// With HTTPService.swift, the only file that uses libmicrohttpd.

import CLinux
import CMicroHTTP
import FileSystem
import Glibc

/// Answers requests with a function, on a thread for each connection.
package final class HTTPServer: Sendable {
  package var address: ListenAddress { socket.address }

  private let service: HTTPService
  private nonisolated(unsafe) let daemon: OpaquePointer
  private let socket: ListeningSocket

  private static let library = DynamicLibrary("libmicrohttpd", package: "libmicrohttpd12", cmh_library()) {
    cmh_load(&$0)
  }

  /// Starts to answer requests. Bodies are dropped.
  ///
  /// - Parameters:
  ///   - hosts: further host names to accept. Requests for other names are refused: their pages are of another site.
  ///   - answer: called on the threads of connections.
  package convenience init(
    on socket: ListeningSocket, hosts: [String], answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse
  ) throws {
    try self.init(on: socket, hosts: hosts, .reading(answer))
  }

  /// Starts to answer requests, also those with bodies.
  package convenience init(on socket: ListeningSocket, hosts: [String], routes: BodyRoutes) throws {
    try self.init(on: socket, hosts: hosts, .receiving(routes))
  }

  private init(on socket: ListeningSocket, hosts: [String], _ routes: HTTPService.Routes) throws {
    var library = try Self.library.functions()
    self.socket = socket
    service = HTTPService(library: library, names: socket.address.acceptedNames(and: hosts), routes)
    // Signals are for the main thread.
    var before = sigset_t()
    clinux_block_signals(&before)
    defer { clinux_restore_signals(&before) }
    let handler: MHD_AccessHandlerCallback = { context, connection, path, method, version, body, count, state in
      guard let context, let connection, let path, let method, let version, let state else { return .NO }
      let service = Unmanaged<HTTPService>.fromOpaque(context).takeUnretainedValue()
      // The first call has the headers, the next ones the body.
      guard let known = state.pointee else {
        let exchange = HTTPExchange()
        state.pointee = Unmanaged.passRetained(exchange).toOpaque()
        return service.begin(exchange, on: connection, method, String(cString: path), version) ? .YES : .NO
      }
      let exchange = Unmanaged<HTTPExchange>.fromOpaque(known).takeUnretainedValue()
      if let count, count.pointee > 0 {
        let bytes = UnsafeRawBufferPointer(start: body, count: count.pointee)
        count.pointee = 0
        return service.take(bytes, of: exchange, on: connection) ? .YES : .NO
      }
      service.connections.requestCompleted(on: connection)
      return service.end(exchange, on: connection, String(cString: method), String(cString: path)) ? .YES : .NO
    }
    let connected: MHD_NotifyConnectionCallback = { context, connection, _, event in
      guard let context, let connection else { return }
      let service = Unmanaged<HTTPService>.fromOpaque(context).takeUnretainedValue()
      if cmh_is_start(event) != 0 {
        let (descriptor, network) = withUnsafePointer(to: service.library) {
          (cmh_descriptor($0, connection), cmh_network($0, connection))
        }
        service.connections.begin(connection, descriptor, network: network)
      } else {
        service.connections.end(connection)
      }
    }
    let completed: MHD_RequestCompletedCallback = { context, connection, state, _ in
      guard let context, let connection else { return }
      let service = Unmanaged<HTTPService>.fromOpaque(context).takeUnretainedValue()
      if let known = state?.pointee {
        state?.pointee = nil
        service.forget(Unmanaged<HTTPExchange>.fromOpaque(known).takeRetainedValue(), of: connection)
      }
      service.connections.responseCompleted(on: connection)
    }
    // The library would let new clients wait at its own limit. Connections that are being closed count there.
    var limits = cmh_limits(connections: UInt32(ConnectionTable.maximum + 128), idleSeconds: 30)
    try service.connections.start()
    guard
      let daemon = cmh_start(
        &library, socket.descriptor, &limits, handler, connected, completed,
        Unmanaged.passUnretained(service).toOpaque())
    else {
      let code = errno
      service.connections.stop()
      throw Failure(.environment, "serve at \(socket.address.description)", "", String(cString: strerror(code)))
    }
    self.daemon = daemon
  }

  /// Closes all connections.
  deinit {
    service.connections.stop()
    service.library.MHD_stop_daemon(daemon)
  }
}
