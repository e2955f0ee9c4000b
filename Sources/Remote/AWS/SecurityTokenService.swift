import FileSystem

/// Roles by STS: an unsigned request with the token of a web identity, or a request that other credentials sign.
/// https://docs.aws.amazon.com/STS/latest/APIReference/
struct SecurityTokenService: Sendable {
  let base: S3Endpoint
  let region: String
  let clock: SigningClock

  /// Seconds that one request may take. There are two at most.
  private static let timeoutS = 5

  /// - Parameters:
  ///   - values: the action's parameters.
  ///   - credentials: nil for an unsigned request.
  /// - Throws: ``StepFailure``, ``Cancelled``.
  func role(
    _ action: String, _ values: [String: String], signedWith credentials: AWSCredentials? = nil,
    cancellation: Cancellation
  ) throws -> FetchedCredentials {
    let all = values.merging(["Action": action, "Version": "2011-06-15"]) { $1 }
    let body = Array(AWSSigner.query(all).utf8)
    var last: StepFailure?
    for _ in 0..<2 {
      do {
        let answer = try CredentialRequest(
          method: .post, url: "\(base.scheme)://\(base.host)\(path)", headers: headers(body, credentials), body: body,
          connectTimeoutS: 2, timeoutS: Self.timeoutS, usesProxy: true
        ).send(cancellation)
        let text = String(decoding: answer.bytes, as: UTF8.self)
        if answer.isGood { return try Self.credentials(answer, text) }
        let code = CredentialAnswer.code(S3XML.first("Code", in: text))
        last = StepFailure("STS at \(base.host) answered \(answer.status)\(code.map { " \($0)" } ?? "") to \(action)")
        let isClock = credentials != nil && answer.dateMs.map { clock.correct(by: $0, for: base.host) } ?? false
        guard isClock || answer.status >= 500 || answer.status == 429 || code == "IDPCommunicationError" else { break }
      } catch let failure as TransferFailure {
        last = StepFailure("STS at \(base.host): \(failure.cause.oneLine)")
        if !failure.isTransient { break }
      }
    }
    throw last ?? StepFailure("STS at \(base.host) was not asked")
  }

  private var path: String { base.path.isEmpty ? "/" : base.path }

  private func headers(_ body: [UInt8], _ credentials: AWSCredentials?) -> [(name: String, value: String)] {
    let headers = [(name: "Content-Type", value: "application/x-www-form-urlencoded; charset=utf-8")]
    guard let credentials else { return headers }
    return AWSSigner(service: "sts", region: region, credentials: credentials).signed(
      "POST", host: base.host, path: path, query: "", headers: headers, payloadDigest: SHA256.hex(of: body),
      now: clock.nowMs(for: base.host))
  }

  private static func credentials(_ answer: CredentialAnswer, _ text: String) throws -> FetchedCredentials {
    guard let found = S3XML.elements("Credentials", in: text, limit: 1).first else {
      throw StepFailure("the answer of STS has no Credentials")
    }
    do {
      return try answer.credentials(
        S3XML.first("AccessKeyId", in: found), S3XML.first("SecretAccessKey", in: found),
        S3XML.first("SessionToken", in: found), S3XML.first("Expiration", in: found))
    } catch {
      throw StepFailure("STS: \(error.cause)")
    }
  }
}

/// Why a step gave no credentials; the step adds its name and the remedy.
struct StepFailure: Error {
  let cause: String
  init(_ cause: String) { self.cause = cause }
}
