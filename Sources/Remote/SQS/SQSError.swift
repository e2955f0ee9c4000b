import FileSystem
import JSON

/// SQS was not reachable, or refused a request: a failure of the environment.
struct SQSError: ClassifiedError {
  var kind: Failure.Kind { .environment }
  let queue: String
  /// The action: `ReceiveMessage`.
  let operation: String
  /// The HTTP status; nil without an answer.
  let status: Int?
  /// The error code: `QueueDoesNotExist`.
  let code: String?
  let cause: String
  let advice: String

  static func unexpectedReply(_ queue: String, _ operation: String) -> SQSError {
    SQSError(
      queue: queue, operation: operation, status: nil, code: nil, cause: "an unknown reply",
      advice: "check that the address is of SQS, or of a server that speaks its JSON protocol")
  }

  var description: String {
    let answer = [status.map { "status \($0)" }, code].compactMap(\.self).joined(separator: " ")
    return "\(operation), in the queue \(queue): \(answer.isEmpty ? "" : answer + ": ")\(cause); \(advice)"
  }
}

/// The answer of SQS that a request failed.
struct SQSErrorResponse {
  let status: Int
  let code: String?
  let cause: String
  /// Whether a retry may help.
  let isTransient: Bool

  private static let transientCodes: Set = [
    "InternalError", "InternalFailure", "ServiceUnavailable", "RequestThrottled", "ThrottlingException", "Throttling",
    "KmsThrottled", "RequestTimeout",
  ]
  private static let credentialCodes: Set = [
    "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidToken",
    "InvalidAccessKeyId", "InvalidSecurity", "AuthFailure",
  ]
  private static let signatureCodes: Set = [
    "SignatureDoesNotMatch", "InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed",
  ]

  /// - Parameter credentials: those of the request. A text with one of their secrets is left out.
  init(_ status: Int, _ body: [UInt8], hiding credentials: AWSCredentials?) {
    func said(_ text: String?) -> String? {
      text.flatMap { credentials?.areRepeated(in: $0) == true ? nil : $0 }
    }
    let members = (try? JSONParser.parse(body))?.object
    // `com.amazonaws.sqs#QueueDoesNotExist`
    let type = said(members?["__type"]?.string).map { String($0.split(separator: "#").last ?? "") }
    self.status = status
    code = type.flatMap { $0.isPlain(and: ".-_") && (1...100).contains($0.utf8.count) ? $0 : nil }
    let text = said((members?["message"] ?? members?["Message"])?.string)
    cause = text?.shortened(to: 500).oneLine ?? "the queue gave no reason"
    isTransient = [408, 429, 500, 502, 503, 504].contains(status) || code.map(Self.transientCodes.contains) ?? false
  }

  init(_ failure: TransferFailure) {
    (status, code, cause, isTransient) = (0, nil, failure.cause, failure.isTransient)
  }

  /// Whether new credentials may help.
  var isOfCredentials: Bool { code.map(Self.credentialCodes.contains) ?? false }
  /// Whether the time of the signature may be wrong.
  var isOfSignature: Bool { code.map(Self.signatureCodes.contains) ?? false }

  /// - Parameter remedy: of the credentials.
  func error(_ operation: String, _ queue: String, remedy: String) -> SQSError {
    SQSError(
      queue: queue, operation: operation, status: status == 0 ? nil : status, code: code, cause: cause,
      advice: advice(operation, remedy))
  }

  private func advice(_ operation: String, _ remedy: String) -> String {
    if status == 0 { return "check the queue's address and the network" }
    if isOfCredentials || status == 401 { return remedy }
    if isOfSignature { return "check the secret key, AWS_REGION and this machine's clock" }
    if let code, code.hasSuffix("QueueDoesNotExist") || code.hasSuffix("NonExistentQueue") {
      return "create the queue, or check its name, its account and AWS_REGION"
    }
    if code?.hasPrefix("Kms") == true { return "allow kms:Decrypt and kms:GenerateDataKey on the queue's key" }
    if status == 403 || code?.hasPrefix("AccessDenied") == true {
      return "allow sqs:\(Self.permission(operation)) on the queue"
    }
    return isTransient ? "run it again when the queue has recovered" : "see what the queue says of it"
  }

  /// The permission of a batch action is that of the single one.
  private static func permission(_ operation: String) -> String {
    operation.hasSuffix("Batch") ? String(operation.dropLast("Batch".count)) : operation
  }
}
