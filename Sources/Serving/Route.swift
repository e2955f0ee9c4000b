// One row of the table of routes: a pattern of a path, and the handler of the requests that it matches. Only a page's handler runs
// outside of a gate, and it cannot reach the sessions.

import Encoding
import Films
import FrameBatches
import Sessions
import Showing

struct Route: Sendable {
  typealias Handler<Subject> = @Sendable (SessionRoutes, Subject, HTTPRequest) throws -> HTTPResponse?

  /// The parts of the path; `*` is any name.
  let pattern: [String]
  /// Whether the answer is a file of the program, or a redirection.
  let isPage: Bool
  private let handler: Handler<[String]>

  private init(_ pattern: [String], isPage: Bool = false, _ handler: @escaping Handler<[String]>) {
    (self.pattern, self.isPage, self.handler) = (pattern, isPage, handler)
  }

  /// A route whose handler gets the parts of the path, and nothing else.
  init(page pattern: String..., handler: @escaping @Sendable ([String]) -> HTTPResponse?) {
    self.init(pattern, isPage: true) { _, parts, _ in handler(parts) }
  }

  /// A route whose handler passes a gate.
  init(
    _ pattern: String..., through gate: RouteGates.Name,
    handler: @escaping @Sendable (SessionRoutes, HTTPRequest) throws -> HTTPResponse?
  ) {
    self.init(pattern) { routes, _, request in try routes.gates.pass(gate, request) { try handler(routes, request) } }
  }

  /// A route below `/sessions/ID`; nothing is at an invalid ID.
  ///
  /// - Parameters:
  ///   - name: the part behind the ID.
  ///   - isGlance: whether the handler needs a part of the session at most: a stored one is not copied first.
  init(
    ofSession name: String, through gate: RouteGates.Name, isGlance: Bool = false,
    handler: @escaping Handler<SessionID>
  ) {
    self.init(["sessions", "*", name]) { routes, parts, request in
      guard let session = SessionID(parts[1]) else { return nil }
      return try routes.gates.pass(gate, request) {
        if !isGlance { try routes.catalog.prepare(session, progress: request.requireClient) }
        return try handler(routes, session, request)
      }
    }
  }

  /// A route below `/sessions/ID` that needs the session as it is now.
  init(ofPlayback name: String, through gate: RouteGates.Name = .session, handler: @escaping Handler<SessionPlayback>) {
    self.init(ofSession: name, through: gate) { routes, session, request in
      try routes.withPlayback(of: session) { try handler(routes, $0, request) }
    }
  }

  /// A route below `/sessions/ID` that makes a film. Reading the session passes a gate; the film itself waits in the queue for films.
  ///
  /// - Parameter format: of an animated picture; nil for an MP4.
  init(ofFilm name: String, as format: AnimationFormat?) {
    self.init(["sessions", "*", name]) { routes, parts, request in
      guard let session = SessionID(parts[1]) else { return nil }
      return try routes.film(of: session, as: format, request)
    }
  }

  func matches(_ parts: [String]) -> Bool {
    parts.count == pattern.count && zip(parts, pattern).allSatisfy { $1 == "*" || $0 == $1 }
  }

  /// - Returns: nil if nothing is there.
  func answer(_ request: HTTPRequest, at parts: [String], of routes: SessionRoutes) throws -> HTTPResponse? {
    try handler(routes, parts, request)
  }
}
