// A finished video on the session's timeline: its frames, and the segments that it becomes.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

package struct CopiedVideo {
  package let name: String
  /// Of the file.
  let sha256: String
  let startMs: Int64
  private(set) var endMs: Int64
  let intervalMs: Int64
  private let video: FinishedVideo
  private let event: VideoEvent?
  /// nil if there is none, or if it describes another file.
  private let manifest: PublishedSegment?
  /// The time behind the video that its recorder did not record, in milliseconds, as far as it is known.
  private(set) var gapAfterMs: Int64 = 0
  /// The picture as captured, in pixels.
  private let size: PixelSize
  /// Whether the frames are those of our timing track, and the samples keep their exact times.
  private let isOurs: Bool
  private var frames: [PlacedFrame]
  private var refused: [RefusedFrame] = []
  /// Remarks for people.
  package private(set) var warnings: [String] = []

  /// A frame on screen.
  private struct PlacedFrame {
    let startMs: Int64
    let timeMs: Int64
    let source: String
    let isContinued: Bool
    let isRounded: Bool
  }

  static let roundingNote = "had a time that is no whole millisecond; it was rounded to the nearest one"

  /// - Throws: ``BadSession`` if the video cannot be copied, ``FFmpegError`` if it cannot be read.
  ///
  /// - Parameter manifest: ours beside the video; nil if there is none.
  init(
    _ bytes: [UInt8], named name: String, startMs: Int64, _ event: VideoEvent?, _ manifest: PublishedSegment?,
    _ reader: VideoReader, _ limits: Limits, _ cancellation: Cancellation
  ) throws {
    let video = try FinishedVideo(reading: bytes, name: name, reader, limits: limits, cancellation: cancellation)
    let timing = video.timing.flatMap { Self.frames(of: $0, startMs: startMs, limits) }
    let coded = video.samples.enumerated().map { number, sample in
      PlacedFrame(
        startMs: startMs + sample.startMs, timeMs: startMs + sample.startMs, source: "\(name)#\(number)",
        isContinued: false, isRounded: sample.isRounded)
    }
    frames = timing ?? coded
    self.video = video
    (self.name, self.startMs, self.event) = (name, startMs, event)
    let sha256 = SHA256.hex(of: bytes)
    let manifest = manifest.flatMap { $0.sha256 == sha256 && $0.startMs == startMs ? $0 : nil }
    self.sha256 = sha256
    self.manifest = manifest
    gapAfterMs = manifest?.gapAfterMs ?? 0
    isOurs = timing != nil
    size = timing == nil ? video.size : Self.captured(video.size, event)
    intervalMs = manifest?.intervalMs ?? Self.interval(event, captures: frames.map(\.timeMs))
    endMs = startMs + video.durationMs
    if !video.isLastHeld {
      // Android's muxer has no duration for a picture that is alone.
      guard video.durationMs > 0 || event?.hasDuration == true else { throw NoDuration() }
      endMs += intervalMs
      warnings.append("its last picture has no duration in the file, and is shown for \(intervalMs) ms")
    }
    guard endMs - startMs <= MediaTime.maximumSampleMs, limits.instants.contains(endMs) else {
      throw BadSession(name, "it lasts too long", advice: "check the event's timestamp")
    }
    if video.timing != nil, timing == nil {
      warnings.append("its timing track is of another time than its event, and is not used")
    }
    if let said = event?.bytes, said != bytes.count {
      warnings.append("\(bytes.count) bytes, and its event describes a video of \(said): is it the right one?")
    }
  }

  /// Returns the nominal interval of captures: as the event says, else as in a batch.
  private static func interval(_ event: VideoEvent?, captures: [Int64]) -> Int64 {
    guard let rate = event?.frameRate, (1...1_000).contains(rate) else { return Batch.nominalInterval(of: captures) }
    return (1_000 + rate / 2) / rate
  }

  /// Returns the frames of a timing track; nil if they were captured at other times than the event says.
  private static func frames(
    of timing: [FinishedVideo.Timing], startMs: Int64, _ limits: Limits
  ) -> [PlacedFrame]? {
    let isSame = timing.enumerated().allSatisfy { index, frame in
      limits.instants.contains(frame.timeMs)
        && (frame.isContinued ? index == 0 && frame.timeMs < startMs : frame.timeMs == startMs + frame.startMs)
    }
    guard isSame else { return nil }
    return timing.map {
      PlacedFrame(
        startMs: startMs + $0.startMs, timeMs: $0.timeMs, source: $0.source, isContinued: $0.isContinued,
        isRounded: false)
    }
  }

  /// Returns the size that the event states, if it differs only by the column or row that coding adds.
  private static func captured(_ coded: PixelSize, _ event: VideoEvent?) -> PixelSize {
    func side(_ said: Int64?, _ coded: Int) -> Int { said == Int64(coded) - 1 && coded > 1 ? coded - 1 : coded }
    return PixelSize(width: side(event?.width, coded.width), height: side(event?.height, coded.height))
  }

  /// When the last frame comes on screen.
  var lastShownMs: Int64 { frames[frames.count - 1].startMs }

  /// Whether `next` begins so little before the end that the last picture's hold can close it. See CONTRACT, seams.
  func isSeam(before next: CopiedVideo) -> Bool {
    2 * (endMs - next.startMs) < intervalMs && next.startMs > lastShownMs
  }

  /// Tells the gap before the next video. A picture of ours that was held for exactly the maximum was cut there (`--max-hold`), and
  /// even a short time behind it is a gap.
  mutating func meet(_ next: CopiedVideo) {
    guard manifest == nil, isOurs, next.startMs > endMs, let last = frames.last else { return }
    if endMs - last.timeMs == EncodingOptions().maxHoldMs { gapAfterMs = next.startMs - endMs }
  }

  /// Ends the video at an instant, which another one shows from then on. The pictures behind it are left out.
  mutating func cut(atMs cutMs: Int64, for next: String) {
    let left = frames.filter { $0.startMs >= cutMs }
    frames.removeAll { $0.startMs >= cutMs }
    refused += left.map { RefusedFrame(source: $0.source, reason: "\(next) shows this time") }
    warnings.append(
      "cut \(endMs - cutMs) ms before its end, where \(next) begins; \(count(left.count, "frame")) left out"
    )
    endMs = cutMs
    gapAfterMs = 0
  }
}

