// Answers of a decoder process about videos. The worker keeps the file; the decoder asks it for bytes.

import CFFmpeg
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// Answers questions about one file after another.
final class VideoAnswers {
  /// The result, first in each answer.
  enum Outcome: Int, WireValue { case done, bad, failed, outOfMemory }

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
  func answer(_ request: DecoderChild.Request, _ question: inout WireReader, into slots: PictureSlots) throws {
    let file = ChannelBytes(channel, count: try question.read())
    do {
      switch request {
      case .track: try track(of: file)
      case .openFilm:
        let (track, keyDTS): (Int, Int64?) = try (question.read(), question.read())
        (film, segment) = (nil, nil)
        film = try VideoPictures(file, name: "", track: track, keyDTS: keyDTS, limits: limits, step: channel.step)
        channel.answer(Outcome.done)
      case .filmPicture:
        let slot = try question.slot()
        let picture = try film?.picture(at: question.read(), as: question.read())
        channel.answer(Outcome.done, picture?.lay(into: slots.buffer(slot)))
      case .pictures: try pictures(of: file, question.read())
      case .problems:
        let json = try JSONParser.parse(Array(try question.read(String.self).utf8))
        channel.answer(Outcome.done, try SegmentFileVerification.problems(json, PublishedSegment(json), file))
      case .samples: try samples(of: file, question.read())
      case .codedPicture:
        let order = try question.read(CodedPictureOrder.self)
        try order.planes(of: file, "").withUnsafeBytes { channel.output($0) }
        channel.answer(Outcome.done)
      case .isConfined, .decode, .unpack: throw DecoderFailure.malformed
      }
    } catch let failure as DecoderFailure {
      throw failure
    } catch let bad as BadSession {
      channel.answer(Outcome.bad, bad.cause, bad.advice)
    } catch let failure as FFmpegError where !failure.isOutOfMemory {
      channel.answer(Outcome.failed, failure.function, Int(failure.code))
    } catch {
      channel.answer(Outcome.outOfMemory)
    }
  }

  private func track(of file: ChannelBytes) throws {
    let track = try VideoTrack(of: file, name: "", limits: limits)
    for (list, isKey) in [(track.samples, false), (track.keys, true)] {
      for start in stride(from: 0, to: list.count, by: 4_096) {
        channel.output(isKey, Array(list[start..<min(list.count, start + 4_096)]))
      }
    }
    channel.answer(
      Outcome.done, track.index, track.timeBase.numerator, track.timeBase.denominator, track.quarterTurns,
      track.creationTime, track.timingIndex, track.isOnlyVideo, track.hasEnd)
  }

  /// Goes on in the segment that is open if no wanted picture lies behind: neighbours need not be decoded from the key frame.
  private func pictures(of file: ChannelBytes, _ order: SegmentPicturesOrder) throws {
    guard let first = order.starts.first, let last = order.starts.last else { return channel.answer(Outcome.done) }
    let opened = segment.flatMap { $0.digest == order.digest && $0.reached <= first ? $0.film : nil }
    // An error leaves no film open.
    (film, segment) = (nil, nil)
    let film = try opened ?? SegmentPictures.film(of: file, "")
    try SegmentPictures.decode(film, "", order, converter) { picture in
      picture.packed(isRGB: order.isRGB).withUnsafeBytes { channel.output($0) }
    }
    segment = (order.digest, last, film)
    channel.answer(Outcome.done)
  }

  private func samples(of file: ChannelBytes, _ tracks: StoredSamples.Tracks) throws {
    let stored = try StoredSamples(of: file, "", tracks)
    for (index, sample) in stored.samples.enumerated() {
      sample.data.withUnsafeBytes {
        channel.output($0, after: index, sample.track, sample.pts, sample.duration, sample.isKey)
      }
    }
    channel.answer(Outcome.done, stored.configuration.map(WireBytes.init), stored.colour)
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
    guard (0..<count).contains(offset), !target.isEmpty else { return 0 }
    let (index, from) = offset.quotientAndRemainder(dividingBy: DecoderChannel.partBytes)
    let part = part(index)
    // The file is shorter now than when the worker told its size.
    guard from < part.count else { return 0 }
    let size = min(target.count, part.count - from)
    part.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[from..<from + size])) }
    return size
  }

  private func part(_ index: Int) -> [UInt8] {
    if let bytes = parts.value(of: index) { return bytes }
    let bytes = [UInt8](unsafeUninitializedCapacity: DecoderChannel.partBytes) { bytes, filled in
      while filled < bytes.count {
        let unfilled = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: bytes[filled...]))
        let read = channel.input(at: index * DecoderChannel.partBytes + filled, into: unfilled)
        guard read > 0 else { break }
        filled += read
      }
    }
    parts.insert(bytes, for: index)
    return bytes
  }
}

// MARK: - Messages

extension VideoTrack.Sample: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(
      pts: reader.read(), dts: reader.read(), duration: reader.read(), width: reader.read(), height: reader.read(),
      timeMs: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(pts, dts, duration, width, height, timeMs) }
}

extension VideoPictureForm: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(size: reader.read(), quarterTurns: reader.read(), maxSide: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(size, quarterTurns, maxSide) }
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

extension SegmentPicturesOrder: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(
      digest: reader.read(), size: reader.read(), coded: reader.read(), starts: reader.read(), box: reader.read(),
      isRGB: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(digest, size, coded, starts, box, isRGB) }
}
