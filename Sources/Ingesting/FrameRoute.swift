// POST /v1/sessions/ID/frames?t=<unix ms>: one picture; and POST /v1/sessions/ID/end.

import Batching
import FileSystem
import FrameBatches
import Glibc
import JSON
import Serving
import Sessions

struct FrameRoute: Sendable {
  private static let types: Set = ["image/png", "image/jpeg", "image/webp", "application/octet-stream"]

  let context: IngestContext
  /// nil if pictures cannot be kept.
  let pictures: PictureIntake?
  /// Brings the batches of pictures to their queue; nil if they are in it.
  let forward: (@Sendable () throws -> Void)?
  /// Ends a session once all its batches are finished.
  let endSession: @Sendable (SessionID) throws -> EndState

  /// - Throws: ``ProblemDetails``, ``DiskError``.
  func admit(_ request: HTTPRequest, _ session: SessionID, _ producer: Producer?) throws -> Admission {
    guard let pictures else {
      throw ProblemDetails(
        .notConfigured, "with --queue and --store, pictures need a directory that outlives the worker",
        advice: "set --ingest-state DIR, or send batches")
    }
    guard let text = request.argument("t"), let timeMs = Int64(text), "\(timeMs)" == text else {
      throw ProblemDetails(.badRequest, "t is no capture in unix milliseconds", advice: "send ?t=1767859512340")
    }
    guard HTTPRequest.sendingTimes.contains(timeMs) else {
      throw ProblemDetails(.badRequest, "t is no capture in unix milliseconds", advice: "send ?t=1767859512340")
    }
    let aheadMs = try request.aheadMs
    // A capture that may be corrected is checked when it is.
    if aheadMs == nil, let fault = context.settings.limits.fault(ofInstant: timeMs) {
      throw ProblemDetails(.badRequest, fault, advice: "send t in unix milliseconds")
    }
    try request.requireNoCoding()
    guard let type = request.mediaType, Self.types.contains(type) || request.isOfForm(from: producer) else {
      let fault =
        request.mediaType.map { "the Content-Type \($0.shortened(to: 80).oneLine) is no picture's" }
        ?? "the header Content-Type is missing"
      throw ProblemDetails(
        .unsupportedType, fault,
        advice: "send the bytes of one PNG, JPEG or WebP file as \(Self.types.sorted().joined(separator: ", "))")
    }
    try context.requireAny(of: [session])
    let upload = try request.upload(limit: context.settings.limits.fileBytes, producer)
    if let refusal = context.gate.refusal(ofBytes: request.bodyBytes ?? 0, from: producer) { throw refusal }
    return .receive(
      try BodyUpload(upload, named: "picture", context) { [context] draft in
        let digest = draft.digest()
        try context.keys.require(upload.idempotencyKey, of: producer, for: "picture \(session) \(timeMs) \(digest)")
        let kind = try context.readers.pass(for: producer?.name ?? "") {
          try Self.kind(of: draft.path, context.settings.limits)
        }
        let taken = try pictures.add(
          draft, to: session, at: timeMs, aheadMs: aheadMs, kind: kind, digest: digest, from: producer)
        if taken.outcome == .conflict {
          throw ProblemDetails(
            .conflict, "another picture of \(session) has the capture \(taken.timeMs)",
            advice: "send one picture an instant")
        }
        if taken.outcome == .taken { context.meter.addFrame() }
        return answer(session, timeMs, taken, digest)
      })
  }

  private func answer(
    _ session: SessionID, _ deviceMs: Int64, _ taken: (outcome: IntakeOutcome, timeMs: Int64), _ digest: String
  ) -> HTTPResponse {
    var members: [String: JSONValue] = [
      "session": .string(session.description), "t": .number(taken.timeMs), "sha256": .string(digest),
    ]
    if taken.timeMs != deviceMs { members["clockOffsetMs"] = .number(taken.timeMs - deviceMs) }
    var response = HTTPResponse.json(members, status: taken.outcome == .taken ? 201 : 200)
    response.warn(ofCaptures: taken.timeMs...taken.timeMs, context.settings)
    return response
  }

  /// Ends a session, after all its pictures are in batches.
  ///
  /// - Throws: ``ProblemDetails``, or a failure of the environment.
  func end(_ session: SessionID, _ request: HTTPRequest, _ producer: Producer?) throws -> HTTPResponse {
    if let refusal = context.gate.stopRefusal { throw refusal }
    try context.requireAny(of: [session])
    try pictures?.close(session)
    try forward?()
    let state = try endSession(session)
    let response = HTTPResponse.json(
      [
        "session": .string(session.description), "state": .string(state.rawValue), "ended": .bool(state == .ended),
      ], status: 202)
    context.record(response, to: request.path, of: producer)
    return response
  }

  /// Returns the ending for the name of a picture's file.
  ///
  /// - Throws: ``ProblemDetails`` for a file that is no whole picture within the limits.
  private static func kind(of path: String, _ limits: Limits) throws -> String {
    guard let bytes = try DurableFile.contents(of: path, limit: limits.fileBytes) else { throw ProblemDetails.failure }
    func bad(_ cause: String, _ advice: String) -> ProblemDetails {
      ProblemDetails(.invalidBatch, cause, advice: advice)
    }
    guard let kind = ImageKind(of: bytes) else {
      let fault = bytes.isEmpty ? "an empty body" : FileKind(of: bytes)?.fault ?? FileKind.unknown
      throw bad(fault, "send the bytes of one PNG, JPEG or WebP file")
    }
    if let fault = CompleteImage.fault(in: bytes) { throw bad(fault, "send the whole file") }
    if let excess = kind.size(of: bytes)?.excess(of: limits) { throw bad(excess.fault, excess.text) }
    return kind == .jpegXL ? "jxl" : kind.name.lowercased()
  }
}
