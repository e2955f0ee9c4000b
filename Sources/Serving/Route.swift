// One row of the table of routes: a pattern of a path, and the handler of the requests that it matches.

import FrameBatches
import Sessions
import Showing

struct Route: Sendable {
  typealias Handler<Subject> = @Sendable (SessionRoutes, Subject, HTTPRequest) throws -> HTTPResponse?

  /// The parts of the path; `*` is any name.
  private let pattern: [String]
  private let handler: Handler<[String]>

  /// A route whose handler gets the parts of the path.
  init(_ pattern: String..., handler: @escaping Handler<[String]>) {
    (self.pattern, self.handler) = (pattern, handler)
  }

  /// A route below `/sessions/ID`; nothing is at an invalid ID.
  ///
  /// - Parameter name: the part behind the ID; nil for none.
  init(ofSession name: String?, handler: @escaping Handler<SessionID>) {
    pattern = ["sessions", "*"] + (name.map { [$0] } ?? [])
    self.handler = { routes, parts, request in
      try SessionID(parts[1]).flatMap { try handler(routes, $0, request) }
    }
  }

  /// A route below `/sessions/ID` that needs the session as it is now.
  init(ofPlayback name: String, handler: @escaping Handler<SessionPlayback>) {
    self.init(ofSession: name) { routes, session, request in
      try routes.withPlayback(of: session) { try handler(routes, $0, request) }
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
