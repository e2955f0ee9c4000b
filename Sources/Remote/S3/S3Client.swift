import FileSystem
import Glibc
import Sessions
import Synchronization

/// An object store with the protocol of S3.
package final class S3Client: ObjectClient {
  package let location: S3Location
  private let settings: S3Settings
  private let address: S3Address
  private let pool: CurlPool
  private let counts = Mutex<[String: Int]>([:])
  private let isOverdue: @Sendable () -> Bool
  /// Whether the store tags objects with their MD5, by the objects that this client has written; nil before any.
  private let tagsAreMD5 = Mutex<Bool?>(nil)

  /// The maximum lifetime of a presigned URL in seconds.
  package static let maximumExpiryS = AWSSigner.maximumExpiryS

  /// More than the largest list of a thousand keys.
  private static let maximumListBytes = 16 << 20

  /// - Parameter isOverdue: called during requests; when it returns true, they throw ``Cancelled``.
  /// - Throws: ``Failure``.
  package init(
    _ location: S3Location, _ settings: S3Settings, isOverdue: @escaping @Sendable () -> Bool = { false }
  ) throws {
    self.isOverdue = isOverdue
    self.location = location
    self.settings = settings
    address = S3Address(location, settings)
    pool = try CurlPool.shared()
  }

  /// The number of requests by kind: `GET`, `HEAD`, `PUT`, `COPY`, `DELETE`, `LIST`.
  package var requests: [String: Int] { counts.withLock { $0 } }

  /// The kinds of requests.
  package static let kinds = ["GET", "HEAD", "PUT", "COPY", "DELETE", "LIST"]

  package func get(_ key: String, limit: Int) throws -> StoredObject? {
    guard let (answer, bytes) = try fetch(S3Request(kind: "GET", method: .get, key: key), limit: limit) else {
      return nil
    }
    return StoredObject(bytes: bytes, tag: try tag(of: answer, "GET", key))
  }

  package func get(_ key: String, in range: Range<Int>) throws -> StoredObject? {
    let request = S3Request(
      kind: "GET", method: .get, key: key,
      headers: [("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")])
    guard let (answer, bytes) = try fetch(request, nothing: [404, 416], limit: range.count) else { return nil }
    guard answer.status == 206 else {
      throw invalidResponse("GET", key, "status \(answer.status) in place of 206, for a part of the object")
    }
    return bytes.count == range.count ? StoredObject(bytes: bytes, tag: try tag(of: answer, "GET", key)) : nil
  }

  package func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
    let file = try DownloadedFile(creating: path)
    guard let answer = try ask(S3Request(kind: "GET", method: .get, key: key), limit: limit, sink: file.write) else {
      return nil
    }
    let tag = try tag(of: answer, "GET", key)
    try file.keep(answer.received)
    return tag
  }

  package func head(_ key: String) throws -> ObjectInfo? {
    guard let answer = try ask(S3Request(kind: "HEAD", method: .head, key: key)) else { return nil }
    guard let size = answer.length, size <= ListObjectsPage.maximumObjectBytes else {
      throw invalidResponse("HEAD", key, "no Content-Length")
    }
    return ObjectInfo(key: key, size: size, tag: try tag(of: answer, "HEAD", key), ageS: answer.ageS)
  }

  package func put(
    _ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition
  ) throws -> ObjectTag? {
    let content = try RequestBody(body)
    let digest = try content.digest()
    var request = S3Request(
      kind: "PUT", method: .put, key: key,
      headers: kind.headers + [(ContentSum.header, digest)] + settings.headers.ofWrites, body: content,
      bodyDigest: digest)
    switch condition {
    case .always: break
    case .absent: request.headers.append(("If-None-Match", "*"))
    case .matching(let tag): request.headers.append(("If-Match", tag.description))
    }
    // With a condition, 404 also means that it does not hold.
    guard let answer = try ask(request, nothing: condition == .always ? [] : [404, 412]) else { return nil }
    let tag = try tag(of: answer, "PUT", key)
    if case .bytes(let bytes) = body { learn(tag, of: bytes) }
    return tag
  }

  /// Notes whether a tag is the MD5 of what was written. A store that was once seen to have other tags stays one.
  private func learn(_ tag: ObjectTag, of bytes: [UInt8]) {
    guard bytes.count <= 4_096 else { return }
    let isMD5 = ContentSum.md5(ofTag: tag.description) == MD5.hex(of: bytes)
    tagsAreMD5.withLock { if $0 != false { $0 = isMD5 } }
  }

  /// Checks the tag before the copy: few stores besides Amazon's know x-amz-copy-source-if-match.
  package func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
    guard try head(key)?.tag == tag else { return false }
    let source = "/\(location.bucket)/" + PercentEncoding.encoded(location.prefix + key, keepingSlashes: true)
    let headers =
      [("x-amz-copy-source", source), ("Content-Type", "application/octet-stream")] + settings.headers.ofCopies
    return try ask(S3Request(kind: "COPY", method: .put, key: target, headers: headers)) != nil
  }

  package func delete(_ key: String, _ tag: ObjectTag?) throws {
    let headers = tag.map { [("If-Match", $0.description)] } ?? []
    do {
      _ = try ask(S3Request(kind: "DELETE", method: .delete, key: key, headers: headers), nothing: [404, 412])
    } catch let failure as ObjectStoreError where tag != nil && failure.status == 501 {
      // The store does not know that condition.
      try delete(key, nil)
    }
  }

  package func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    var last = key
    while true {
      let page = try page(prefix, after: last)
      // Some tools create an object with the prefix as its key, as if it were a directory.
      let objects = page.filter { !$0.key.isEmpty }
      if !objects.isEmpty || page.isEmpty { return objects }
      last = page.last?.key
    }
  }

  private func page(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    var query = ["list-type": "2", "encoding-type": "url", "prefix": location.prefix + prefix]
    query["start-after"] = key.map { location.prefix + $0 }
    query["max-keys"] = settings.listCount.map(String.init)
    let request = S3Request(kind: "LIST", method: .get, key: nil, query: query)
    let reply = try fetch(request, nothing: [], limit: Self.maximumListBytes)
    return try ListObjectsPage.parse(
      reply?.bytes ?? [], subject: location.name(of: prefix), location, prefix: prefix, after: key,
      nowMs: reply?.answer.dateMs)
  }

  /// Returns a maker of URLs that let their bearer fetch an object. They expire with the credentials that sign them, if
  /// these expire sooner.
  ///
  /// - Parameter now: unix milliseconds; by default the time by the store's clock, as far as it is known.
  package func presigner(expires seconds: Int, now: Int64? = nil) throws -> S3Presigner {
    guard (1...Self.maximumExpiryS).contains(seconds) else {
      throw ObjectStoreError(
        "presign", "\(location)", "\(seconds) seconds", advice: "name 1 to \(Self.maximumExpiryS)")
    }
    guard let current = try settings.aws.credentials.current(Cancellation(isOverdue)) else {
      throw ObjectStoreError("presign", "\(location)", "there are no credentials", advice: "leave out --unsigned")
    }
    let now = now ?? settings.aws.clock.nowMs(for: address.base.host)
    let leftS = current.secondsLeft ?? current.expiresMs.map { Int(max(0, $0 - now) / 1_000) } ?? seconds
    guard leftS > 0 else {
      throw ObjectStoreError(
        "presign", "\(location)", "the credentials have expired", advice: settings.aws.credentials.remedy)
    }
    return S3Presigner(
      expiresS: min(seconds, leftS), location: location, address: address, signer: signer(current.credentials),
      now: now)
  }

  private func signer(_ credentials: AWSCredentials) -> AWSSigner {
    AWSSigner(service: "s3", region: settings.aws.region, credentials: credentials)
  }

  /// Returns the unsigned URL of an object.
  package func plainURL(for key: String) -> String { address.url(of: location.prefix + key) }
}

