import FileSystem
import Sessions

/// The error of a request, with the remedy.
struct S3ErrorResponse {
  /// The HTTP status; 0 without a response.
  let status: Int
  /// The error code of S3.
  let code: String?
  let cause: String
  /// Whether a retry may help.
  let isTransient: Bool
  /// The bucket's region, if the store names it.
  private let region: String?
  /// The remedy, where the failure itself knows it.
  private var remedyOfFailure: String?

  private static let maximumCauseBytes = 300

  /// - Parameters:
  ///   - text: the response's body. Some gateways repeat the headers of the request in it.
  ///   - credentials: those of the request. A text with one of their secrets is left out.
  init(_ status: Int, _ text: String, _ headers: [String: String], hiding credentials: AWSCredentials?) {
    func said(_ text: String?) -> String? {
      text.flatMap { credentials?.areRepeated(in: $0) == true ? nil : $0 }
    }
    func word(_ text: String?) -> String? {
      said(text).flatMap { $0.isPlain(and: ".-_") && (1...64).contains($0.utf8.count) ? $0 : nil }
    }
    self.status = status
    code = word(S3XML.first("Code", in: text))
    cause =
      said(S3XML.first("Message", in: text))?.shortened(to: Self.maximumCauseBytes).oneLine
      ?? "the store gave no reason"
    region = word(headers["x-amz-bucket-region"])
    let transient = ["ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "InternalError", "SlowDown"]
    isTransient = [408, 429, 500, 502, 503, 504].contains(status) || code.map(transient.contains) ?? false
  }

  init(_ failure: TransferFailure) {
    (status, code, region) = (0, nil, nil)
    cause = failure.cause
    isTransient = failure.isTransient
    remedyOfFailure = failure.advice
  }

  /// Whether new credentials may help. The answer to a HEAD has no code, and Amazon's status for it is 400.
  func refusesCredentials(_ method: CurlRequest.Method) -> Bool {
    let codes: Set = [
      "ExpiredToken", "ExpiredTokenException", "InvalidToken", "InvalidTokenId", "InvalidClientTokenId",
      "InvalidAccessKeyId", "TokenRefreshRequired",
    ]
    return code.map(codes.contains) ?? (method == .head && status == 400)
  }

  /// Whether a wrong clock may be the cause. The answer to a HEAD has no code.
  var mayBeOfClock: Bool { status == 403 && code != "AccessDenied" }

  /// - Parameter remedy: when the store refuses the credentials.
  func error(_ operation: String, _ subject: String, isSigned: Bool, remedy: String) -> ObjectStoreError {
    ObjectStoreError(
      operation, subject, status: status == 0 ? nil : status, code: code, cause, advice: advice(isSigned, remedy))
  }

  private func advice(_ isSigned: Bool, _ remedy: String) -> String {
    switch (status, code) {
    case (0, _): remedyOfFailure ?? "check the endpoint and the network"
    case (_, "RequestTimeTooSkewed"): "set this machine's clock"
    case (_, "InvalidAccessKeyId"), (_, "SignatureDoesNotMatch"), (_, "ExpiredToken"), (_, "InvalidToken"):
      remedy
    case (_, "NoSuchBucket"): "create the bucket, or name another one"
    case (300...399, _), (_, "AuthorizationHeaderMalformed"):
      "set AWS_REGION to the bucket's\(region.map { ", \($0)" } ?? "")"
    case (401, _), (403, _): isSigned ? "allow it for this identity in the bucket's policy" : remedy
    default: isTransient ? "run it again when the store has recovered" : "see what the store says of it"
    }
  }
}
