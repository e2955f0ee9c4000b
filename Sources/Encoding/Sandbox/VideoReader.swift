// Reads untrusted videos, in a decoder process or in this process.

import FileSystem
import FrameBatches
import Glibc
import ISOMedia
import JSON

/// The pictures of a published segment that a sheet or a thumbnail shows.
package struct SegmentPicturesOrder: Equatable {
  /// As captured, and as coded.
  package let size: PixelSize
  package let coded: PixelSize
  /// When the wanted frames come on screen, in order, in ticks from the segment's start.
  package let starts: [Int64]
  /// Maximum size of a picture; smaller ones keep their size.
  package let box: PixelSize
  /// RGB, to be drawn on; or the planes of the film, to be coded as JPEG.
  let isRGB: Bool

  package var fitted: PixelSize { size.fitted(into: box) }
}

/// A reader of videos. For any thread.
package struct VideoReader: Sendable {
  /// nil to read trusted videos in this process.
  package let decoders: DecoderForkServer?
  /// The owner of the bytes: a decoder sees one owner's bytes only.
  package let owner: String

  package init(_ decoders: DecoderForkServer? = nil, owner: String = "") {
    FFmpegLog.silence()
    self.decoders = decoders
    self.owner = "video " + owner
  }

  /// The track of a file that can be encoded anew.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``, ``Cancelled``.
  package func track(
    of file: any ByteSource, name: String, limits: Limits, isCancelled: @escaping () -> Bool
  ) throws -> VideoTrack {
    guard let decoders else { return try VideoTrack(of: file, name: name, limits: limits, isCancelled: isCancelled) }
    let empty: (samples: [VideoTrack.Sample], keys: [VideoTrack.Sample]) = ([], [])
    return try ask(decoders, .track, about: file, name, into: empty, isCancelled: isCancelled) { found, message in
      let (isKey, list): (Bool, [VideoTrack.Sample]) = (try message.read(), try message.read())
      guard !list.isEmpty, max(found.samples.count, found.keys.count) + list.count <= limits.filmPictures else {
        throw DecoderFailure.malformed
      }
      if isKey { found.keys += list } else { found.samples += list }
    } read: { found, answer in
      let (samples, keys) = found
      let track = VideoTrack(
        index: try answer.read(), timeBase: (try answer.read(), try answer.read()), quarterTurns: try answer.read(),
        creationTime: try answer.read(), samples: samples, keys: keys)
      guard (1...Int64(Int32.max)).contains(track.timeBase.numerator),
        (1...Int64(Int32.max)).contains(track.timeBase.denominator), (0..<4).contains(track.quarterTurns),
        track.index >= 0, !samples.isEmpty, !keys.isEmpty,
        zip(samples, samples.dropFirst()).allSatisfy({ $0.pts <= $1.pts }),
        zip(keys, keys.dropFirst()).allSatisfy({ $0.pts <= $1.pts }),
        samples.allSatisfy({ $0.isWithin(limits) }), keys.allSatisfy({ $0.isWithin(limits) })
      else { throw DecoderFailure.malformed }
      return track
    }
  }

  /// The ways in which a segment's file differs from its manifest.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``.
  package func problems(_ json: JSONValue, _ segment: PublishedSegment, _ bytes: [UInt8]) throws -> [String] {
    guard let decoders else {
      return try bytes.withUnsafeBytes { try SegmentFileVerification.problems(json, segment, MemoryBytes($0)) }
    }
    return try bytes.withUnsafeBytes { buffer in
      try ask(decoders, .problems, json.line, about: MemoryBytes(buffer), segment.file, into: ()) { _, answer in
        try answer.read([String].self).prefix(100).map { $0.shortened(to: 1_024) }
      }
    }
  }

  /// A segment's samples as they are stored.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``.
  package func samples(of segment: PublishedSegment, _ bytes: [UInt8]) throws -> StoredSamples {
    guard let decoders else {
      return try bytes.withUnsafeBytes { try StoredSamples(of: MemoryBytes($0), segment.file) }
    }
    return try bytes.withUnsafeBytes { buffer in
      let empty: (samples: [StoredSamples.Stored], bytes: Int) = ([], 0)
      return try ask(
        decoders, .samples, about: MemoryBytes(buffer), segment.file, into: empty,
        output: { found, message in
          let (index, track): (Int, Int) = (try message.read(), try message.read())
          let (pts, duration): (Int64, Int64) = (try message.read(), try message.read())
          let isNew = index == found.samples.count
          if isNew { found.samples.append(.init(track: track, pts: pts, duration: duration, data: [])) }
          guard index == found.samples.count - 1, index >= 0, index < segment.samples + segment.frames.count else {
            throw DecoderFailure.malformed
          }
          try message.withBytes { part in
            found.bytes += part.count
            guard found.bytes <= bytes.count, isNew || !part.isEmpty else { throw DecoderFailure.malformed }
            found.samples[index].data += part
          }
        }
      ) { found, answer in
        StoredSamples(configuration: try answer.read(WireBytes?.self)?.bytes, samples: found.samples)
      }
    }
  }

  /// Pictures of a published segment, made to fit.
  ///
  /// - Throws: ``BadSession``, ``FFmpegError``.
  package func pictures(
    of segment: PublishedSegment, _ bytes: [UInt8], _ order: SegmentPicturesOrder, _ converter: PictureConverter
  ) throws -> [FrameBuffer] {
    guard let decoders else {
      return try bytes.withUnsafeBytes { buffer in
        var pictures: [FrameBuffer] = []
        try SegmentPictures.decode(MemoryBytes(buffer), segment.file, order, converter) { pictures.append($0) }
        return pictures
      }
    }
    let empty: (pictures: [FrameBuffer], bytes: [UInt8]) = ([], [])
    let wanted = FrameBuffer.packedBytes(order.fitted, isRGB: order.isRGB)
    return try bytes.withUnsafeBytes { buffer in
      try ask(
        decoders, .pictures, order, about: MemoryBytes(buffer), segment.file, into: empty,
        output: { found, message in
          try message.withBytes { part in
            guard !part.isEmpty else { throw DecoderFailure.malformed }
            found.bytes += part
          }
          guard found.bytes.count <= wanted, found.pictures.count < order.starts.count else {
            throw DecoderFailure.malformed
          }
          guard found.bytes.count == wanted else { return }
          found.pictures.append(try FrameBuffer(unpacking: found.bytes, order.fitted, isRGB: order.isRGB))
          found.bytes = []
        }
      ) { found, _ in
        guard found.pictures.count == order.starts.count, found.bytes.isEmpty else { throw DecoderFailure.malformed }
        return found.pictures
      }
    }
  }

  /// Opens a film's track, to be decoded from a key frame on.
  ///
  /// - Parameters:
  ///   - keyDTS: when the key frame is decoded; nil for the first sample.
  ///   - body: gets the pictures while it runs.
  /// - Throws: ``BadSession``, ``FFmpegError``, ``Cancelled``, and what `body` throws.
  package func withFilm<R>(
    in file: any ByteSource, name: String, track: Int, keyDTS: Int64?, limits: Limits,
    isCancelled: @escaping () -> Bool, _ body: (any FilmPictures) throws -> R
  ) throws -> R {
    guard let decoders else {
      return try body(VideoPictures(file, name: name, track: track, keyDTS: keyDTS, limits: limits))
    }
    return try body(SandboxedFilm(self, decoders, file, name, limits, track: track, keyDTS: keyDTS, isCancelled))
  }

  // MARK: - Questions

  /// An answer that refuses the file. The decoder still works.
  struct Refusal: Error {
    package let error: any Error
  }

  /// Asks a decoder of this owner, and lets it wait for more. One that fails is replaced once: the machine may have stood still,
  /// or an earlier file may have done it.
  ///
  /// - Parameters:
  ///   - values: the question behind the file's size.
  ///   - empty: the result before anything has come.
  ///   - output: adds each part to the result.
  ///   - read: reads the answer.
  private func ask<each Value: WireValue, Parts, R>(
    _ decoders: DecoderForkServer, _ request: DecoderChild.Request, _ values: repeat each Value,
    about file: any ByteSource,
    _ name: String, into empty: Parts, isCancelled: @escaping () -> Bool = { false },
    output: @escaping (inout Parts, inout WireReader) throws -> Void = { _, _ in throw DecoderFailure.malformed },
    read: (Parts, inout WireReader) throws -> R
  ) throws -> R {
    var question = WireWriter()
    question.put(request, file.count, repeat each values)
    do {
      return try retryingOnce {
        let decoder = try decoders.decoder(for: owner, isLimited: false)
        var parts = empty
        do {
          var answer = try ask(decoder, decoders, question, about: file, name, isCancelled) { try output(&parts, &$0) }
          let result = try read(parts, &answer)
          decoders.keep(decoder, for: owner)
          return result
        } catch let refusal as Refusal {
          decoders.keep(decoder, for: owner)
          throw refusal.error
        } catch {
          throw try decoders.end(decoder, after: error)
        }
      }
    } catch {
      throw failure(name, decoders, error)
    }
  }

  /// Asks one decoder.
  ///
  /// - Throws: ``Refusal``, or why there is no answer.
  package func ask(
    _ decoder: DecoderProcess, _ decoders: DecoderForkServer, _ question: WireWriter, about file: any ByteSource,
    _ name: String, _ isCancelled: @escaping () -> Bool,
    output: @escaping (inout WireReader) throws -> Void = { _ in throw DecoderFailure.malformed }
  ) throws -> WireReader {
    var exchange = DecoderExchange()
    exchange.isCancelled = isCancelled
    exchange.output = output
    exchange.steps = decoders.limits.filmPictures
    // A file whose parts lie far apart is read in parts that are larger than needed.
    exchange.inputBytes = 64 << 20 + 64 * min(file.count, 1 << 40)
    exchange.input = { offset, count in
      var outcome = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
        outcome = file.read(at: offset, into: UnsafeMutableRawBufferPointer(bytes))
        filled = max(0, outcome)
      }
      guard outcome >= 0 else { throw DiskError("read", name) }
      return bytes
    }
    var answer = try decoder.ask(question.framed, seconds: decoders.limits.decodeSeconds, exchange)
    switch try answer.read(VideoAnswers.Outcome.self) {
    case .done: return answer
    case .bad:
      let (cause, advice): (String, String) = (try answer.read(), try answer.read())
      throw Refusal(error: BadSession(name, cause.shortened(to: 1_024), advice: advice.shortened(to: 1_024)))
    case .failed:
      let (function, code): (String, Int) = (try answer.read(), try answer.read())
      throw Refusal(
        error: FFmpegError(function: function.shortened(to: 64), code: Int32(truncatingIfNeeded: code)))
    case .outOfMemory:
      // End this decoder.
      throw BadSession(name, "it takes more memory than a video may", advice: "make it smaller")
    }
  }

  /// The error to throw when there was no answer: a decoder that crashes or hangs is the file's fault.
  package func failure(_ name: String, _ decoders: DecoderForkServer, _ error: any Error) -> any Error {
    func bad(_ cause: String) -> BadSession { BadSession(name, cause, advice: "check that the file is complete") }
    switch error {
    case DecoderFailure.gone: return DecoderOutOfResources()
    case DecoderFailure.late: return bad("reading it takes more than \(decoders.limits.decodeSeconds) s")
    case DecoderFailure.readLimitExceeded:
      return BadSession(
        name, "the reader process reads the same bytes again and again", advice: "remux it with ffmpeg -c copy")
    case DecoderFailure.crashed(let how): return bad("the video decoder crashed (\(how))")
    default: return error
    }
  }
}
