import FileSystem
import FrameBatches
import JSON
import Sessions

/// A request for credentials: no redirect, a small answer, one deadline for all of it.
struct CredentialRequest {
  let method: CurlRequest.Method
  let url: String
  var headers: [(name: String, value: String)] = []
  var body: [UInt8] = []
  var connectTimeoutS = 1
  var timeoutS = 1
  /// Whether the proxies of the environment are used: never for addresses of this machine.
  var usesProxy = false

  /// An answer has some 2 KB.
  private static let maximumBytes = 64 << 10

  /// - Throws: ``TransferFailure`` without a whole answer; ``Cancelled``.
  func send(_ cancellation: Cancellation) throws -> CredentialAnswer {
    try cancellation.check()
    var bytes: [UInt8] = []
    let transfer = CurlTransfer(
      sending: .bytes(body), key: "the answer", limit: Self.maximumBytes,
      cancellation: cancellation.or(afterMs: 1_000 * timeoutS)
    ) { piece, _ in bytes += piece }
    let request = CurlRequest(
      method: method, url: url, headers: headers, timeoutS: timeoutS, connectTimeoutS: connectTimeoutS,
      usesProxy: usesProxy)
    do {
      try CurlPool.shared().perform(request, transfer)
    } catch is Cancelled {
      try cancellation.check()
      throw TransferFailure(cause: "no answer within \(timeoutS) s", isTransient: true)
    } catch let failure as TransferFailure {
      // The timeout may be noticed first.
      try cancellation.check()
      throw failure
    } catch is ObjectTooLarge {
      throw TransferFailure(cause: "an answer of more than \(Self.maximumBytes) bytes", isTransient: false)
    }
    return CredentialAnswer(
      status: transfer.status, bytes: transfer.status < 300 ? bytes : transfer.errorBody, dateMs: transfer.dateMs)
  }
}

/// The answer of a place that gives credentials. Texts of it may have secrets.
struct CredentialAnswer: SecretValue {
  let status: Int
  let bytes: [UInt8]
  /// The time of the answer by the server's clock, in unix milliseconds; nil if it does not say.
  let dateMs: Int64?

  var isGood: Bool { (200...299).contains(status) }

  /// Returns an error code, which may be shown; nil for other texts, which may have secrets.
  static func code(_ text: String?) -> String? {
    text.flatMap { text in
      let isWord = text.utf8.allSatisfy { (65...90).contains($0) || (97...122).contains($0) }
      return isWord && (1...40).contains(text.utf8.count) ? text : nil
    }
  }

  /// Reads the JSON of IMDS and of containers.
  func jsonCredentials() throws(CredentialAnswerError) -> FetchedCredentials {
    guard let members = (try? JSONParser.parse(bytes))?.object else {
      throw CredentialAnswerError("the answer is no JSON object")
    }
    if let code = members["Code"]?.string, code != "Success" {
      throw CredentialAnswerError("the answer says \(Self.code(code) ?? "an error")")
    }
    return try credentials(
      members["AccessKeyId"]?.string, members["SecretAccessKey"]?.string, members["Token"]?.string,
      members["Expiration"]?.string)
  }

  /// Returns credentials that have not expired by the server's clock, or this machine's if the server does not say.
  func credentials(
    _ key: String?, _ secret: String?, _ token: String?, _ expiration: String?
  ) throws(CredentialAnswerError) -> FetchedCredentials {
    guard let key, let secret, let credentials = AWSCredentials(key: key, secret: secret, token: token) else {
      throw CredentialAnswerError("the answer has no AccessKeyId and SecretAccessKey that can be sent")
    }
    guard let expiration else { return FetchedCredentials(credentials: credentials, lifetimeMs: nil) }
    guard expiration.utf8.count <= 40, let expiresMs = SessionInstant(expiration)?.unixMs(inSessionFrom: 0) else {
      throw CredentialAnswerError("the answer has an Expiration that is no time")
    }
    // The header has whole seconds.
    let lifetimeMs = expiresMs - (dateMs.map { $0 + 999 } ?? WallClock.nowMs)
    guard lifetimeMs > 0 else { throw CredentialAnswerError("the answer has credentials that have expired") }
    return FetchedCredentials(credentials: credentials, lifetimeMs: Int(min(lifetimeMs, Self.maximumLifetimeMs)))
  }

  /// No role lasts longer than twelve hours. A longer life is a mistake, and would never be renewed.
  private static let maximumLifetimeMs: Int64 = 12 * 3_600_000
}

struct CredentialAnswerError: Error {
  let cause: String
  init(_ cause: String) { self.cause = cause }
}