/// A video that has no duration at all.
struct NoDuration: Error {}

// MARK: - As segments

extension CopiedVideo {
  /// Identifies the segments of this video.
  func digest(in session: SessionID) -> String {
    SHA256.hex(of: Array("segment-import/1\n\(session)\n\(sha256) \(startMs) \(endMs)\n".utf8))
  }

  /// All that decides how the samples are decoded. Segments with the same value have the same sample description.
  var encoder: JSONValue {
    let colour = video.colour.map { "\($0.primaries) \($0.transfer) \($0.matrix) \($0.isFullRange)" } ?? "none"
    let description = SHA256.hex(of: video.parameterSets.configuration + Array(colour.utf8))
    return .object(["imported": .bool(true), "description": .string(String(description.prefix(16)))])
  }

  /// Returns the batch of this video alone.
  ///
  /// - Parameters:
  ///   - whole: the batch that it is in.
  ///   - isLast: whether no video of that batch follows.
  func batch(of whole: Batch, named name: String, isLast: Bool) -> Batch {
    var origin: [String: JSONValue] = ["file": .string(self.name), "sha256": .string(sha256)]
    origin["segmentId"] = event?.segmentID.map { .number($0) }
    var batch = Batch(
      name: name, session: whole.session, intervalMs: intervalMs, endMs: endMs, capture: .onChange,
      isFinal: manifest?.isFinal ?? false || isLast && whole.isFinal,
      frames: frames.map { Frame(source: $0.source, path: self.name, timeMs: $0.timeMs) }, refused: refused,
      warnings: [],
      metadata: .object(["importedFrom": .object(origin)]), traceParent: whole.traceParent)
    // A segment of another program tells nothing of the time behind it.
    batch.capturesChanges = manifest?.capturesChanges ?? false
    batch.isEndOpen = manifest?.isEndOpen ?? false
    batch.clockOffsetMs = whole.clockOffsetMs
    return batch
  }

  /// Refused frames of the manifests.
  func refusedFrames(_ limits: Limits) -> [RefusedFrame] { refused.shortened(to: limits) }

  /// Remarks on frames, by capture.
  var notes: [Int64: String] {
    Dictionary(frames.filter(\.isRounded).map { ($0.timeMs, Self.roundingNote) }, uniquingKeysWith: { $1 })
  }

  /// Returns the segments, each of which begins with a key frame: a long video is cut at key frames where a batch would be cut.
  func segments() throws(SegmentMismatch) -> [EncodedSegment] {
    let samples = samplesInTicks
    var pieces: [(frames: Range<Int>, startMs: Int64)] = []
    let keys = Set(samples.filter(\.isIDR).map(\.start))
    for (index, frame) in frames.enumerated() {
      let isCut =
        pieces.last.map { last in
          2 * (frame.startMs - last.startMs - Timeline.defaultSegmentMs) >= -intervalMs
            && keys.contains(MediaTime.ticks(ms: frame.startMs - startMs))
        } ?? true
      if isCut {
        pieces.append((index..<index + 1, frame.startMs))
      } else {
        pieces[pieces.count - 1].frames = pieces[pieces.count - 1].frames.lowerBound..<index + 1
      }
    }
    var segments: [EncodedSegment] = []
    var rest = samples[...]
    for (index, piece) in pieces.enumerated() {
      let untilMs = index + 1 < pieces.count ? pieces[index + 1].startMs : endMs
      let to = MediaTime.ticks(ms: untilMs - startMs)
      let own = rest.prefix { $0.start < to }
      rest = rest.dropFirst(own.count)
      let ends = own.dropFirst().map(\.start) + [to]
      segments.append(
        try EncodedSegment(
          copying: zip(own, ends).map { Sample(duration: $1 - $0.start, data: $0.data, isKey: $0.isIDR) }, of: video,
          holds: holds(of: piece.frames, untilMs: untilMs)))
    }
    return segments
  }

  private func holds(of range: Range<Int>, untilMs: Int64) -> [FrameHold] {
    range.map { index in
      let frame = frames[index]
      let isLast = index + 1 == range.upperBound
      return FrameHold(
        capture: Capture(source: frame.source, timeMs: frame.timeMs, width: size.width, height: size.height),
        status: frame.isContinued ? .continued : .captured, startMs: frame.startMs,
        holdMs: (isLast ? untilMs : frames[index + 1].startMs) - frame.startMs, opensSegment: index == range.lowerBound,
        closingGapMs: isLast ? (untilMs == endMs ? gapAfterMs : 0) : nil)
    }
  }

  /// The coded samples up to the end, with their starts in ticks. Those of our own segments are exact; others start at the
  /// capture of their frame.
  private var samplesInTicks: [(start: Int64, isIDR: Bool, data: [UInt8])] {
    let end = MediaTime.ticks(ms: endMs - startMs)
    return video.samples.map { sample in
      (isOurs ? sample.startTicks : MediaTime.ticks(ms: sample.startMs), sample.isIDR, sample.data)
    }.filter { $0.0 < end }
  }
}
