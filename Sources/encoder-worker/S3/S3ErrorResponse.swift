import SegmentEncoder
import Sessions

/// Why a request did not do what it was to do, and what can be done about it.
struct S3ErrorResponse {
  /// HTTP's; 0 where there was no answer.
  let status: Int
  /// S3's own word.
  let code: String?
  let cause: String
  /// Whether it is worth another try.
  let mayPass: Bool
  /// Where the bucket is, when the store says so.
  private let region: String?

  /// - Parameter text: the answer's body.
  init(_ status: Int, _ text: String, _ headers: [String: String]) {
    self.status = status
    code = S3XML.first("Code", in: text)
    cause = S3XML.first("Message", in: text) ?? "the store gave no reason"
    region = headers["x-amz-bucket-region"]
    let passing = ["ConditionalRequestConflict", "OperationAborted", "RequestTimeout", "InternalError", "SlowDown"]
    mayPass = [408, 429, 500, 502, 503, 504].contains(status) || code.map(passing.contains) ?? false
  }

  init(_ failure: TransferFailure) {
    (status, code, region) = (0, nil, nil)
    cause = failure.cause
    mayPass = failure.mayPass
  }

  func error(_ operation: String, _ subject: String, isSigned: Bool) -> ObjectStoreError {
    ObjectStoreError(
      operation, subject, status: status == 0 ? nil : status, code: code, cause, advice: advice(isSigned))
  }

  private func advice(_ isSigned: Bool) -> String {
    switch (status, code) {
    case (0, _): "check the endpoint and the network"
    case (_, "RequestTimeTooSkewed"): "set this machine's clock"
    case (_, "InvalidAccessKeyId"), (_, "SignatureDoesNotMatch"), (_, "ExpiredToken"), (_, "InvalidToken"):
      "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
    case (_, "NoSuchBucket"): "make the bucket, or name another one"
    case (300...399, _), (_, "AuthorizationHeaderMalformed"):
      "set AWS_REGION to the bucket's\(region.map { ", \($0)" } ?? "")"
    case (401, _), (403, _):
      isSigned ? "allow it for this key in the bucket's policy" : "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    default: mayPass ? "run it again when the store has recovered" : "see what the store says of it"
    }
  }
}
