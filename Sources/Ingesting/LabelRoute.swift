// POST /v1/sessions/ID/labels: lines of JSON, which become a batch without pictures.

import FileSystem
import FrameBatches
import Glibc
import JSON
import Serving

struct LabelRoute: Sendable {
  /// Maximum bytes of a body: the labels of a batch, in escapes of JSON.
  private static let bodyBytes = 8 << 20

  let context: IngestContext

  /// - Throws: ``ProblemDetails``, ``DiskError``.
  func admit(_ request: HTTPRequest, _ session: SessionID, _ producer: Producer?) throws -> Admission {
    let aheadMs = try request.aheadMs
    try request.requireNoCoding()
    try context.requireAny(of: [session])
    let upload = try request.upload(limit: Self.bodyBytes, producer)
    if let refusal = context.gate.refusal(ofBytes: request.bodyBytes ?? 0, from: producer) { throw refusal }
    return .receive(
      try BodyUpload(upload, named: "labels", context) { [context] draft in
        let digest = draft.digest()
        try context.keys.require(upload.idempotencyKey, of: producer, for: "labels \(session) \(digest)")
        let labels = try Self.labels(in: draft.path)
        let offsetMs = try aheadMs.map { try context.intake.clockOffsetMs(of: session, near: $0) } ?? 0
        let name = DeliveredName(
          "\(session)@labels.\(digest.prefix(32)).tar", of: producer?.name, clockOffsetMs: offsetMs)
        let archive = try Archive.tar([
          (NativeFormat.description, NativeFormat.description(of: labels, for: session))
        ])
        let file = draft.path + ".tar"
        defer { unlink(file) }
        try DurableFile.create(file, archive)
        let outcome = try context.intake.take(
          file, as: name, digest: SHA256.hex(of: archive), traceParent: upload.traceParent)
        if outcome == .conflict {
          throw ProblemDetails(.conflict, "another batch has the name \(name.name)", advice: "send other labels")
        }
        return Self.answer(session, labels.count, digest, offsetMs, isNew: outcome == .taken)
      })
  }

  /// Reads the lines of a body. All of them have to be labels.
  ///
  /// - Throws: ``ProblemDetails``, ``DiskError``.
  private static func labels(in path: String) throws -> [Label] {
    guard let bytes = try DurableFile.contents(of: path, limit: bodyBytes) else { throw ProblemDetails.failure }
    var list = LabelList()
    list.add(lines: bytes, of: "the body")
    if let fault = list.warning {
      throw ProblemDetails(.invalidBatch, fault, advice: "send a label a line, as docs/labels.md says")
    }
    guard !list.isEmpty else {
      throw ProblemDetails(.invalidBatch, "no label in the body", advice: "send a label a line, as docs/labels.md says")
    }
    return list.labels.inOrder
  }

  private static func answer(
    _ session: SessionID, _ count: Int, _ digest: String, _ offsetMs: Int64, isNew: Bool
  ) -> HTTPResponse {
    var members: [String: JSONValue] = [
      "session": .string(session.description), "labels": .number(count), "sha256": .string(digest),
    ]
    if offsetMs != 0 { members["clockOffsetMs"] = .number(offsetMs) }
    return HTTPResponse.json(members, status: isNew ? 201 : 200)
  }
}
