// Reads videos of strangers: in a process of its own, where there is a host for it, or right here.

import CFFmpeg
import Glibc

/// How a picture of a video is wanted for coding: without what was added to make its sides even, upright, not too large.
struct VideoPictureForm: Equatable {
  /// Of the picture as it is stored, before it is turned.
  let size: PixelSize
  let quarterTurns: Int
  /// No side is longer; nil for any length.
  let maxSide: Int?
}

/// What is read of a published segment for a sheet or a thumbnail.
struct SegmentPicturesOrder: Equatable {
  /// As captured, and as coded.
  let size: PixelSize
  let coded: PixelSize
  /// When the wanted frames come on screen, in order, in ticks from the segment's start.
  let starts: [Int64]
  /// How large a picture may be; smaller ones stay as they are.
  let box: PixelSize
  /// RGB, to be drawn on; or the planes of the film, to be coded as JPEG.
  let isRGB: Bool

  var fitted: PixelSize { size.fitted(into: box) }
}

/// A film's pictures in the order they are shown; nil where there is none at an instant.
protocol FilmPictures: AnyObject {
  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture?
}

/// Where videos are read. For any thread.
struct VideoReader: Sendable {
  /// nil for right here, for videos that can be trusted.
  let decoders: DecoderHost?
  /// Whose bytes they are: a decoder sees nobody else's.
  let owner: String

  init(_ decoders: DecoderHost? = nil, owner: String = "") {
    self.decoders = decoders
    self.owner = "video " + owner
  }

  /// What can be encoded anew of a file.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``, ``Cancelled``.
  func track(
    of file: any ByteSource, name: String, limits: Limits, isCancelled: @escaping () -> Bool
  ) throws -> VideoTrack {
    guard let decoders else { return try VideoTrack(of: file, name: name, limits: limits, isCancelled: isCancelled) }
    var samples: [VideoTrack.Sample] = []
    var keys: [VideoTrack.Sample] = []
    var answer = try ask(decoders, .track, about: file, name, isCancelled) { _ in
    } output: { message in
      let isKey = try message.bool()
      let list = try message.list { reader throws(WireReader.Nonsense) in try reader.sample() }
      guard samples.count + list.count <= limits.filmPictures, keys.count + list.count <= limits.filmPictures else {
        throw WireReader.Nonsense()
      }
      if isKey { keys += list } else { samples += list }
    }
    return try understood(name) {
      let track = VideoTrack(
        index: try answer.int(), timeBase: (Int64(try answer.int()), Int64(try answer.int())),
        quarterTurns: try answer.int(),
        creationTime: try answer.optional { reader throws(WireReader.Nonsense) in try reader.string() },
        samples: samples, keys: keys)
      guard (1...Int64(Int32.max)).contains(track.timeBase.numerator),
        (1...Int64(Int32.max)).contains(track.timeBase.denominator), (0..<4).contains(track.quarterTurns),
        track.index >= 0, !samples.isEmpty, !keys.isEmpty,
        zip(samples, samples.dropFirst()).allSatisfy({ $0.pts <= $1.pts }),
        zip(keys, keys.dropFirst()).allSatisfy({ $0.pts <= $1.pts }),
        samples.allSatisfy({ $0.isWithin(limits) }), keys.allSatisfy({ $0.isWithin(limits) })
      else { throw WireReader.Nonsense() }
      return track
    }
  }

  /// What a segment's file has that its manifest does not tell of.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``.
  func problems(_ json: JSONValue, _ segment: PublishedSegment, _ bytes: [UInt8]) throws -> [String] {
    guard let decoders else {
      return try bytes.withUnsafeBytes { try SegmentVerification.problemsOfFile(json, segment, MemoryBytes($0)) }
    }
    return try bytes.withUnsafeBytes { buffer in
      var answer = try ask(decoders, .problems, about: MemoryBytes(buffer), segment.file) { question in
        question.put(json.line)
      }
      return try understood(segment.file) {
        try answer.list { reader throws(WireReader.Nonsense) in try reader.string() }.prefix(100).map {
          $0.shortened(to: 1_024)
        }
      }
    }
  }

  /// A segment's samples as they are stored.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``.
  func samples(of segment: PublishedSegment, _ bytes: [UInt8]) throws -> StoredSamples {
    guard let decoders else {
      return try bytes.withUnsafeBytes { try StoredSamples(of: MemoryBytes($0), segment.file) }
    }
    return try bytes.withUnsafeBytes { buffer in
      var samples: [StoredSamples.Stored] = []
      var left = bytes.count
      var answer = try ask(decoders, .samples, about: MemoryBytes(buffer), segment.file) { _ in
      } output: { message in
        let isNew = try message.bool()
        if isNew {
          samples.append(
            StoredSamples.Stored(
              track: try message.int(), pts: Int64(try message.int()), duration: Int64(try message.int()), data: []))
        }
        guard !samples.isEmpty, samples.count <= segment.samples + segment.frames.count else {
          throw WireReader.Nonsense()
        }
        try message.withBytes { part in
          left -= part.count
          guard left >= 0 else { throw WireReader.Nonsense() }
          samples[samples.count - 1].data += part
        }
      }
      return try understood(segment.file) {
        let configuration = try answer.optional { reader throws(WireReader.Nonsense) in try reader.byteList() }
        return StoredSamples(configuration: configuration, samples: samples)
      }
    }
  }