extension S3Client {
  /// Returns a response and its body.
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

  /// Sends a request, with retries of transient failures.
  ///
  /// - Parameter nothing: the statuses for which it returns nil. A missing bucket is always an error.
  private func ask(
    _ request: S3Request, nothing: Set<Int> = [404], limit: Int = 64 << 10,
    sink: @escaping CurlTransfer.Sink = { _, _ in }
  ) throws -> CurlTransfer? {
    let chain = settings.aws.credentials
    let payloadDigest = try request.bodyDigest ?? (chain.isUnsigned ? "" : request.body.digest())
    let subject = location.name(
      of: request.key ?? request.query["prefix"].map { String($0.dropFirst(location.prefix.count)) } ?? "")
    let cancellation = Cancellation(isOverdue)
    var deadline = TransferDeadline(afterS: settings.deadlineS)
    var attempt = 0
    // Each is mended once: what is refused again stays refused.
    var mayRenew = true
    var mayCorrectClock = true
    while true {
      let credentials = try chain.credentials(cancellation)
      counts.withLock { $0[request.kind, default: 0] += 1 }
      var copied: [UInt8] = []
      let transfer = CurlTransfer(
        sending: request.body, key: request.key ?? "", limit: limit, cancellation: cancellation,
        deadline: deadline
      ) {
        bytes, offset in
        if request.kind == "COPY" { copied += bytes }
        try sink(bytes, offset)
      }
      // The sum is that of the whole object.
      if request.kind == "GET", !request.isOfPart {
        transfer.sum = ContentSum(tagsAreMD5: tagsAreMD5.withLock { $0 } ?? false)
      }
      let failure: S3ErrorResponse
      let begunMs = MonotonicClock.milliseconds()
      do {
        try pool.perform(prepared(request, payloadDigest, credentials), transfer)
        let isGood = (200...299).contains(transfer.status)
        let text = String(decoding: isGood ? copied : transfer.errorBody, as: UTF8.self)
        // A copy may fail after the response has begun.
        if isGood && S3XML.first("Code", in: text) == nil {
          guard request.method == .put || transfer.hasEnd || transfer.status == 204 else {
            throw TransferFailure(cause: "neither Content-Length nor an end", isTransient: false)
          }
          if let fault = transfer.sum?.fault(transfer.headers) {
            throw TransferFailure(cause: fault, isTransient: true, advice: "write the object again, or remove it")
          }
          return transfer
        }
        failure = S3ErrorResponse(transfer.status, text, transfer.headers, hiding: credentials)
        if nothing.contains(failure.status), failure.code != "NoSuchBucket" { return nil }
      } catch let error as TransferFailure {
        failure = S3ErrorResponse(error)
      }
      deadline.extend(by: MonotonicClock.milliseconds() - begunMs, after: transfer.moved)
      if let credentials, failure.refusesCredentials(request.method), mayRenew {
        mayRenew = false
        chain.refused(credentials)
        if try chain.credentials(cancellation) != credentials { continue }
      }
      if credentials != nil, failure.mayBeOfClock, mayCorrectClock, let serverMs = transfer.dateMs {
        mayCorrectClock = false
        if settings.aws.clock.correct(by: serverMs, for: address.base.host) { continue }
      }
      let pauseMs = BackOff.pauseMs(failures: attempt + 1, firstMs: settings.pauseMs)
      guard failure.isTransient, attempt < settings.retries, pauseMs < deadline.remainingMs else {
        throw failure.error(request.kind, subject, isSigned: credentials != nil, remedy: chain.remedy)
      }
      usleep(UInt32(1_000 * pauseMs))
      if isOverdue() { throw Cancelled() }
      attempt += 1
    }
  }

