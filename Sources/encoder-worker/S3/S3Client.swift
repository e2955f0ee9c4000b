// An object store behind S3's protocol: what is asked, what an answer means, what is tried again. libcurl sends.

import FileSystem
import Glibc
import SegmentEncoder
import Sessions
import Synchronization

final class S3Client: ObjectClient {
  let location: S3Location
  private let settings: S3Settings
  private let address: S3Address
  /// Signs requests; nil without credentials.
  private let signer: S3Signer?
  private let pool: CurlPool
  private let counts = Mutex<[String: Int]>([:])
  private let isOverdue: @Sendable () -> Bool

  /// More than a list of a thousand keys can have.
  private static let maximumListBytes = 16 << 20

  /// - Parameter isOverdue: asked all the while; when it says so, what is being asked ends with ``Cancelled``.
  /// - Throws: ``MissingLibrary``.
  init(
    _ location: S3Location, _ settings: S3Settings, isOverdue: @escaping @Sendable () -> Bool = { false }
  ) throws {
    self.isOverdue = isOverdue
    self.location = location
    self.settings = settings
    address = S3Address(location, settings)
    signer = settings.credentials.map { [address] in
      S3Signer(address: address, region: settings.region, credentials: $0)
    }
    pool = try CurlPool.shared()
  }

  /// How many requests went out, by their kinds: `GET`, `HEAD`, `PUT`, `COPY`, `DELETE`, `LIST`.
  var requests: [String: Int] { counts.withLock { $0 } }

  func get(_ key: String, limit: Int) throws -> StoredObject? {
    guard let (answer, bytes) = try fetch(S3Request("GET", .get, key), limit: limit) else { return nil }
    return StoredObject(bytes: bytes, tag: try tag(of: answer, "GET", key))
  }

  func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
    let file = try DownloadedFile(creating: path)
    guard let answer = try ask(S3Request("GET", .get, key), limit: limit, sink: file.write) else { return nil }
    let tag = try tag(of: answer, "GET", key)
    try file.keep(answer.received)
    return tag
  }

  func head(_ key: String) throws -> ObjectInfo? {
    guard let answer = try ask(S3Request("HEAD", .head, key)) else { return nil }
    guard let size = answer.length else { throw malformed("HEAD", key, "no Content-Length") }
    return ObjectInfo(key: key, size: size, tag: try tag(of: answer, "HEAD", key), ageS: answer.ageS)
  }

  func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws -> ObjectTag? {
    var request = S3Request("PUT", .put, key)
    request.body = try RequestBody(body)
    request.headers = kind.headers
    switch condition {
    case .always: break
    case .absent: request.headers.append(("If-None-Match", "*"))
    case .matching(let tag): request.headers.append(("If-Match", tag.description))
    }
    // One that is to be replaced and is not there: the condition does not hold.
    return try ask(request, nothing: condition == .always ? [] : [404, 412]).map { try tag(of: $0, "PUT", key) }
  }

  /// Checks the tag before the copy: few stores besides Amazon's know x-amz-copy-source-if-match.
  func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
    guard try head(key)?.tag == tag else { return false }
    var request = S3Request("COPY", .put, target)
    let source = "/\(location.bucket)/" + PercentEncoding.encoded(location.prefix + key, keepingSlashes: true)
    request.headers = [("x-amz-copy-source", source), ("Content-Type", "application/octet-stream")]
    return try ask(request, limit: 64 << 10) != nil
  }

  func delete(_ key: String, _ tag: ObjectTag?) throws {
    var request = S3Request("DELETE", .delete, key)
    request.headers = tag.map { [("If-Match", $0.description)] } ?? []
    do {
      _ = try ask(request, nothing: [404, 412])
    } catch let failure as ObjectStoreError where tag != nil && failure.status == 501 {
      // It does not know that condition.
      try delete(key, nil)
    }
  }

  func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    var last = key
    while true {
      let page = try ListObjectsPage(listed(prefix, after: last), location)
      if let last, let first = page.objects.first, !last.utf8.lexicographicallyPrecedes(first.key.utf8) {
        throw malformed("LIST", prefix, "what comes after \(last) begins with \(first.key)")
      }
      // The prefix itself, which some tools put there as if it were a directory, is no object of ours.
      let objects = page.objects.filter { !$0.key.isEmpty }
      if !objects.isEmpty || page.objects.isEmpty { return objects }
      last = page.objects.last?.key
    }
  }

  private func listed(_ prefix: String, after key: String?) throws -> ListObjectsPage.Text {
    var request = S3Request("LIST", .get, nil)
    request.query = ["list-type": "2", "encoding-type": "url", "prefix": location.prefix + prefix]
    request.query["start-after"] = key.map { location.prefix + $0 }
    request.query["max-keys"] = settings.listCount.map(String.init)
    let bytes = try fetch(request, nothing: [], limit: Self.maximumListBytes)?.bytes ?? []
    return ListObjectsPage.Text(bytes: bytes, subject: location.name(of: prefix))
  }

  /// An address that lets its bearer fetch an object, for some seconds from `now`, in unix milliseconds, on.
  func presignedURL(for key: String, expires seconds: Int, now: Int64) throws -> String {
    guard let signer else {
      throw ObjectStoreError(
        "presign", location.name(of: key), "there are no credentials",
        advice: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    }
    guard (1...S3Signer.maximumExpiryS).contains(seconds) else {
      throw ObjectStoreError(
        "presign", location.name(of: key), "\(seconds) seconds", advice: "name 1 to \(S3Signer.maximumExpiryS)")
    }
    return signer.presignedURL(of: location.prefix + key, expiresS: seconds, now: now)
  }

  /// Where an object is, for clients that may fetch it without a signature.
  func plainURL(for key: String) -> String { address.url(of: location.prefix + key) }
}

