// The JSON protocol of SQS.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-making-api-requests-json.html

import FileSystem
import Glibc
import JSON

/// Sends the requests of one queue; for several threads.
final class SQSClient: Sendable {
  let address: SQSAddress
  private let endpoint: S3Endpoint
  private let region: String
  private let settings: AWSSettings
  private let isOverdue: @Sendable () -> Bool
  private let pool: CurlPool
  private let timeoutS: Int
  private let pauseMs: Int

  private static let retries = 4
  /// A message has up to 1 MiB, and JSON writes a byte of it with six at most.
  private static let maximumReplyBytes = 8 << 20

  /// - Parameters:
  ///   - timeoutS: seconds without a byte after which an attempt fails. The worker's loop waits for some requests.
  ///   - pauseMs: the pause before the first retry.
  ///   - isOverdue: called during requests; when it returns true, they throw ``Cancelled``.
  /// - Throws: ``Failure``.
  init(
    _ address: SQSAddress, _ settings: AWSSettings, timeoutS: Int = 10, pauseMs: Int = 100,
    isOverdue: @escaping @Sendable () -> Bool = { false }
  ) throws {
    self.address = address
    self.settings = settings
    (self.timeoutS, self.pauseMs) = (timeoutS, pauseMs)
    self.isOverdue = isOverdue
    endpoint = address.endpoint ?? settings.endpoints.base(of: "sqs")
    region = address.region ?? settings.region
    pool = try CurlPool.shared()
  }

  func unexpectedReply(to action: String) -> SQSError { .unexpectedReply(address.description, action) }

  /// Performs an action, with retries of transient failures. After a failure it is unknown whether it has been performed.
  ///
  /// - Parameter waitS: seconds for which the server may wait before it answers.
  /// - Throws: ``SQSError``, ``Failure``, ``Cancelled``.
  func perform(_ action: String, _ members: [String: JSONValue], waitS: Int = 0) throws -> [String: JSONValue] {
    let body = JSONValue.object(members).bytes()
    let digest = SHA256.hex(of: body)
    let chain = settings.credentials
    let deadline = TransferDeadline(afterS: 2 * timeoutS + waitS)
    // Each is mended once: what is refused again stays refused.
    var (attempt, mayRenew, mayCorrectClock) = (0, true, true)
    while true {
      let credentials = try chain.credentials(Cancellation(isOverdue))
      let (transfer, reply) = receiver(of: body, until: deadline)
      let failure: SQSErrorResponse
      do {
        try pool.perform(request(action, digest, credentials, waitS), transfer)
        if (200...299).contains(transfer.status) { return try parsed(reply.bytes, action, transfer) }
        failure = SQSErrorResponse(transfer.status, transfer.errorBody, hiding: credentials)
      } catch let error as TransferFailure {
        failure = SQSErrorResponse(error)
      }
      if let credentials, failure.isOfCredentials, mayRenew {
        mayRenew = false
        chain.refused(credentials)
        if try chain.credentials(Cancellation(isOverdue)) != credentials { continue }
      }
      if credentials != nil, failure.isOfSignature, mayCorrectClock, let serverMs = transfer.dateMs {
        mayCorrectClock = false
        if settings.clock.correct(by: serverMs, for: endpoint.host) { continue }
      }
      let pauseMs = BackOff.pauseMs(failures: attempt + 1, firstMs: self.pauseMs)
      guard failure.isTransient, attempt < Self.retries, pauseMs < deadline.remainingMs else {
        throw failure.error(action, address.description, remedy: chain.remedy)
      }
      attempt += 1
      usleep(UInt32(1_000 * pauseMs))
      if isOverdue() { throw Cancelled() }
    }
  }

  /// The bytes of a reply.
  private final class Reply { var bytes: [UInt8] = [] }

  private func receiver(of body: [UInt8], until deadline: TransferDeadline) -> (CurlTransfer, Reply) {
    let reply = Reply()
    let transfer = CurlTransfer(
      sending: .bytes(body), key: "the reply of \(address)", limit: Self.maximumReplyBytes,
      cancellation: Cancellation(isOverdue), deadline: deadline
    ) { piece, offset in
      if offset == 0 { reply.bytes.removeAll(keepingCapacity: true) }
      reply.bytes += piece
    }
    return (transfer, reply)
  }

  private func request(
    _ action: String, _ digest: String, _ credentials: AWSCredentials?, _ waitS: Int
  ) -> CurlRequest {
    let path = endpoint.path.isEmpty ? "/" : endpoint.path
    let headers = [("Content-Type", "application/x-amz-json-1.0"), ("X-Amz-Target", "AmazonSQS.\(action)")]
    let signed = credentials.map { credentials in
      AWSSigner(service: "sqs", region: region, credentials: credentials).signed(
        "POST", host: endpoint.host, path: path, query: "", headers: headers, payloadDigest: digest,
        now: settings.clock.nowMs(for: endpoint.host))
    }
    return CurlRequest(
      method: .post, url: "\(endpoint.scheme)://\(endpoint.host)\(path)", headers: signed ?? headers,
      timeoutS: timeoutS + waitS)
  }

  private func parsed(_ bytes: [UInt8], _ action: String, _ transfer: CurlTransfer) throws -> [String: JSONValue] {
    // Some actions have no answer.
    if bytes.isEmpty, transfer.hasEnd || transfer.status == 204 { return [:] }
    guard let members = (try? JSONParser.parse(bytes))?.object else { throw unexpectedReply(to: action) }
    return members
  }
}
