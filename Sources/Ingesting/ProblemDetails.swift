import JSON
import Serving

/// The reason why a request is refused, as clients get it: problem details (RFC 9457).
package struct ProblemDetails: Error, Sendable, Equatable {
  package enum Kind: String, Sendable, CaseIterable {
    case badRequest = "bad-request"
    case wrongDigest = "wrong-digest"
    case unauthorized
    case forbidden
    case notFound = "not-found"
    case wrongMethod = "wrong-method"
    case tooSlow = "too-slow"
    case conflict
    case gone
    case lengthRequired = "length-required"
    case tooLarge = "too-large"
    case unsupportedType = "unsupported-type"
    case otherHost = "other-host"
    case invalidBatch = "invalid-batch"
    case tooMany = "too-many"
    case unavailable
    case notConfigured = "not-configured"

    package var status: Int {
      switch self {
      case .badRequest, .wrongDigest: 400
      case .unauthorized: 401
      case .forbidden: 403
      case .notFound: 404
      case .wrongMethod: 405
      case .tooSlow: 408
      case .conflict: 409
      case .gone: 410
      case .lengthRequired: 411
      case .tooLarge: 413
      case .unsupportedType: 415
      case .otherHost: 421
      case .invalidBatch: 422
      case .tooMany: 429
      case .notConfigured: 501
      case .unavailable: 503
      }
    }

    var title: String {
      switch self {
      case .badRequest: "The request is malformed"
      case .wrongDigest: "The body does not have the digest of its header"
      case .unauthorized: "A bearer token is required"
      case .forbidden: "The token does not allow this"
      case .notFound: "Nothing is here"
      case .wrongMethod: "The method is not allowed here"
      case .tooSlow: "The body comes too slowly"
      case .conflict: "Other content has this name"
      case .gone: "The session was deleted"
      case .lengthRequired: "The length of the body is required"
      case .tooLarge: "The body is too large"
      case .unsupportedType: "Bodies of this type are not taken"
      case .otherHost: "The server has another name"
      case .invalidBatch: "The content cannot be encoded"
      case .tooMany: "Too much is waiting"
      case .notConfigured: "The worker is not set up for this"
      case .unavailable: "The worker cannot take anything now"
      }
    }
  }

  package let kind: Kind
  package let detail: String
  package let advice: String
  /// Further headers.
  private(set) var headers: [[String]] = []

  package init(_ kind: Kind, _ detail: String, advice: String) {
    self.kind = kind
    self.detail = detail
    self.advice = advice
    if kind == .unauthorized { headers.append(["WWW-Authenticate", "Bearer realm=\"ingest\""]) }
  }

  /// A refusal that ends by itself.
  package init(_ kind: Kind, _ detail: String, retryAfterS: Int, advice: String = "send it again after Retry-After") {
    self.init(kind, detail, advice: advice)
    headers.append(["Retry-After", "\(retryAfterS)"])
  }

  init(allowing methods: String, not method: String) {
    self.init(.wrongMethod, "\(method.shortened(to: 40)) is not answered here", advice: "use \(methods)")
    headers.append(["Allow", methods])
  }

  /// A failure of a disk, a store or a queue. Clients do not see its paths.
  static let failure = ProblemDetails(
    .unavailable, "the disk, the store or the queue of the worker failed; nothing was taken", retryAfterS: 5)

  /// A request that the HTTP server itself refuses.
  package init(status: Int, _ text: String) {
    let kind = Kind.allCases.first { $0.status == status } ?? .badRequest
    self.init(kind, text, advice: kind == .tooSlow ? "send the body without pauses" : "see detail")
  }

  package var response: HTTPResponse {
    let members: [String: JSONValue] = [
      "type": .string("urn:encoder-worker:problem:\(kind.rawValue)"), "title": .string(kind.title),
      "status": .number(kind.status), "detail": .string(detail), "advice": .string(advice),
    ]
    let text = JSONValue.object(members).line + "\n"
    var response = HTTPResponse(.problem, Array(text.utf8), status: kind.status)
    response.headers += headers.map { ($0[0], $0[1]) }
    return response
  }
}