  /// Signs a request for each attempt: a store refuses a signature that is minutes old.
  private func prepared(
    _ request: S3Request, _ payloadDigest: String, _ credentials: AWSCredentials?
  ) -> CurlRequest {
    let key = request.key.map { location.prefix + $0 }
    let query = AWSSigner.query(request.query)
    let headers =
      credentials.map {
        signer($0).signed(
          request.method.rawValue, host: address.base.host, path: address.path(of: key), query: query,
          headers: request.headers, payloadDigest: payloadDigest, now: settings.aws.clock.nowMs(for: address.base.host))
      } ?? request.headers
    return CurlRequest(
      method: request.method, url: address.url(of: key, query: query), headers: headers,
      timeoutS: settings.timeoutS)
  }

  private func tag(of answer: CurlTransfer, _ operation: String, _ key: String) throws -> ObjectTag {
    guard let tag = answer.headers["etag"].flatMap({ ObjectTag(s3: $0) }) else {
      throw invalidResponse(operation, key, "no ETag")
    }
    return tag
  }

  private func invalidResponse(_ operation: String, _ key: String, _ cause: String) -> ObjectStoreError {
    .invalidResponse(operation, location.name(of: key), cause)
  }
}

private struct S3Request {
  /// The key of ``S3Client/requests``.
  let kind: String
  let method: CurlRequest.Method
  /// Relative to the location; nil for the bucket.
  let key: String?
  var query: [String: String] = [:]
  var headers: [(name: String, value: String)] = []
  var body = RequestBody.bytes([])
  /// The SHA-256 of the body, if it is known.
  var bodyDigest: String?

  /// Whether it asks for a part of an object.
  var isOfPart: Bool { headers.contains { $0.name == "Range" } }
}
