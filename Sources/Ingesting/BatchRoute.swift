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

  /// - Throws: ``Problem``, ``DiskError``.
  func admit(_ request: HTTPRequest, name: String, _ producer: Producer?) throws -> Admission {
    try Self.requireName(name)
    if request.method == "GET" || request.method == "HEAD" { return .answer(try receipt(of: name)) }
    guard request.method == "PUT" else { throw Problem(allowing: "PUT, GET, HEAD", not: request.method) }
    try request.requireNoCoding()
    if let type = request.mediaType, let other = Self.otherTypes.first(where: { type.hasPrefix($0) }) {
      throw Problem(
        .unsupportedType, "\(other.hasSuffix("/") ? other + "*" : other) is no batch",
        advice: "send an archive, a frame stream or JSON as application/octet-stream")
    }
    let upload = try request.upload(limit: context.settings.bodyBytes, producer)
    if let refusal = context.gate.refusal(ofBytes: request.bodyBytes ?? 0) { throw refusal }
    return .receive(
      try BodyUpload(upload, named: name, context) { [context] draft in
        let digest = draft.digest()
        try context.keys.require(upload.idempotencyKey, of: producer, for: "batch \(name) \(digest)")
        if let known = try context.intake.receipt(of: name) {
          guard known.digest == digest else { throw Self.conflict(name) }
          return Self.answer(name, digest, draft.size, isNew: false)
        }
        try requireReadable(draft, name: name, producer)
        switch try context.intake.take(draft.path, as: name, digest: digest, traceParent: upload.traceParent) {
        case .taken: return Self.answer(name, digest, draft.size, isNew: true)
        case .known: return Self.answer(name, digest, draft.size, isNew: false)
        case .conflict: throw Self.conflict(name)
        }
      })
  }

  /// Refuses a batch that the worker would quarantine, and sessions that the producer may not write.
  private func requireReadable(_ draft: UploadDraft, name: String, _ producer: Producer?) throws {
    let sessions = try context.readers.pass {
      do {
        let batch = try BatchSessions(
          reading: draft.path, options: context.settings.input, limits: context.settings.limits,
          unpacker: context.decoders, cancellation: .never.or(afterMs: Self.readMs))
        return batch.readers.map(\.batch.session.description) + batch.refused.map(\.session)
      } catch let bad as BadBatch {
        throw Problem(.invalidBatch, "\(bad)".oneLine, advice: bad.advice.oneLine)
      } catch is Cancelled {
        throw Problem(.tooMany, "reading the batch takes long", retryAfterS: 10)
      }
    }
    guard let producer else { return }
    for text in sessions {
      guard let session = SessionID(text), producer.mayWrite(to: session) else {
        throw Problem(session: text, notOf: producer)
      }
    }
  }

  private func receipt(of name: String) throws -> HTTPResponse {
    guard let receipt = try context.intake.receipt(of: name) else {
      throw Problem(.notFound, "no batch of this name was taken in the last days", advice: "send it")
    }
    return .json(["batch": .string(name), "sha256": .string(receipt.digest), "takenMs": .number(receipt.atMs)])
  }

  private static func requireName(_ name: String) throws(Problem) {
    guard !name.isEmpty, name.utf8.count <= IngestSettings.nameBytes, BatchDirectory.isComplete(name),
      name.oneLine == name
    else {
      throw Problem(
        .badRequest, "no name for a batch",
        advice: "name it with at most \(IngestSettings.nameBytes) bytes: no dot in front, no .tmp or .part behind")
    }
  }

  private static func conflict(_ name: String) -> Problem {
    Problem(.conflict, "another batch has the name \(name)", advice: "name each batch once")
  }

  private static func answer(_ name: String, _ digest: String, _ bytes: Int, isNew: Bool) -> HTTPResponse {
    var response = HTTPResponse.json(
      ["batch": .string(name), "sha256": .string(digest), "bytes": .number(bytes)], status: isNew ? 201 : 200)
    response.headers.append(("Location", "/v1/batches/" + PercentEncoding.encoded(name)))
    return response
  }
}
