// PUT /v1/batches/NAME: the body is read as the worker will read it, but not decoded, before it goes into the queue.

import FileSystem
import FrameBatches
import JSON
import Serving

struct BatchRoute {
  /// Milliseconds for reading a batch.
  private static let readMs = 120_000
  /// Types of bodies that people send by mistake, and that no worker reads.
  private static let otherTypes = [
    "multipart/", "image/", "video/", "audio/", "text/html", "application/x-www-form-urlencoded",
  ]

  let context: IngestContext

  /// - Throws: ``ProblemDetails``, ``DiskError``.
  func admit(_ request: HTTPRequest, name: String, _ producer: Producer?) throws -> Admission {
    try Self.requireName(name)
    let own = DeliveredName(name, of: producer?.name)
    if request.method == "GET" || request.method == "HEAD" { return .answer(try receipt(of: own)) }
    guard request.method == "PUT" else { throw ProblemDetails(allowing: "PUT, GET, HEAD", not: request.method) }
    try request.requireNoCoding()
    if let type = request.mediaType, !request.isOfForm(from: producer),
      let other = Self.otherTypes.first(where: { type.hasPrefix($0) })
    {
      throw ProblemDetails(
        .unsupportedType, "\(other.hasSuffix("/") ? other + "*" : other) is no batch",
        advice: "send an archive, a frame stream or JSON as application/octet-stream")
    }
    let aheadMs = try request.aheadMs
    let upload = try request.upload(limit: context.settings.bodyBytes, producer)
    if let refusal = context.gate.refusal(ofBytes: request.bodyBytes ?? 0, from: producer) { throw refusal }
    return .receive(
      try BodyUpload(upload, named: DeliveredName(name, of: nil).text, context) { [context] draft in
        let digest = draft.digest()
        try context.keys.require(upload.idempotencyKey, of: producer, for: "batch \(name) \(digest)")
        if let known = try context.intake.receipt(of: own) {
          guard known.digest == digest else { throw Self.conflict(name) }
          return Self.answer(own, digest, draft.size, isNew: false)
        }
        let (session, capturesMs) = try read(draft, name: name, aheadMs: aheadMs, producer)
        let offsetMs = try aheadMs.map { try context.intake.clockOffsetMs(of: session, near: $0) } ?? 0
        let delivered = DeliveredName(name, of: producer?.name, clockOffsetMs: offsetMs)
        switch try context.intake.take(draft.path, as: delivered, digest: digest, traceParent: upload.traceParent) {
        case .taken:
          var answer = Self.answer(delivered, digest, draft.size, isNew: true)
          answer.warn(ofCaptures: capturesMs, context.settings)
          return answer
        case .known: return Self.answer(own, digest, draft.size, isNew: false)
        case .conflict: throw Self.conflict(name)
        }
      })
  }

  /// Reads a batch as the worker will, but decodes no picture. Refuses one that the worker would quarantine, and sessions that the
  /// producer may not write.
  ///
  /// - Returns: its first session, and the first and the last instant of all.
  private func read(
    _ draft: UploadDraft, name: String, aheadMs: Int64?, _ producer: Producer?
  ) throws -> (SessionID, ClosedRange<Int64>) {
    var input = context.settings.input
    // The correction that is kept differs from this one by a minute at most.
    input.clockOffsetMs = aheadMs.map { ClockOffset.next(after: 0, near: $0) } ?? 0
    input.takesAdditions = true
    let batch = try context.readers.pass(for: producer?.name ?? "") {
      do {
        return try BatchSessions(
          reading: draft.path, options: input, limits: context.settings.limits,
          unpacker: context.decoders, cancellation: .never.or(afterMs: Self.readMs))
      } catch let bad as BadBatch {
        throw ProblemDetails(.invalidBatch, "\(bad)".oneLine, advice: bad.advice.oneLine)
      } catch is Cancelled {
        throw ProblemDetails(.tooMany, "reading the batch takes long", retryAfterS: 10)
      }
    }
    let sessions = batch.sessions
    if let producer {
      for text in sessions.map(\.description) + batch.refused.map(\.session) {
        guard let session = SessionID(text), producer.mayWrite(to: session) else {
          throw ProblemDetails(session: text, notOf: producer)
        }
      }
    }
    try context.requireAny(of: sessions)
    let ends =
      batch.readers.flatMap { [$0.batch.frames[0].timeMs, $0.batch.endMs] }
      + batch.additions.compactMap(\.times).flatMap { [$0.lowerBound, $0.upperBound] }
    return (sessions[0], (ends.min() ?? 0)...(ends.max() ?? 0))
  }

  private func receipt(of name: DeliveredName) throws -> HTTPResponse {
    guard let receipt = try context.intake.receipt(of: name) else {
      throw ProblemDetails(.notFound, "no batch of this name was taken in the last days", advice: "send it")
    }
    return .json(["batch": .string(name.name), "sha256": .string(receipt.digest), "takenMs": .number(receipt.atMs)])
  }

  private static func requireName(_ name: String) throws(ProblemDetails) {
    guard !name.isEmpty, name.utf8.count <= IngestSettings.nameBytes, BatchDirectory.isComplete(name),
      name.oneLine == name
    else {
      throw ProblemDetails(
        .badRequest, "no name for a batch",
        advice: "name it with at most \(IngestSettings.nameBytes) bytes: no dot in front, no .tmp or .part behind")
    }
  }

  private static func conflict(_ name: String) -> ProblemDetails {
    ProblemDetails(.conflict, "another batch has the name \(name)", advice: "name each batch once")
  }

  private static func answer(_ name: DeliveredName, _ digest: String, _ bytes: Int, isNew: Bool) -> HTTPResponse {
    var members: [String: JSONValue] = [
      "batch": .string(name.name), "sha256": .string(digest), "bytes": .number(bytes),
    ]
    if name.clockOffsetMs != 0 { members["clockOffsetMs"] = .number(name.clockOffsetMs) }
    var response = HTTPResponse.json(members, status: isNew ? 201 : 200)
    response.headers.append(("Location", "/v1/batches/" + PercentEncoding.encoded(name.name)))
    return response
  }
}
