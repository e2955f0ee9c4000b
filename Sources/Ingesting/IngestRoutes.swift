// The routes of `run --ingest`. All conditions that the headers can break are checked before the first byte of a body is read.

import FileSystem
import FrameBatches
import Serving
import Sessions

package struct IngestRoutes: Sendable {
  private let context: IngestContext
  private let frames: FrameRoute
  private let hooks: HookRoute
  /// nil if everybody may write.
  private let tokens: IngestTokens?
  private let origins: PageOrigins
  private let version: String
  private let trouble: @Sendable () -> String?

  /// - Parameters:
  ///   - pictures: nil if pictures cannot be kept.
  ///   - origins: the web pages that may send.
  ///   - hook: the store that sends notifications; nil if there is none.
  ///   - forward: brings the batches of pictures to their queue; nil if they are in it.
  ///   - endSession: ends a session once all its batches are finished, and returns what is known of it.
  ///   - trouble: the reason why the worker starts no batch; nil if it does.
  package init(
    _ context: IngestContext, pictures: PictureIntake?, hook: StoreHook? = nil, tokens: IngestTokens?,
    origins: PageOrigins = PageOrigins(), version: String,
    forward: (@Sendable () throws -> Void)? = nil, endSession: @escaping @Sendable (SessionID) throws -> EndState,
    trouble: @escaping @Sendable () -> String?
  ) {
    self.context = context
    frames = FrameRoute(context: context, pictures: pictures, forward: forward, endSession: endSession)
    hooks = HookRoute(context: context, hook: hook)
    self.tokens = tokens
    self.origins = origins
    self.version = version
    self.trouble = trouble
  }

  /// The routes for a server.
  package var body: BodyRoutes {
    BodyRoutes(
      refusal: { [context] status, text in
        context.meter.countRefusal(status, of: nil)
        return ProblemDetails(status: status, text).response
      }, admit: admit)
  }

  package func admit(_ request: HTTPRequest) -> Admission {
    guard let origin = origins.origin(of: request) else { return decision(on: request) }
    return request.method == "OPTIONS"
      ? .answer(origins.preflight(of: origin)) : origins.shown(decision(on: request), to: origin)
  }

  private func decision(on request: HTTPRequest) -> Admission {
    var producer: Producer?
    do {
      if let answer = try open(request) { return .answer(answer) }
      if request.method == "OPTIONS", let origin = request.header("Origin") {
        throw ProblemDetails(
          .forbidden, "pages of \(origin.shortened(to: 200).oneLine) may not send", advice: "set --ingest-origin")
      }
      producer = try authorized(request)
      return try route(request, producer)
    } catch {
      let problem = context.problem(error)
      context.record(problem.response, to: request.path, of: producer, problem)
      return .answer(problem.response)
    }
  }

  private func route(_ request: HTTPRequest, _ producer: Producer?) throws -> Admission {
    if request.path == HookRoute.path { return try hooks.admit(request, producer) }
    let parts = request.parts
    if parts.count == 3, parts[0] == "v1", parts[1] == "batches" {
      return try BatchRoute(context: context).admit(request, name: parts[2], producer)
    }
    if parts.count == 4, parts[0] == "v1", parts[1] == "sessions", ["frames", "labels", "end"].contains(parts[3]) {
      guard let session = SessionID(parts[2]) else {
        throw ProblemDetails(.badRequest, "no session id", advice: SessionID.rule)
      }
      if let producer, !producer.mayWrite(to: session) {
        throw ProblemDetails(session: session.description, notOf: producer)
      }
      guard request.method == "POST" else { throw ProblemDetails(allowing: "POST", not: request.method) }
      return switch parts[3] {
      case "end": .answer(try frames.end(session, request, producer))
      case "labels": try LabelRoute(context: context).admit(request, session, producer)
      default: try frames.admit(request, session, producer)
      }
    }
    throw ProblemDetails(
      .notFound, "nothing is at \(request.path.shortened(to: 300).oneLine)",
      advice: "see /v1/openapi.json for what is there")
  }

  /// The answers that need no token; nil if the request is for something else.
  private func open(_ request: HTTPRequest) throws(ProblemDetails) -> HTTPResponse? {
    let answer: HTTPResponse
    switch request.path {
    case "/healthz": answer = HTTPResponse(.text, Array("ok\n".utf8))
    case "/readyz":
      let reason = context.gate.refusal()?.detail ?? trouble()
      answer = HTTPResponse(.text, Array("\(reason ?? "ok")\n".utf8), status: reason == nil ? 200 : 503)
    case "/metrics":
      var text = MetricsText()
      context.meter.write(to: &text)
      text.process(version: version)
      answer = HTTPResponse(.metrics, Array(text.text.utf8))
    case "/v1/openapi.json": answer = HTTPResponse(.json, OpenAPIDocument.bytes)
    case "/": answer = HTTPResponse(.text, Array("encoder-worker ingest: see /v1/openapi.json\n".utf8))
    default: return nil
    }
    guard ["GET", "HEAD"].contains(request.method) else {
      throw ProblemDetails(allowing: "GET, HEAD", not: request.method)
    }
    return answer
  }

  /// - Returns: nil if there are no tokens.
  private func authorized(_ request: HTTPRequest) throws(ProblemDetails) -> Producer? {
    guard let tokens else {
      // A page of any site can send requests to this machine. Browsers name the page.
      guard request.header("Origin") == nil || origins.origin(of: request) != nil else {
        throw ProblemDetails(
          .forbidden, "requests of web pages need a token", advice: "set --ingest-tokens, or --ingest-origin")
      }
      return nil
    }
    let words = (request.header("Authorization") ?? "").split(separator: " ", omittingEmptySubsequences: true)
    guard words.count == 2, words[0].lowercased() == "bearer",
      let producer = tokens.producer(withToken: String(words[1]))
    else {
      throw ProblemDetails(
        .unauthorized, words.isEmpty ? "no token" : "the token is not known", advice: "send Authorization: Bearer TOKEN"
      )
    }
    return producer
  }
}
