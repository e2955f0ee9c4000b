// The requests to a decoder process. Each one writes and reads itself, and so does its answer: the order of the values stands in one
// place.

import FileSystem
import FrameBatches

/// A request to a decoder process.
protocol DecoderRequest: WireValue {
  associatedtype Answer: WireValue
  static var kind: DecoderRequestKind { get }
}

/// The first value of a request's message.
enum DecoderRequestKind: Int, WireValue {
  case isConfined, decode, unpack
  /// Requests about videos, for ``VideoAnswers``.
  case track, openFilm, filmPicture, pictures, problems, samples, codedPicture
}

extension DecoderRequest {
  /// The message as it is sent.
  var message: [UInt8] {
    var writer = WireWriter()
    writer.put(Self.kind, self)
    return writer.framed
  }
}

extension DecoderProcess {
  /// Sends a request, serves the decoder's reads and output, and waits for the answer.
  func ask<Request: DecoderRequest>(
    _ request: Request, seconds: Int, _ exchange: DecoderExchange = DecoderExchange()
  ) throws -> Request.Answer {
    var answer = try ask(request.message, seconds: seconds, exchange)
    return try answer.read()
  }
}

// MARK: - The requests without a video

/// Asks whether the kernel filters the system calls of the process. On a kernel without filters only the limits remain.
struct ConfinementRequest: DecoderRequest {
  typealias Answer = Bool
  static let kind = DecoderRequestKind.isConfined
}

extension ConfinementRequest {
  init(from reader: inout WireReader) {}
  func put(to writer: inout WireWriter) {}
}

/// Asks for the picture of a frame's files, which follow the request.
struct FrameRequest: DecoderRequest {
  static let kind = DecoderRequestKind.decode
  /// The slot of the shared memory to decode into.
  let slot: Int
  let look: FrameComposition
  /// The bits that samples of 16 bits use, if the user states them.
  let sampleBits: Int?
  /// The bytes of each file.
  let sizes: [Int]
}

extension FrameRequest {
  init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(slot: reader.slot(), look: reader.read(), sampleBits: reader.read(), sizes: reader.read())
  }
  func put(to writer: inout WireWriter) { writer.put(slot, look, sampleBits, sizes) }

  enum Answer: WireValue {
    case picture(PlaneLayout, notes: [String], PictureFacts, DecodingWork)
    case refused(Refusal)
    case outOfMemory

    private enum Kind: Int, WireValue { case picture, refused, outOfMemory }

    /// Notes on a picture go into the manifest, so their number and length are limited.
    static let (notes, noteBytes) = (8, 255)

    init(from reader: inout WireReader) throws(DecoderFailure) {
      switch try reader.read(Kind.self) {
      case .picture:
        let (layout, notes): (PlaneLayout, [String]) = (try reader.read(), try reader.read())
        let shortened = notes.prefix(Self.notes).map { $0.shortened(to: Self.noteBytes) }
        self = .picture(layout, notes: shortened, try reader.read(), try reader.read())
      case .refused: self = .refused(try reader.read())
      case .outOfMemory: self = .outOfMemory
      }
    }

    func put(to writer: inout WireWriter) {
      switch self {
      case .picture(let layout, let notes, let facts, let work): writer.put(Kind.picture, layout, notes, facts, work)
      case .refused(let refusal): writer.put(Kind.refused, refusal)
      case .outOfMemory: writer.put(Kind.outOfMemory)
      }
    }
  }
}

extension PictureFacts: WireValue {
  /// The largest number that a decoder may state, so that sums do not overflow.
  private static let maximum = 1 << 32

  package init(from reader: inout WireReader) throws(DecoderFailure) {
    self.init()
    (several, leftOut, unread) = (try reader.read(), try reader.read(), try reader.read())
    (wide, highest) = (try reader.read(), try reader.read())
    guard [several, leftOut, unread, wide, highest].allSatisfy((0...Self.maximum).contains) else { throw .malformed }
  }
  package func put(to writer: inout WireWriter) { writer.put(several, leftOut, unread, wide, highest) }
}

extension Refusal: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    self.init(try reader.text(limit: FrameRequest.Answer.noteBytes), try reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(fault, remedy) }
}

extension Refusal.Remedy: WireValue {
  private enum Kind: Int, WireValue { case raise, scale, convert }

  package init(from reader: inout WireReader) throws(DecoderFailure) {
    switch try reader.read(Kind.self) {
    case .raise: self = .raise(try reader.read())
    case .scale: self = .scale
    case .convert: self = .convert(try reader.read())
    }
  }

  package func put(to writer: inout WireWriter) {
    switch self {
    case .raise(let advice): writer.put(Kind.raise, advice)
    case .scale: writer.put(Kind.scale)
    case .convert(let image): writer.put(Kind.convert, image)
    }
  }
}

extension OtherImage: WireValue {}

/// Is sent as a value for each limit, or nil.
extension LimitAdvice: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    var values: [Limit: Int] = [:]
    for limit in Limit.allCases { values[limit] = try reader.read(Int?.self) }
    guard values.values.allSatisfy({ (1...Limits.maximumBytes).contains($0) }) else { throw .malformed }
    self.init(values)
  }
  package func put(to writer: inout WireWriter) { for limit in Limit.allCases { writer.put(values[limit]) } }
}

/// Asks for the content of an archive. The decoder asks for its bytes, and sends the content before the answer.
struct UnpackingRequest: DecoderRequest {
  static let kind = DecoderRequestKind.unpack
  /// The size of the file in bytes; nil for a pipe.
  let size: Int?
  /// Whether to send what can be read of a damaged archive.
  let takesTorn: Bool
}

extension UnpackingRequest {
  init(from reader: inout WireReader) throws(DecoderFailure) {
    (size, takesTorn) = (try reader.read(), try reader.read())
  }
  func put(to writer: inout WireWriter) { writer.put(size, takesTorn) }

  enum Answer: WireValue {
    case done
    case bad(cause: String, advice: String)
    case outOfMemory

    private enum Kind: Int, WireValue { case done, bad, outOfMemory }

    init(from reader: inout WireReader) throws(DecoderFailure) {
      switch try reader.read(Kind.self) {
      case .done: self = .done
      case .bad: self = .bad(cause: try reader.text(limit: 1_024), advice: try reader.text(limit: 1_024))
      case .outOfMemory: self = .outOfMemory
      }
    }

    func put(to writer: inout WireWriter) {
      switch self {
      case .done: writer.put(Kind.done)
      case .bad(let cause, let advice): writer.put(Kind.bad, cause, advice)
      case .outOfMemory: writer.put(Kind.outOfMemory)
      }
    }
  }
}