extension S3Client {
  /// An answer and its bytes, in memory.
  private func fetch(
    _ request: S3Request, nothing: Set<Int> = [404], limit: Int
  ) throws -> (answer: CurlTransfer, bytes: [UInt8])? {
    var bytes: [UInt8] = []
    let answer = try ask(request, nothing: nothing, limit: limit) { piece, offset in
      if offset == 0 { bytes.removeAll(keepingCapacity: true) }
      bytes += piece
    }
    return answer.map { ($0, Array(bytes.prefix($0.received))) }
  }

  /// Asks until there is an answer that counts.
  ///
  /// - Parameter nothing: statuses that say that there is nothing; 404 only where it is the object that is missing.
  /// - Returns: nil where there is nothing.
  fileprivate func ask(
    _ request: S3Request, nothing: Set<Int> = [404], limit: Int = 64 << 10,
    sink: @escaping CurlTransfer.Sink = { _, _ in }
  ) throws -> CurlTransfer? {
    let payloadDigest = try signer == nil ? "" : request.body.digest()
    let subject = location.name(
      of: request.key ?? request.query["prefix"].map { String($0.dropFirst(location.prefix.count)) } ?? "")
    var attempt = 0
    while true {
      counts.withLock { $0[request.kind, default: 0] += 1 }
      var copied: [UInt8] = []
      let transfer = CurlTransfer(sending: request.body, key: request.key ?? "", limit: limit, isOverdue: isOverdue) {
        bytes, offset in
        if request.kind == "COPY" { copied += bytes }
        try sink(bytes, offset)
      }
      let refusal: S3ErrorResponse
      do {
        try pool.perform(prepared(request, payloadDigest), transfer)
        let isGood = (200...299).contains(transfer.status)
        let text = String(decoding: isGood ? copied : transfer.refusal, as: UTF8.self)
        // A copy may fail after the answer has begun.
        if isGood && S3XML.first("Code", in: text) == nil {
          guard request.method == .put || transfer.hasEnd || transfer.status == 204 else {
            throw TransferFailure(cause: "neither Content-Length nor an end", mayPass: false)
          }
          return transfer
        }
        refusal = S3ErrorResponse(transfer.status, text, transfer.headers)
        if nothing.contains(refusal.status), refusal.code != "NoSuchBucket" { return nil }
      } catch let failure as TransferFailure {
        refusal = S3ErrorResponse(failure)
      }
      guard refusal.mayPass, attempt < settings.retries else {
        throw refusal.error(request.kind, subject, isSigned: settings.credentials != nil)
      }
      pause(attempt)
      if isOverdue() { throw Cancelled() }
      attempt += 1
    }
  }

  /// Grows, and is never that of another client which failed at the same time.
  private func pause(_ attempt: Int) {
    let most = settings.pauseMs << attempt
    usleep(UInt32(1_000 * Int.random(in: most / 2...max(1, most))))
  }

  /// The request as it goes out, signed at this instant: a store refuses a signature that is minutes old.
  private func prepared(_ request: S3Request, _ payloadDigest: String) -> CurlRequest {
    let key = request.key.map { location.prefix + $0 }
    let query = S3Address.query(request.query)
    let headers =
      signer?.signed(
        request.method.rawValue, key, query: query, headers: request.headers, payloadDigest: payloadDigest,
        now: WallClock.nowMs) ?? request.headers
    return CurlRequest(
      method: request.method, url: address.url(of: key, query: query), headers: headers, body: request.body,
      timeoutS: settings.timeoutS)
  }

  fileprivate func tag(of answer: CurlTransfer, _ operation: String, _ key: String) throws -> ObjectTag {
    guard let tag = answer.headers["etag"].flatMap({ ObjectTag(s3: $0) }) else {
      throw malformed(operation, key, "no ETag")
    }
    return tag
  }

  fileprivate func malformed(_ operation: String, _ key: String, _ cause: String) -> ObjectStoreError {
    ObjectStoreError(
      operation, location.name(of: key), "an answer that S3 does not give: \(cause)",
      advice: "check that the endpoint is an S3 store")
  }
}

/// A request to the store.
private struct S3Request {
  /// As requests are counted.
  let kind: String
  let method: CurlRequest.Method
  /// Within the location; none for the bucket.
  let key: String?
  var query: [String: String] = [:]
  var headers: [(name: String, value: String)] = []
  var body = RequestBody.none

  init(_ kind: String, _ method: CurlRequest.Method, _ key: String?) {
    (self.kind, self.method, self.key) = (kind, method, key)
  }
}
