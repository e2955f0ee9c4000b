// Answers an upload of pictures with their segment: UploadServer PORT
//
//   curl -F frame=@1767859512340.jpg -F frame=@1767859513340.jpg http://127.0.0.1:PORT/sessions/lobby/segment -o segment.mp4
import Foundation
import Hummingbird
import SegmentEncoder

/// Uploads are decoded in processes that can do nothing else.
func sandboxedOptions() throws -> BatchEncoder.Options {
  var options = BatchEncoder.Options()
  options.decoders = try DecoderForkServer(limits: options.limits)
  return options
}

/// Reads the pictures of a form: parts `frame` whose file names are `<unix ms>.jpg`.
func frames(in request: Request) async throws -> [CapturedFrame] {
  let type = request.headers[.contentType].flatMap { MediaType(from: $0) }
  guard let type, type.isType(.multipartForm), let boundary = type.parameter, boundary.name == "boundary" else {
    throw HTTPError(.unsupportedMediaType, message: "send multipart/form-data")
  }
  // More bytes are answered with 413.
  let body = try await request.body.collect(upTo: FormPart.maximumBytes)
  let parts = try FormPart.all(of: [UInt8](body.readableBytesView), boundary: boundary.value)
  let frames = try parts.map { part in
    guard part.name == "frame", let timeMs = Int64(part.fileName.prefix { $0 != "." }) else {
      throw HTTPError(.badRequest, message: "'\(part.name)', file '\(part.fileName)': send frame, file <unix ms>.jpg")
    }
    return CapturedFrame(image: part.bytes, timeMs: timeMs, source: part.fileName)
  }
  return frames.sorted { $0.timeMs < $1.timeMs }
}

/// Encodes pictures of one segment, on threads of the library.
///
/// - Throws: an error with status 422 for pictures that cannot be used, 503 for a failure of this machine.
func encode(_ frames: [CapturedFrame], of session: SessionID, _ options: BatchEncoder.Options) async throws -> Segment {
  let stream = AsyncStream { continuation in
    for frame in frames { continuation.yield(frame) }
    continuation.finish()
  }
  var segments: [Segment] = []
  do {
    for try await segment in stream.segments(of: session, options) { segments.append(segment) }
  } catch FrameEncoderError.environment(let error) {
    throw HTTPError(.serviceUnavailable, message: "\(error)")
  } catch let error as FrameEncoderError {
    throw HTTPError(.unprocessableContent, message: "\(error)")
  }
  if let refused = segments.flatMap(\.refused).first {
    throw HTTPError(.unprocessableContent, message: "\(refused.source): \(refused.reason)")
  }
  guard segments.count == 1, let segment = segments.first else {
    throw HTTPError(.unprocessableContent, message: "\(segments.count) segments: send 5 seconds at most")
  }
  return segment
}

// First, because it forks: the server has threads.
let options = try sandboxedOptions()
let router = Router()
router.post("sessions/:session/segment") { [options] request, context in
  guard let session = SessionID(try context.parameters.require("session")) else {
    throw HTTPError(.badRequest, message: "session: \(SessionID.rule)")
  }
  let segment = try await encode(frames(in: request), of: session, options)
  return Response(
    status: .ok, headers: [.contentType: "video/mp4"],
    body: ResponseBody(byteBuffer: ByteBuffer(bytes: segment.video)))
}
let port = Int(CommandLine.arguments.dropFirst().first ?? "") ?? 8_080
try await Application(router: router, configuration: .init(address: .hostname("127.0.0.1", port: port))).runService()
