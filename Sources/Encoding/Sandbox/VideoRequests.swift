// The requests to a decoder process about videos. The worker keeps the file; the decoder asks it for bytes.

import FileSystem
import FrameBatches
import ISOMedia

/// A request about one video.
protocol VideoRequest: WireValue {
  /// A part of the result, sent before the answer.
  associatedtype Part: WireValue = NoPart
  associatedtype Answer: WireValue = NoValue
  static var kind: DecoderRequestKind { get }
}

/// A part of a result that has no parts.
struct NoPart: WireValue {
  init(from reader: inout WireReader) throws(DecoderFailure) { throw .malformed }
  func put(to writer: inout WireWriter) {}
}

/// An answer without a value.
struct NoValue: WireValue {
  init() {}
  init(from reader: inout WireReader) {}
  func put(to writer: inout WireWriter) {}
}

/// A request with the size of its file in bytes.
struct FileRequest<Request: VideoRequest>: DecoderRequest {
  typealias Answer = VideoOutcome<Request.Answer>
  static var kind: DecoderRequestKind { Request.kind }

  let fileBytes: Int
  let request: Request
}

extension FileRequest {
  init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(fileBytes: reader.read(), request: reader.read())
  }
  func put(to writer: inout WireWriter) { writer.put(fileBytes, request) }
}

/// The answer to a request about a video: its result, or why there is none.
enum VideoOutcome<Answer: WireValue>: WireValue {
  case done(Answer)
  /// The file is at fault.
  case bad(cause: String, advice: String)
  /// A function of FFmpeg failed.
  case failed(function: String, code: Int)
  case outOfMemory

  private enum Kind: Int, WireValue { case done, bad, failed, outOfMemory }

  init(from reader: inout WireReader) throws(DecoderFailure) {
    switch try reader.read(Kind.self) {
    case .done: self = .done(try reader.read())
    case .bad: self = .bad(cause: try reader.text(limit: 1_024), advice: try reader.text(limit: 1_024))
    case .failed: self = .failed(function: try reader.text(limit: 64), code: try reader.read())
    case .outOfMemory: self = .outOfMemory
    }
  }

  func put(to writer: inout WireWriter) {
    switch self {
    case .done(let answer): writer.put(Kind.done, answer)
    case .bad(let cause, let advice): writer.put(Kind.bad, cause, advice)
    case .failed(let function, let code): writer.put(Kind.failed, function, code)
    case .outOfMemory: writer.put(Kind.outOfMemory)
    }
  }
}

// MARK: - A track

/// Asks for the track of a file that can be re-encoded.
struct TrackRequest: VideoRequest {
  static let kind = DecoderRequestKind.track

  init() {}
  init(from reader: inout WireReader) {}
  func put(to writer: inout WireWriter) {}

  /// Some of the track's samples, or of its key frames.
  struct Part: WireValue {
    let isKey: Bool
    let samples: [VideoTrack.Sample]
  }

  /// The track without its samples.
  struct Answer: WireValue {
    let index: Int
    let timeBase: (numerator: Int64, denominator: Int64)
    let quarterTurns: Int
    let creationTime: String?
    let timingIndex: Int?
    let isOnlyVideo: Bool
    let hasEnd: Bool
  }
}

extension TrackRequest.Part {
  init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(isKey: reader.read(), samples: reader.read())
  }
  func put(to writer: inout WireWriter) { writer.put(isKey, samples) }
}

extension TrackRequest.Answer {
  init(_ track: VideoTrack) {
    self.init(
      index: track.index, timeBase: track.timeBase, quarterTurns: track.quarterTurns, creationTime: track.creationTime,
      timingIndex: track.timingIndex, isOnlyVideo: track.isOnlyVideo, hasEnd: track.hasEnd)
  }

  init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(
      index: reader.read(), timeBase: (reader.read(), reader.read()), quarterTurns: reader.read(),
      creationTime: reader.read(), timingIndex: reader.read(), isOnlyVideo: reader.read(), hasEnd: reader.read())
    guard [timeBase.numerator, timeBase.denominator].allSatisfy({ (1...Int64(Int32.max)).contains($0) }),
      (0..<4).contains(quarterTurns), index >= 0
    else { throw .malformed }
  }

  func put(to writer: inout WireWriter) {
    writer.put(
      index, timeBase.numerator, timeBase.denominator, quarterTurns, creationTime, timingIndex, isOnlyVideo, hasEnd)
  }

  func track(_ samples: [VideoTrack.Sample], keys: [VideoTrack.Sample]) -> VideoTrack {
    VideoTrack(
      index: index, timeBase: timeBase, quarterTurns: quarterTurns, creationTime: creationTime,
      timingIndex: timingIndex, isOnlyVideo: isOnlyVideo, hasEnd: hasEnd, samples: samples, keys: keys)
  }
}