  /// Pictures of a published segment, made to fit.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``.
  func pictures(
    of segment: PublishedSegment, _ bytes: [UInt8], _ order: SegmentPicturesOrder, _ converter: PictureConverter
  ) throws -> [FrameBuffer] {
    guard let decoders else {
      return try bytes.withUnsafeBytes { buffer in
        var pictures: [FrameBuffer] = []
        try SegmentPictures.decode(MemoryBytes(buffer), segment.file, order, converter) { pictures.append($0) }
        return pictures
      }
    }
    var pictures: [FrameBuffer] = []
    var received: [UInt8] = []
    let wanted = FrameBuffer.packedBytes(order.fitted, isRGB: order.isRGB)
    _ = try bytes.withUnsafeBytes { buffer in
      try ask(decoders, .pictures, about: MemoryBytes(buffer), segment.file) { question in
        question.put(order)
      } output: { message in
        try message.withBytes { received += $0 }
        guard received.count <= wanted, pictures.count < order.starts.count else { throw WireReader.Nonsense() }
        guard received.count == wanted else { return }
        pictures.append(try FrameBuffer(unpacking: received, order.fitted, isRGB: order.isRGB))
        received = []
      }
    }
    return try understood(segment.file) {
      guard pictures.count == order.starts.count, received.isEmpty else { throw WireReader.Nonsense() }
      return pictures
    }
  }

  /// Opens a film's track, to be decoded from a key frame on.
  ///
  /// - Parameters:
  ///   - keyDTS: when the key frame is decoded; nil for the first sample.
  ///   - body: gets the pictures, as long as it runs.
  /// - Throws: ``BadSession``, ``FFmpegError``, ``Cancelled``, and what `body` throws.
  func withFilm<R>(
    in file: any ByteSource, name: String, track: Int, keyDTS: Int64?, limits: Limits,
    isCancelled: @escaping () -> Bool, _ body: (any FilmPictures) throws -> R
  ) throws -> R {
    guard let decoders else {
      return try body(LocalFilm(file, name: name, track: track, keyDTS: keyDTS, limits: limits))
    }
    let film = SandboxedFilm(self, decoders, file, name, isCancelled)
    try film.open(track: track, keyDTS: keyDTS)
    return try body(film)
  }

  // MARK: - Questions

  /// Asks a decoder of this owner, and lets it wait for more.
  fileprivate func ask(
    _ decoders: DecoderHost, _ request: DecoderChild.Request, about file: any ByteSource, _ name: String,
    _ isCancelled: @escaping () -> Bool = { false }, _ put: (inout WireWriter) -> Void,
    output: @escaping (inout WireReader) throws -> Void = { _ in throw WireReader.Nonsense() }
  ) throws -> WireReader {
    let decoder = try decoders.decoder(for: owner, isLimited: false)
    var isAnswered = false
    do {
      let answer = try ask(
        decoder, decoders, request, about: file, name, isCancelled, put, output: output, isAnswered: &isAnswered)
      decoders.keep(decoder, for: owner)
      return answer
    } catch {
      // Only what has answered to its end can be asked again.
      guard isAnswered else { return try blaming(name, decoders) { throw try decoders.end(decoder, after: error) } }
      decoders.keep(decoder, for: owner)
      return try blaming(name, decoders) { throw error }
    }
  }

