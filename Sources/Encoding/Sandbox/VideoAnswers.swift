// Answers of a decoder process about videos. The file stays with the worker: its bytes are asked for.

import CFFmpeg
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// Answers questions about one file after another.
final class VideoAnswers {
  /// The result, first in each answer.
  package enum Outcome: Int, WireValue { case done, bad, failed, outOfMemory }

  private let channel: DecoderChannel
  private let limits: Limits
  private let converter = PictureConverter()
  private var film: VideoPictures?

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
        let (track, keyDTS): (Int, Int64?) = (try question.read(), try question.read())
        film = nil
        film = try VideoPictures(file, name: "", track: track, keyDTS: keyDTS, limits: limits) { [channel] in
          channel.step()
        }
        channel.answer(Outcome.done)
      case .filmPicture:
        let (slot, pts, form) = (
          try question.slot(), try question.read(Int64.self), try question.read(VideoPictureForm.self)
        )
        let layout = try film?.picture(at: pts, as: form)?.lay(into: slots.space(of: slot))
        channel.answer(Outcome.done, layout)
      case .pictures:
        let order = try question.read(SegmentPicturesOrder.self)
        try SegmentPictures.decode(file, "", order, converter) { picture in
          picture.packed(isRGB: order.isRGB).withUnsafeBytes { channel.output($0) }
        }
        channel.answer(Outcome.done)
      case .problems:
        let json = try JSONParser.parse(Array(try question.read(String.self).utf8))
        channel.answer(Outcome.done, try SegmentFileVerification.problems(json, PublishedSegment(json), file))
      case .samples: try samples(of: file)
      case .probe, .decode, .unpack: throw DecoderFailure.malformed
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
      track.creationTime)
  }

  private func samples(of file: ChannelBytes) throws {
    let stored = try StoredSamples(of: file, "")
    for (index, sample) in stored.samples.enumerated() {
      sample.data.withUnsafeBytes {
        channel.output($0, behind: index, sample.track, sample.pts, sample.duration)
      }
    }
    channel.answer(Outcome.done, stored.configuration.map(WireBytes.init))
  }
}

/// A file that lies with the worker, read in parts of one size. Some of them are kept: a file may have its tracks one behind
/// the other, and is then read in several places in turn.
private final class ChannelBytes: ByteSource {
  let count: Int
  private let channel: DecoderChannel
  /// The least recently used first.
  private var parts: [(index: Int, bytes: [UInt8])] = []

  private static let maximumParts = 8

  init(_ channel: DecoderChannel, count: Int) {
    self.channel = channel
    self.count = count
  }

  func read(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
    guard (0..<count).contains(offset), !target.isEmpty else { return 0 }
    let (index, from) = offset.quotientAndRemainder(dividingBy: DecoderChannel.partBytes)
    let part = part(index)
    // Less than the size that was said is there: the file has become shorter.
    guard from < part.count else { return 0 }
    let size = min(target.count, part.count - from)
    part.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[from..<from + size])) }
    return size
  }

  private func part(_ index: Int) -> [UInt8] {
    if let last = parts.last, last.index == index { return last.bytes }
    if let found = parts.lastIndex(where: { $0.index == index }) {
      let part = parts.remove(at: found)
      parts.append(part)
      return part.bytes
    }
    if parts.count == Self.maximumParts { parts.removeFirst() }
    let bytes = [UInt8](unsafeUninitializedCapacity: DecoderChannel.partBytes) { bytes, filled in
      let offset = index * DecoderChannel.partBytes
      while filled < DecoderChannel.partBytes {
        let rest = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: bytes[filled...]))
        let read = channel.input(at: offset + filled, into: rest)
        guard read > 0 else { break }
        filled += read
      }
    }
    parts.append((index, bytes))
    return bytes
  }
}

// MARK: - Messages

extension VideoTrack.Sample: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    self.init(
      pts: try reader.read(), dts: try reader.read(), duration: try reader.read(), width: try reader.read(),
      height: try reader.read(), timeMs: try reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(pts, dts, duration, width, height, timeMs) }
}

extension VideoPictureForm: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    self.init(size: try reader.read(), quarterTurns: try reader.read(), maxSide: try reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(size, quarterTurns, maxSide) }
}

extension SegmentPicturesOrder: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    self.init(
      size: try reader.read(), coded: try reader.read(), starts: try reader.read(), box: try reader.read(),
      isRGB: try reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(size, coded, starts, box, isRGB) }
}
