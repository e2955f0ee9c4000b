// What a decoder's process answers about videos. The file stays with whoever asks: its bytes are asked for.

import CFFmpeg
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// Answers questions about one file after another.
package final class VideoAnswers {
  /// How it came out, first in each answer.
  package enum Outcome: Int { case done, bad, failed, outOfMemory }

  private let channel: DecoderChannel
  private let limits: Limits
  private let converter = PictureConverter()
  private var film: LocalFilm?

  init(_ channel: DecoderChannel, limits: Limits) {
    self.channel = channel
    self.limits = limits
  }

  package func track(fileBytes: Int) {
    answer { () throws -> (inout WireWriter) -> Void in
      let track = try VideoTrack(of: ChannelBytes(channel, count: fileBytes), name: "", limits: limits)
      for (list, isKey) in [(track.samples, false), (track.keys, true)] {
        for start in stride(from: 0, to: list.count, by: 4_096) {
          channel.output { message in
            message.put(isKey)
            message.put(Array(list[start..<min(list.count, start + 4_096)])) { $0.put($1) }
          }
        }
      }
      return { answer in
        answer.put(track.index)
        answer.put(Int(track.timeBase.numerator))
        answer.put(Int(track.timeBase.denominator))
        answer.put(track.quarterTurns)
        answer.put(track.creationTime) { $0.put($1) }
      }
    }
  }

  func openFilm(_ question: inout WireReader) throws(WireReader.Nonsense) {
    let file = ChannelBytes(channel, count: try question.int())
    let track = try question.int()
    let keyDTS = try question.optional { reader throws(WireReader.Nonsense) in Int64(try reader.int()) }
    film = nil
    answer { [channel, limits] () throws -> (inout WireWriter) -> Void in
      film = try LocalFilm(file, name: "", track: track, keyDTS: keyDTS, limits: limits) { channel.step() }
      return { _ in }
    }
  }

  func filmPicture(_ question: inout WireReader, into slots: PictureSlots) throws(WireReader.Nonsense) {
    _ = try question.int()
    let slot = try question.choice(of: Array(PictureSlots.indices))
    let pts = Int64(try question.int())
    let form = try question.videoPictureForm()
    answer { () throws -> (inout WireWriter) -> Void in
      guard let picture = try film?.picture(at: pts, as: form) else { return { $0.put(false) } }
      let layout = picture.lay(into: slots.space(of: slot))
      return { answer in
        answer.put(true)
        answer.put(layout)
      }
    }
  }

  package func pictures(_ question: inout WireReader) throws(WireReader.Nonsense) {
    let file = ChannelBytes(channel, count: try question.int())
    let order = try question.segmentPicturesOrder()
    answer { () throws -> (inout WireWriter) -> Void in
      try SegmentPictures.decode(file, "", order, converter) { picture in
        picture.packed(isRGB: order.isRGB).withUnsafeBytes { channel.output($0) { _ in } }
      }
      return { _ in }
    }
  }

  package func problems(_ question: inout WireReader) throws(WireReader.Nonsense) {
    let file = ChannelBytes(channel, count: try question.int())
    let manifest = try question.string()
    answer { () throws -> (inout WireWriter) -> Void in
      let json = try JSONParser.parse(Array(manifest.utf8))
      let problems = try SegmentFileVerification.problems(json, PublishedSegment(json), file)
      return { answer in answer.put(problems) { $0.put($1) } }
    }
  }

  package func samples(_ question: inout WireReader) throws(WireReader.Nonsense) {
    let file = ChannelBytes(channel, count: try question.int())
    answer { () throws -> (inout WireWriter) -> Void in
      let stored = try StoredSamples(of: file, "")
      for sample in stored.samples {
        func head(_ message: inout WireWriter) {
          message.put(true)
          message.put(sample.track)
          message.put(Int(sample.pts))
          message.put(Int(sample.duration))
        }
        sample.data.withUnsafeBytes { data in
          let first = UnsafeRawBufferPointer(rebasing: data.prefix(DecoderChannel.partBytes))
          if first.isEmpty {
            channel.output { message in
              head(&message)
              message.put([])
            }
          } else {
            channel.output(first, behind: head)
          }
          channel.output(UnsafeRawBufferPointer(rebasing: data.dropFirst(first.count))) { $0.put(false) }
        }
      }
      return { answer in answer.put(stored.configuration) { $0.put($1) } }
    }
  }

  private func answer(_ work: () throws -> (inout WireWriter) -> Void) {
    do {
      let put = try work()
      channel.answer { answer in
        answer.put(Outcome.done.rawValue)
        put(&answer)
      }
    } catch let bad as BadSession {
      channel.answer { answer in
        answer.put(Outcome.bad.rawValue)
        answer.put(bad.cause)
        answer.put(bad.advice)
      }
    } catch let failure as FFmpegError where !failure.isOutOfMemory {
      channel.answer { answer in
        answer.put(Outcome.failed.rawValue)
        answer.put(failure.function)
        answer.put(Int(failure.code))
      }
    } catch {
      channel.answer { $0.put(Outcome.outOfMemory.rawValue) }
    }
  }
}

/// A file that lies with whoever asks, read in parts of one size. Some of them are kept: a file may have its tracks one behind
/// the other, and is then read in several places in turn.
private final class ChannelBytes: ByteSource {
  let count: Int
  private let channel: DecoderChannel
  /// The least recently used first.
  private var parts: [(index: Int, bytes: [UInt8])] = []

  private static let mostParts = 8

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
    if parts.count == Self.mostParts { parts.removeFirst() }
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

// MARK: - What is sent

extension WireWriter {
  package mutating func put(_ sample: VideoTrack.Sample) {
    for value in [Int(sample.pts), Int(sample.dts), Int(sample.duration), sample.width, sample.height] { put(value) }
    put(sample.timeMs.map { Int($0) }) { $0.put($1) }
  }

  package mutating func put(_ form: VideoPictureForm) {
    put(form.size)
    put(form.quarterTurns)
    put(form.maxSide) { $0.put($1) }
  }

  package mutating func put(_ order: SegmentPicturesOrder) {
    put(order.size)
    put(order.coded)
    put(order.starts) { $0.put(Int($1)) }
    put(order.box)
    put(order.isRGB)
  }
}

extension WireReader {
  package mutating func sample() throws(Nonsense) -> VideoTrack.Sample {
    VideoTrack.Sample(
      pts: Int64(try int()), dts: Int64(try int()), duration: Int64(try int()), width: try int(), height: try int(),
      timeMs: try optional { reader throws(Nonsense) in Int64(try reader.int()) })
  }

  mutating func videoPictureForm() throws(Nonsense) -> VideoPictureForm {
    VideoPictureForm(
      size: try size(), quarterTurns: try int(),
      maxSide: try optional { reader throws(Nonsense) in try reader.int() })
  }

  mutating func segmentPicturesOrder() throws(Nonsense) -> SegmentPicturesOrder {
    SegmentPicturesOrder(
      size: try size(), coded: try size(), starts: try list { reader throws(Nonsense) in Int64(try reader.int()) },
      box: try size(), isRGB: try bool())
  }
}
