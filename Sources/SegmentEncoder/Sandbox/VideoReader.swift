// Reads videos of strangers: in a process of its own, where there is a host for it, or right here.

import Glibc

/// The pictures of a published segment that a sheet or a thumbnail shows.
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

  /// The track of a file that can be encoded anew.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``, ``Cancelled``.
  func track(
    of file: any ByteSource, name: String, limits: Limits, isCancelled: @escaping () -> Bool
  ) throws -> VideoTrack {
    guard let decoders else { return try VideoTrack(of: file, name: name, limits: limits, isCancelled: isCancelled) }
    var samples: [VideoTrack.Sample] = []
    var keys: [VideoTrack.Sample] = []
    return try ask(decoders, .track, about: file, name, isCancelled) { _ in
    } output: { message in
      let isKey = try message.bool()
      let list = try message.list { reader throws(WireReader.Nonsense) in try reader.sample() }
      guard samples.count + list.count <= limits.filmPictures, keys.count + list.count <= limits.filmPictures else {
        throw WireReader.Nonsense()
      }
      if isKey { keys += list } else { samples += list }
    } read: { answer in
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

  /// The ways in which a segment's file differs from its manifest.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``.
  func problems(_ json: JSONValue, _ segment: PublishedSegment, _ bytes: [UInt8]) throws -> [String] {
    guard let decoders else {
      return try bytes.withUnsafeBytes { try SegmentVerification.problemsOfFile(json, segment, MemoryBytes($0)) }
    }
    return try bytes.withUnsafeBytes { buffer in
      try ask(decoders, .problems, about: MemoryBytes(buffer), segment.file) { question in
        question.put(json.line)
      } read: { answer in
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
      return try ask(decoders, .samples, about: MemoryBytes(buffer), segment.file) { _ in
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
      } read: { answer in
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
    return try bytes.withUnsafeBytes { buffer in
      try ask(decoders, .pictures, about: MemoryBytes(buffer), segment.file) { question in
        question.put(order)
      } output: { message in
        try message.withBytes { received += $0 }
        guard received.count <= wanted, pictures.count < order.starts.count else { throw WireReader.Nonsense() }
        guard received.count == wanted else { return }
        pictures.append(try FrameBuffer(unpacking: received, order.fitted, isRGB: order.isRGB))
        received = []
      } read: { _ in
        guard pictures.count == order.starts.count, received.isEmpty else { throw WireReader.Nonsense() }
        return pictures
      }
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

  /// An answer that refuses the file. The decoder has worked as it should, and can be asked again.
  struct Refusal: Error {
    let error: any Error
  }

  /// Asks a decoder of this owner, and lets it wait for more.
  ///
  /// - Parameters:
  ///   - put: writes the question behind the file's size.
  ///   - output: takes each part of the result.
  ///   - read: reads the answer.
  private func ask<R>(
    _ decoders: DecoderHost, _ request: DecoderChild.Request, about file: any ByteSource, _ name: String,
    _ isCancelled: @escaping () -> Bool = { false }, _ put: (inout WireWriter) -> Void,
    output: @escaping (inout WireReader) throws -> Void = { _ in throw WireReader.Nonsense() },
    read: (inout WireReader) throws -> R
  ) throws -> R {
    let decoder = try decoders.decoder(for: owner, isLimited: false)
    do {
      var answer = try ask(decoder, decoders, request, about: file, name, isCancelled, put, output: output)
      let result = try read(&answer)
      decoders.keep(decoder, for: owner)
      return result
    } catch let refusal as Refusal {
      decoders.keep(decoder, for: owner)
      throw refusal.error
    } catch {
      throw try failure(name, decoders, decoders.end(decoder, after: error))
    }
  }

  /// Asks one decoder.
  ///
  /// - Throws: ``Refusal``, or why there is no answer.
  func ask(
    _ decoder: DecoderProcess, _ decoders: DecoderHost, _ request: DecoderChild.Request, about file: any ByteSource,
    _ name: String, _ isCancelled: @escaping () -> Bool, _ put: (inout WireWriter) -> Void,
    output: @escaping (inout WireReader) throws -> Void = { _ in throw WireReader.Nonsense() }
  ) throws -> WireReader {
    var question = WireWriter()
    question.put(request.rawValue)
    question.put(file.count)
    put(&question)
    var exchange = DecoderExchange()
    exchange.isCancelled = isCancelled
    exchange.output = output
    exchange.input = { offset, count in
      var outcome = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
        outcome = file.read(at: offset, into: UnsafeMutableRawBufferPointer(bytes))
        filled = max(0, outcome)
      }
      guard outcome >= 0 else { throw DiskError("read", name) }
      return bytes
    }
    // A file whose parts lie far apart is read in parts that are larger than needed.
    let inputBytes = 64 << 20 + 64 * min(file.count, 1 << 40)
    var answer = try decoder.ask(
      question.framed, seconds: decoders.limits.decodeSeconds, inputBytes: inputBytes, exchange)
    switch try answer.choice(VideoAnswers.Outcome.self) {
    case .done: return answer
    case .bad:
      let (cause, advice) = (try answer.string(), try answer.string())
      throw Refusal(error: BadSession(name, cause.shortened(to: 1_024), advice: advice.shortened(to: 1_024)))
    case .failed:
      let (function, code) = (try answer.string(), try answer.int())
      throw Refusal(
        error: FFmpegError(function: function.shortened(to: 64), code: Int32(truncatingIfNeeded: code)))
    case .outOfMemory:
      throw Refusal(error: BadSession(name, "it takes more memory than a video may", advice: "make it smaller"))
    }
  }

  /// The error to throw when there was no answer: a decoder that crashes or hangs is the file's fault.
  func failure(_ name: String, _ decoders: DecoderHost, _ error: any Error) -> any Error {
    func bad(_ cause: String) -> BadSession { BadSession(name, cause, advice: "is the file whole?") }
    switch error {
    case DecoderFailure.gone: return DecoderStarved()
    case DecoderFailure.late: return bad("reading it takes more than \(decoders.limits.decodeSeconds) s")
    case DecoderFailure.crashed(let how): return bad("the video decoder crashed (\(how))")
    case is WireReader.Nonsense: return failure(name, decoders, DecoderFailure.nonsense)
    default: return error
    }
  }
}
