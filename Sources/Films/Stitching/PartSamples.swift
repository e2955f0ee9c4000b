import Encoding
import FileSystem
import ISOMedia
import Sessions

/// The samples of a part of a film, and the passes over them. The order of the passes matters: see ``FilmWriter``.
struct PartSamples<Videos: SegmentVideos> {
  private(set) var samples: SegmentSamples
  private let plan: StitchPlan
  private let part: StitchPlan.Part
  private let videos: Videos
  private let bytes: [UInt8]
  /// The start of the first picture's sample, in ticks from the segment's start.
  private var start: Int64 = 0

  private var segment: PublishedSegment { part.segment }
  /// The end in milliseconds from the segment's start.
  private var endMs: Int64 { part.skippedMs + part.sessionMs - part.earlyMs }

  init(_ part: StitchPlan.Part, of plan: StitchPlan, from videos: Videos) throws {
    (self.part, self.plan, self.videos) = (part, plan, videos)
    bytes = try videos.video(of: part.segment)
    samples = try SegmentSamples(of: part.segment, bytes: bytes, reader: videos.reader)
  }

  /// Holds the last picture until the next part.
  mutating func fillTime() throws {
    let isShorter = part.isOnlyFirst && endMs < segment.endMs - segment.startMs
    if !isShorter { try samples.stretch(toMs: endMs, gapMs: part.gapMs, file: segment.file) }
  }

  /// Counts the times in the texts from the first picture, for pictures without a clock.
  mutating func countTimes() throws {
    if let zeroMs = plan.zeroMs { try samples.countTimes(fromMs: zeroMs, file: segment.file) }
  }

  /// Removes the pictures that the film does not show, and the repeats of the segment: the film has its own.
  mutating func cut() {
    start = samples.removeBeginning(ofMs: part.skippedMs)
    if part.isOnlyFirst {
      samples.keepFirst(forMs: endMs - part.skippedMs, gapMs: part.gapMs)
    } else {
      samples.removeRepeats()
    }
  }

  mutating func shortenIdle() throws {
    try samples.shortenIdle(of: part)
    samples.lead(byMs: part.earlyMs)
  }

  mutating func retime(_ clock: inout FilmClock) {
    if plan.speed != .normal { samples.retime(from: MediaTime.ticks(ms: part.startMs), &clock) }
  }

  mutating func divideUnreadable() throws { try samples.divideUnreadable(segment.file) }

  /// Makes a key frame of the first picture. An imported video may have one there.
  mutating func open() throws {
    guard start > 0, samples.video.first?.isKey != true else { return }
    let (start, segment, bytes, reader) = (start, segment, bytes, videos.reader)
    do {
      try samples.open { writer in
        let order = CodedPictureOrder(start: start, columns: writer.columns, rows: writer.rows)
        return try reader.planes(of: order, in: segment, bytes)
      }
    } catch is SegmentMismatch {
      throw BadSession(
        segment.file, "the video of another encoder, which cannot be cut between its key frames",
        advice: "begin at \(segment.startMs), or run reencode first")
    } catch let error as FFmpegError {
      throw BadSession(segment.file, "\(error)")
    }
  }
}
