// Reads untrusted videos, in a decoder process or in this process.

import FileSystem
import FrameBatches
import Glibc
import ISOMedia
import JSON

/// A reader of videos, for any thread. It throws ``BadSession``, ``FFmpegError`` and ``Cancelled``.
package struct VideoReader: Sendable {
  /// nil to read trusted videos in this process.
  package let decoders: DecoderForkServer?
  /// The owner of the bytes: a decoder sees one owner's bytes only.
  let owner: String

  package init(_ decoders: DecoderForkServer? = nil, owner: String = "") {
    FFmpegLog.silence()
    self.decoders = decoders
    self.owner = "video " + owner
  }

  /// Reads the track of a file that can be re-encoded.
  package func track(
    of file: any ByteSource, name: String, limits: Limits, cancellation: Cancellation
  ) throws -> VideoTrack {
    guard let decoders else { return try VideoTrack(of: file, name: name, limits: limits, cancellation: cancellation) }
    let empty: (samples: [VideoTrack.Sample], keys: [VideoTrack.Sample]) = ([], [])
    return try ask(decoders, TrackRequest(), about: file, name, into: empty, cancellation: cancellation) {
      found, part in
      guard !part.samples.isEmpty,
        max(found.samples.count, found.keys.count) + part.samples.count <= limits.filmPictures
      else { throw DecoderFailure.malformed }
      if part.isKey { found.keys += part.samples } else { found.samples += part.samples }
    } read: { found, answer in
      let areSound = [found.samples, found.keys].allSatisfy { list in
        !list.isEmpty && zip(list, list.dropFirst()).allSatisfy { $0.pts <= $1.pts }
          && list.allSatisfy { $0.isWithin(limits) }
      }
      guard areSound else { throw DecoderFailure.malformed }
      return answer.track(found.samples, keys: found.keys)
    }
  }

  /// Returns the differences between a segment's file and its manifest.
  package func problems(_ json: JSONValue, _ segment: PublishedSegment, _ bytes: [UInt8]) throws -> [String] {
    try bytes.withFile { file in
      guard let decoders else { return try SegmentFileVerification.problems(json, segment, file) }
      let request = ProblemsRequest(manifest: json.line)
      return try ask(decoders, request, about: file, segment.file, into: (), cancellation: .never) { _, answer in
        answer.prefix(100).map { $0.shortened(to: 1_024) }
      }
    }
  }

  /// Reads a segment's samples as they are stored.
  package func samples(of segment: PublishedSegment, _ bytes: [UInt8]) throws -> StoredSamples {
    try samples(of: bytes, segment.file, .ofSegment, limit: segment.samples + segment.frames.count)
  }

  /// Reads the samples of some tracks as they are stored.
  ///
  /// - Parameters:
  ///   - name: names the file in errors.
  ///   - limit: the maximum number of samples.
  package func samples(
    of bytes: [UInt8], _ name: String, _ tracks: StoredSamples.Tracks, limit: Int,
    cancellation: Cancellation = .never
  ) throws -> StoredSamples {
    try bytes.withFile { file in
      guard let decoders else { return try StoredSamples(of: file, name, tracks) }
      let empty: (samples: [StoredSamples.Stored], bytes: Int) = ([], 0)
      return try ask(
        decoders, SamplesRequest(tracks: tracks), about: file, name, into: empty, cancellation: cancellation
      ) { found, part in
        let (sample, index) = (part.sample, part.sample.index)
        let isNew = index == found.samples.count
        if isNew {
          found.samples.append(
            .init(track: sample.track, pts: sample.pts, duration: sample.duration, isKey: sample.isKey, data: []))
        }
        guard index == found.samples.count - 1, index >= 0, index < limit else { throw DecoderFailure.malformed }
        found.bytes += part.bytes.bytes.count
        guard found.bytes <= bytes.count, isNew || !part.bytes.bytes.isEmpty else { throw DecoderFailure.malformed }
        found.samples[index].data += part.bytes.bytes
      } read: { found, answer in
        StoredSamples(configuration: answer.configuration, colour: answer.colour, samples: found.samples)
      }
    }
  }

  /// Decodes pictures of a published segment and scales them to fit.
  package func pictures(
    of segment: PublishedSegment, _ bytes: [UInt8], _ order: SegmentPicturesOrder, _ converter: PictureConverter
  ) throws -> [FrameBuffer] {
    try bytes.withFile { file in
      var parts: (pictures: [FrameBuffer], bytes: [UInt8]) = ([], [])
      guard let decoders else {
        let film = try VideoPictures.ofSegment(file, segment.file)
        try order.decode(film, segment.file, converter) { parts.pictures.append($0) }
        return parts.pictures
      }
      let wanted = FrameBuffer.packedBytes(order.fitted, isRGB: order.isRGB)
      return try ask(
        decoders, order, about: file, segment.file, digest: order.digest, into: parts, cancellation: .never
      ) { found, part in
        guard !part.bytes.isEmpty else { throw DecoderFailure.malformed }
        if found.bytes.isEmpty { found.bytes.reserveCapacity(wanted) }
        found.bytes += part.bytes
        guard found.bytes.count <= wanted, found.pictures.count < order.starts.count else {
          throw DecoderFailure.malformed
        }
        guard found.bytes.count == wanted else { return }
        found.pictures.append(try FrameBuffer(unpacking: found.bytes, order.fitted, isRGB: order.isRGB))
        found.bytes = []
      } read: { found, _ in
        guard found.pictures.count == order.starts.count, found.bytes.isEmpty else { throw DecoderFailure.malformed }
        return found.pictures
      }
    }
  }

  /// Decodes one picture of a published segment, with the columns and rows that players crop.
  ///
  /// - Returns: the planes, one after the other, without gaps.
  package func planes(of order: CodedPictureOrder, in segment: PublishedSegment, _ bytes: [UInt8]) throws -> [UInt8] {
    try bytes.withFile { file in
      guard let decoders else { return try order.planes(of: file, segment.file) }
      return try ask(
        decoders, order, about: file, segment.file, into: [UInt8](), cancellation: .never
      ) { found, part in
        guard !part.bytes.isEmpty, found.count + part.bytes.count <= order.bytes else {
          throw DecoderFailure.malformed
        }
        found += part.bytes
      } read: { found, _ in
        guard found.count == order.bytes else { throw DecoderFailure.malformed }
        return found
      }
    }
  }

  /// Opens a film's track and passes its pictures to `body`.
  ///
  /// - Parameter keyDTS: the decoding time of the key frame to start at; nil for the first sample.
  package func withFilm<R>(
    in file: any ByteSource, name: String, track: Int, keyDTS: Int64?, limits: Limits,
    cancellation: Cancellation, _ body: (any FilmPictures) throws -> R
  ) throws -> R {
    try body(
      film(
        in: file, name: name, track: track, keyDTS: keyDTS, limits: limits, cancellation: cancellation))
  }

  /// Opens a film; see ``withFilm(in:name:track:keyDTS:limits:cancellation:_:)``.
  package func film(
    in file: any ByteSource, name: String, track: Int, keyDTS: Int64?, limits: Limits, cancellation: Cancellation
  ) throws -> any FilmPictures {
    guard let decoders else {
      return try VideoPictures(file, name: name, track: track, keyDTS: keyDTS, limits: limits)
    }
    return SandboxedFilm(self, decoders, file, name, limits, track: track, keyDTS: keyDTS, cancellation)
  }

  /// An answer that refuses the file. The decoder still works.
  struct Refusal: Error { let error: any Error }

  /// Asks a decoder of this owner, and keeps it for the next question. Retries once in a new decoder: the machine may have stood
  /// still, or an earlier file may be to blame.
  ///
  /// - Parameters:
  ///   - digest: of a file that stays open in the decoder; nil for others.
  ///   - empty: the result before the first part; `add` adds each part to it.
  ///   - read: reads the answer.
  private func ask<Request: VideoRequest, Parts, R>(
    _ decoders: DecoderForkServer, _ request: Request, about file: any ByteSource, _ name: String,
    digest: String? = nil, into empty: Parts, cancellation: Cancellation,
    add: @escaping (inout Parts, Request.Part) throws -> Void = { _, _ in },
    read: (Parts, Request.Answer) throws -> R
  ) throws -> R {
    do {
      return try retryingOnce {
        let decoder = try decoders.decoder(for: owner, file: digest, isLimited: false)
        var parts = empty
        do {
          let answer = try ask(decoder, decoders, request, about: file, name, cancellation) { try add(&parts, $0) }
          let result = try read(parts, answer)
          decoders.keep(decoder, for: owner, file: digest)
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

  /// - Throws: ``Refusal``, or the reason why there is no answer.
  func ask<Request: VideoRequest>(
    _ decoder: DecoderProcess, _ decoders: DecoderForkServer, _ request: Request, about file: any ByteSource,
    _ name: String, _ cancellation: Cancellation, add: @escaping (Request.Part) throws -> Void = { _ in }
  ) throws -> Request.Answer {
    // The decoder reads whole parts, more than it needs when the file's data lie far apart.
    let inputBytes = (64 << 20) + 64 * min(file.count, 1 << 40)
    let exchange = DecoderExchange(
      input: { offset, count in
        try unsafe [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
          let outcome = unsafe file.read(at: offset, into: UnsafeMutableRawBufferPointer(bytes))
          guard outcome >= 0 else { throw DiskError("read", name) }
          filled = outcome
        }
      }, output: { try add($0.read()) }, inputBytes: inputBytes, steps: decoders.limits.filmPictures,
      cancellation: cancellation)
    let question = FileRequest(fileBytes: file.count, request: request)
    switch try decoder.ask(question, seconds: decoders.limits.decodeSeconds, exchange) {
    case .done(let answer): return answer
    case .bad(let cause, let advice): throw Refusal(error: BadSession(name, cause, advice: advice))
    case .failed(let function, let code):
      throw Refusal(error: FFmpegError(function: function, code: Int32(truncatingIfNeeded: code)))
    case .outOfMemory:
      // End this decoder.
      throw BadSession(name, "it takes more memory than a video may", advice: "make it smaller")
    }
  }

  /// Returns the error to throw when there was no answer: the file is to blame for a decoder that crashes or hangs.
  func failure(_ name: String, _ decoders: DecoderForkServer, _ error: any Error) -> any Error {
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

extension [UInt8] {
  /// Passes these bytes as a file that is valid during the call.
  func withFile<R>(_ body: (MemoryBytes) throws -> R) rethrows -> R {
    try unsafe withUnsafeBytes { try unsafe body(MemoryBytes($0)) }
  }
}