  fileprivate func ask(
    _ decoder: DecoderProcess, _ decoders: DecoderHost, _ request: DecoderChild.Request, about file: any ByteSource,
    _ name: String, _ isCancelled: @escaping () -> Bool, _ put: (inout WireWriter) -> Void,
    output: @escaping (inout WireReader) throws -> Void = { _ in throw WireReader.Nonsense() },
    isAnswered: inout Bool
  ) throws -> WireReader {
    var question = WireWriter()
    question.put(request.rawValue)
    question.put(file.count)
    put(&question)
    var exchange = DecoderExchange()
    exchange.isCancelled = isCancelled
    exchange.input = { offset, count in
      var outcome = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
        outcome = file.read(at: offset, into: UnsafeMutableRawBufferPointer(bytes))
        filled = max(0, outcome)
      }
      guard outcome >= 0 else { throw DiskError("read", name) }
      return bytes
    }
    exchange.output = { message in
      var message = message
      try output(&message)
    }
    // What lies far apart in a file is read in parts that are larger than needed.
    let inputBytes = 64 << 20 + 64 * min(file.count, 1 << 40)
    var answer = try decoder.ask(
      question.framed, seconds: decoders.limits.decodeSeconds, inputBytes: inputBytes, exchange)
    isAnswered = true
    switch try answer.choice(VideoAnswers.Outcome.self) {
    case .done: return answer
    case .bad:
      let (cause, advice) = (try answer.string(), try answer.string())
      throw BadSession(name, cause.shortened(to: 1_024), advice: advice.shortened(to: 1_024))
    case .failed:
      let (function, code) = (try answer.string(), try answer.int())
      throw FFmpegError(function: function.shortened(to: 64), code: Int32(truncatingIfNeeded: code))
    case .outOfMemory:
      throw BadSession(name, "it takes more memory than a video may", advice: "make it smaller")
    }
  }

  /// What a decoder says that makes no sense is as good as a crash.
  private func understood<R>(_ name: String, _ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch is WireReader.Nonsense {
      throw BadSession(name, "the video decoder crashed (it answers nonsense)", advice: "is the file whole?")
    }
  }

  /// A decoder that crashes or hangs is the file's fault.
  fileprivate func blaming<R>(_ name: String, _ decoders: DecoderHost, _ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch DecoderFailure.gone {
      throw DecoderStarved()
    } catch DecoderFailure.late {
      throw BadSession(
        name, "reading it takes more than \(decoders.limits.decodeSeconds) s", advice: "is the file whole?")
    } catch DecoderFailure.crashed(let how) {
      throw BadSession(name, "the video decoder crashed (\(how))", advice: "is the file whole?")
    } catch is WireReader.Nonsense {
      throw BadSession(name, "the video decoder crashed (it answers nonsense)", advice: "is the file whole?")
    }
  }
}

/// A film that is decoded right here.
final class LocalFilm: FilmPictures {
  private let pictures: VideoPictures
  private let converter = PictureConverter()

  init(_ file: any ByteSource, name: String, track: Int, keyDTS: Int64?, limits: Limits) throws {
    let reader = try MP4Reader(file)
    guard (0..<reader.trackCount).contains(track) else { throw BadSession(name, "no such track") }
    if let keyDTS { try reader.seek(toKeyFrameAt: keyDTS, of: track) }
    pictures = try VideoPictures(reader, track: track, limits: limits)
  }

  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture? {
    guard let decoded = try pictures.picture(at: pts) else { return nil }
    guard (1...decoded.width).contains(form.size.width), (1...decoded.height).contains(form.size.height) else {
      throw BadSession("", "a picture of another size than was to be expected")
    }
    if decoded.isHighDynamicRange {
      throw BadSession("", "high dynamic range (PQ or HLG)", advice: "make it SDR first")
    }
    decoded.crop(width: form.size.width, height: form.size.height)
    return try Picture(
      adopting: converter.planar420(ofVideo: decoded, quarterTurns: form.quarterTurns, maxSide: form.maxSide))
  }
}

/// A film that is decoded in a process of its own. For one thread.
private final class SandboxedFilm: FilmPictures {
  private let reader: VideoReader
  private let decoders: DecoderHost
  private let file: any ByteSource
  private let name: String
  private let isCancelled: () -> Bool
  private var decoder: DecoderProcess?

  init(
    _ reader: VideoReader, _ decoders: DecoderHost, _ file: any ByteSource, _ name: String,
    _ isCancelled: @escaping () -> Bool
  ) {
    self.reader = reader
    self.decoders = decoders
    self.file = file
    self.name = name
    self.isCancelled = isCancelled
  }

  deinit { if let decoder { decoders.keep(decoder, for: reader.owner) } }

  func open(track: Int, keyDTS: Int64?) throws {
    decoder = try decoders.decoder(for: reader.owner, isLimited: false)
    _ = try ask(.openFilm) { question in
      question.put(track)
      question.put(keyDTS.map { Int($0) }) { $0.put($1) }
    }
  }

  func picture(at pts: Int64, as form: VideoPictureForm) throws -> Picture? {
    guard let slots = decoder?.slots else { throw BadSession(name, "its decoder is gone") }
    let (slot, use) = slots.free()
    var layout: PlaneLayout?
    defer { slots.note(slot, bytes: layout?.bytes) }
    var answer = try ask(.filmPicture) { question in
      question.put(slot)
      question.put(Int(pts))
      question.put(form)
    }
    do {
      guard try answer.bool() else {
        layout = PlaneLayout(size: PixelSize(width: 1, height: 1), [], bytes: 0)
        return nil
      }
      let planes = try answer.layout(decoders.limits, bytes: slots.size)
      layout = planes
      return try Picture(planes: slots, slot, use, planes)
    } catch is WireReader.Nonsense {
      throw BadSession(name, "the video decoder crashed (it answers nonsense)")
    }
  }

  private func ask(_ request: DecoderChild.Request, _ put: (inout WireWriter) -> Void) throws -> WireReader {
    guard let decoder else { throw BadSession(name, "its decoder is gone") }
    var isAnswered = false
    do {
      return try reader.ask(
        decoder, decoders, request, about: file, name, isCancelled, put, isAnswered: &isAnswered)
    } catch {
      self.decoder = nil
      return try reader.blaming(name, decoders) { throw try decoders.end(decoder, after: error) }
    }
  }
}
