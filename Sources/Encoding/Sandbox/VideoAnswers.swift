// Answers of a decoder process about videos. The worker keeps the file; the decoder asks it for bytes.

import CFFmpeg
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// Answers questions about one file after another.
final class VideoAnswers {
  private let channel: DecoderChannel
  private let limits: Limits
  private let converter = PictureConverter()
  private var film: VideoPictures?
  /// The segment whose pictures were wanted last, and the time up to which it is decoded, in ticks.
  private var segment: (digest: String, reached: Int64, film: VideoPictures)?

  init(_ channel: DecoderChannel, limits: Limits) {
    self.channel = channel
    self.limits = limits
  }

  /// - Throws: ``DecoderFailure`` when the question makes no sense.
  func answer(_ kind: DecoderRequestKind, _ question: inout WireReader, into slots: PictureSlots) throws {
    switch kind {
    case .track: try answer(&question) { (_: TrackRequest, file) in try track(of: file) }
    case .openFilm: try answer(&question, open)
    case .filmPicture:
      try answer(&question) { (request: FilmPictureRequest, _) in
        try film?.picture(at: request.pts, as: request.form)?.lay(into: slots.buffer(request.slot))
      }
    case .pictures: try answer(&question, pictures)
    case .problems:
      try answer(&question) { (request: ProblemsRequest, file) in
        let json = try JSONParser.parse(Array(request.manifest.utf8))
        return try SegmentFileVerification.problems(
          json, PublishedSegment(json), file, step: channel.step)
      }
    case .samples: try answer(&question, samples)
    case .codedPicture:
      try answer(&question) { (order: CodedPictureOrder, file) in
        try channel.output(bytes: order.planes(of: file, "", step: channel.step))
        return NoValue()
      }
    case .isConfined, .decode, .unpack: throw DecoderFailure.malformed
    }
  }

  /// Reads a request, and sends the result of `work`.
  private func answer<Request: VideoRequest>(
    _ question: inout WireReader, _ work: (Request, ChannelBytes) throws -> Request.Answer
  ) throws {
    let question = try question.read(FileRequest<Request>.self)
    let outcome: VideoOutcome<Request.Answer>
    do {
      outcome = .done(try work(question.request, ChannelBytes(channel, count: question.fileBytes)))
    } catch let failure as DecoderFailure {
      throw failure
    } catch let bad as BadSession {
      outcome = .bad(cause: bad.cause, advice: bad.advice)
    } catch let failure as FFmpegError where !failure.isOutOfMemory {
      outcome = .failed(function: failure.function, code: Int(failure.code))
    } catch {
      outcome = .outOfMemory
    }
    channel.answer(to: FileRequest<Request>.self, outcome)
  }

  private func track(of file: ChannelBytes) throws -> TrackRequest.Answer {
    let track = try VideoTrack(of: file, name: "", limits: limits)
    for (list, isKey) in [(track.samples, false), (track.keys, true)] {
      for start in stride(from: 0, to: list.count, by: 4_096) {
        channel.output(TrackRequest.Part(isKey: isKey, samples: Array(list[start..<min(list.count, start + 4_096)])))
      }
    }
    return TrackRequest.Answer(track)
  }

  private func open(_ request: FilmRequest, _ file: ChannelBytes) throws -> NoValue {
    (film, segment) = (nil, nil)
    film = try VideoPictures(
      file, name: "", track: request.track, keyDTS: request.keyDTS, limits: limits, step: channel.step)
    return NoValue()
  }

  /// Goes on in the segment that is open if no wanted picture lies behind: neighbours need not be decoded from the key frame.
  private func pictures(_ order: SegmentPicturesOrder, of file: ChannelBytes) throws -> NoValue {
    guard let first = order.starts.first, let last = order.starts.last else { return NoValue() }
    let opened = segment.flatMap { $0.digest == order.digest && $0.reached <= first ? $0.film : nil }
    // An error leaves no film open.
    (film, segment) = (nil, nil)
    let film = try opened ?? VideoPictures.ofSegment(file, "", step: channel.step)
    try order.decode(film, "", converter) { picture in
      channel.output(bytes: picture.packed(isRGB: order.isRGB))
    }
    segment = (order.digest, last, film)
    return NoValue()
  }

  private func samples(_ request: SamplesRequest, of file: ChannelBytes) throws -> SamplesRequest.Answer {
    let stored = try StoredSamples(of: file, "", request.tracks)
    for (index, sample) in stored.samples.enumerated() {
      let head = SampleHead(
        index: index, track: sample.track, pts: sample.pts, duration: sample.duration, isKey: sample.isKey)
      channel.output(bytes: sample.data, after: head)
    }
    return SamplesRequest.Answer(configuration: stored.configuration, colour: stored.colour)
  }
}

/// A file of the worker, read in parts of one size. The latest parts are kept: when the file's tracks follow one another,
/// the reader alternates between several places.
private final class ChannelBytes: ByteSource {
  let count: Int
  private let channel: DecoderChannel
  private var parts = LRUCache<Int, [UInt8]>(limit: 8)

  init(_ channel: DecoderChannel, count: Int) {
    self.channel = channel
    self.count = count
  }

  func read(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
    guard (0..<count).contains(offset), unsafe !target.isEmpty else { return 0 }
    let (index, from) = offset.quotientAndRemainder(dividingBy: DecoderChannel.partBytes)
    let part = part(index)
    // The file is shorter now than when the worker told its size.
    guard from < part.count else { return 0 }
    let size = min(target.count, part.count - from)
    unsafe part.withUnsafeBytes {
      unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[from..<from + size]))
    }
    return size
  }

  private func part(_ index: Int) -> [UInt8] {
    if let bytes = parts.value(of: index) { return bytes }
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: DecoderChannel.partBytes) { bytes, filled in
      while filled < bytes.count {
        let unfilled = unsafe UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: bytes[filled...]))
        let read = unsafe channel.input(at: index * DecoderChannel.partBytes + filled, into: unfilled)
        guard read > 0 else { break }
        filled += read
      }
    }
    parts.insert(bytes, for: index)
    return bytes
  }
}
