// The body of a request becomes a synced file, whatever it is then used for. Its limits are checked while it comes.

import Encoding
import FileSystem
import FrameBatches
import Serving

/// A body on its way, and the answer to it.
final class BodyUpload: BodyReceiver {
  /// A request whose headers are fine.
  struct Request {
    let path: String
    let producer: Producer?
    /// The most bytes of the body.
    let limit: Int
    /// The SHA-256 that the client states.
    let digest: String?
    let idempotencyKey: String?
    /// The step of the sender's trace; nil also for a header that is none.
    let traceParent: TraceParent?
  }

  /// Takes the file of a body; throws ``ProblemDetails``, or a failure of the environment.
  typealias Finish = (UploadDraft) throws -> HTTPResponse

  private let request: Request
  private let context: IngestContext
  private let draft: UploadDraft
  private let conclude: Finish
  private var hasEnded = false
  /// The size at which the body asks for room again.
  private var checkedAtBytes = 0

  /// Bytes after which a body asks for room again.
  private static let roomBytes = 1 << 20

  /// - Parameter name: of the file.
  /// - Throws: ``ProblemDetails``, ``DiskError``.
  init(_ request: Request, named name: String, _ context: IngestContext, _ conclude: @escaping Finish) throws {
    guard context.meter.beginBody(of: request.producer, limit: context.settings.bodies) else {
      throw ProblemDetails(.tooMany, "\(context.settings.bodies) bodies are coming already", retryAfterS: 2)
    }
    do {
      draft = try UploadDraft(name, in: context.intake.drafts)
    } catch {
      context.meter.endBody(of: request.producer)
      throw error
    }
    (self.request, self.context, self.conclude) = (request, context, conclude)
  }

  deinit { end() }

  func take(_ bytes: UnsafeRawBufferPointer) -> HTTPResponse? {
    context.meter.addBytes(bytes.count)
    do {
      guard draft.size + bytes.count <= request.limit else { throw ProblemDetails(bodyLimit: request.limit) }
      if draft.size + bytes.count >= checkedAtBytes {
        try context.gate.requireRoom(for: bytes.count)
        checkedAtBytes = draft.size + Self.roomBytes
      }
      try draft.write(bytes)
      return nil
    } catch {
      return refuse(error)
    }
  }

  func finish() -> HTTPResponse {
    do {
      let digest = draft.digest()
      guard request.digest == nil || request.digest == digest else {
        throw ProblemDetails(.wrongDigest, "the SHA-256 of the body is \(digest)", advice: "send the body again")
      }
      if let trace = request.traceParent, !draft.keep(trace), context.intake.keepsTracesInFiles {
        context.noteLostTrace(in: draft.path)
      }
      try draft.sync()
      let response = try conclude(draft)
      end()
      context.record(response, to: request.path, of: request.producer)
      return response
    } catch {
      return refuse(error)
    }
  }

  func abandon() { end() }

  private func refuse(_ error: any Error) -> HTTPResponse {
    end()
    let problem = context.problem(error)
    context.record(problem.response, to: request.path, of: request.producer, problem)
    return problem.response
  }

  private func end() {
    guard !hasEnded else { return }
    hasEnded = true
    draft.discard()
    context.meter.endBody(of: request.producer)
  }
}

extension ProblemDetails {
  init(bodyLimit limit: Int) {
    self.init(.tooLarge, "more than the limit of \(limit) bytes", advice: "split the batch, or see --limit")
  }
}