extension VideoTrack.Sample: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(
      pts: reader.read(), dts: reader.read(), duration: reader.read(), width: reader.read(), height: reader.read(),
      timeMs: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(pts, dts, duration, width, height, timeMs) }
}

// MARK: - A film's pictures

/// Opens a film's track.
struct FilmRequest: VideoRequest {
  static let kind = DecoderRequestKind.openFilm
  let track: Int
  /// The decoding time of the key frame to start at; nil for the first sample.
  let keyDTS: Int64?
}

extension FilmRequest {
  init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(track: reader.read(), keyDTS: reader.read())
  }
  func put(to writer: inout WireWriter) { writer.put(track, keyDTS) }
}

/// Asks for a picture of the film that is open; the answer is nil if there is none.
struct FilmPictureRequest: VideoRequest {
  typealias Answer = PlaneLayout?
  static let kind = DecoderRequestKind.filmPicture
  /// The slot of the shared memory to lay the picture into.
  let slot: Int
  let pts: Int64
  let form: VideoPictureForm
}

extension FilmPictureRequest {
  init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(slot: reader.slot(), pts: reader.read(), form: reader.read())
  }
  func put(to writer: inout WireWriter) { writer.put(slot, pts, form) }
}

extension VideoPictureForm: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(size: reader.read(), quarterTurns: reader.read(), maxSide: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(size, quarterTurns, maxSide) }
}

// MARK: - A segment's pictures

/// Each part holds bytes of the pictures, packed one after the other.
extension SegmentPicturesOrder: VideoRequest {
  typealias Part = WireBytes
  static var kind: DecoderRequestKind { .pictures }

  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(
      digest: reader.read(), size: reader.read(), coded: reader.read(), starts: reader.read(), box: reader.read(),
      isRGB: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(digest, size, coded, starts, box, isRGB) }
}

/// Each part holds bytes of the planes.
extension CodedPictureOrder: VideoRequest {
  typealias Part = WireBytes
  static var kind: DecoderRequestKind { .codedPicture }

  package init(from reader: inout WireReader) throws(DecoderFailure) {
    (start, size) = try (reader.read(), reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(start, size) }
}

// MARK: - A segment's samples

/// Asks for the differences between a segment's file and its manifest.
struct ProblemsRequest: VideoRequest {
  typealias Answer = [String]
  static let kind = DecoderRequestKind.problems
  /// A line of JSON.
  let manifest: String
}

extension ProblemsRequest {
  init(from reader: inout WireReader) throws(DecoderFailure) { manifest = try reader.read() }
  func put(to writer: inout WireWriter) { writer.put(manifest) }
}

/// Asks for the samples of some tracks as they are stored.
struct SamplesRequest: VideoRequest {
  static let kind = DecoderRequestKind.samples
  let tracks: StoredSamples.Tracks

  /// Bytes of one sample.
  struct Part: WireValue {
    let sample: SampleHead
    let bytes: WireBytes
  }

  /// The samples' descriptions.
  struct Answer: WireValue {
    let configuration: [UInt8]?
    let colour: VideoColour?
  }
}

/// A sample without its bytes, and its place in the list of samples.
struct SampleHead {
  let index: Int
  let track: Int
  let pts: Int64
  let duration: Int64
  let isKey: Bool
}

extension SamplesRequest {
  init(from reader: inout WireReader) throws(DecoderFailure) { tracks = try reader.read() }
  func put(to writer: inout WireWriter) { writer.put(tracks) }
}

extension SamplesRequest.Part {
  init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(sample: reader.read(), bytes: reader.read())
  }
  func put(to writer: inout WireWriter) { writer.put(sample, bytes) }
}

extension SamplesRequest.Answer {
  init(from reader: inout WireReader) throws(DecoderFailure) {
    configuration = try reader.read(WireBytes?.self).map { Array($0.bytes) }
    colour = try reader.read()
  }
  func put(to writer: inout WireWriter) { writer.put(configuration.map { WireBytes($0[...]) }, colour) }
}

extension SampleHead: WireValue {
  init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(
      index: reader.read(), track: reader.read(), pts: reader.read(), duration: reader.read(), isKey: reader.read())
  }
  func put(to writer: inout WireWriter) { writer.put(index, track, pts, duration, isKey) }
}

extension StoredSamples.Tracks: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(video: reader.read(), timing: reader.read(), areSome: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(video, timing, areSome) }
}

extension VideoColour: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(primaries: reader.read(), transfer: reader.read(), matrix: reader.read(), isFullRange: reader.read())
    guard [primaries, transfer, matrix].allSatisfy((0...255).contains) else { throw .malformed }
  }
  package func put(to writer: inout WireWriter) { writer.put(primaries, transfer, matrix, isFullRange) }
}
