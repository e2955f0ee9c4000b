// A finished H.264 video whose coded samples can be copied into segments of our form: no picture is reordered or hidden, and the
// first one is an IDR. Another program wrote it, and a decoder process read it: nothing in it is trusted.

import FileSystem
import FrameBatches
import ISOMedia
import JSON

package struct FinishedVideo {
  /// A coded sample.
  package struct Coded {
    /// When it is shown, in milliseconds from the first one, to the nearest.
    package let startMs: Int64
    /// The same in ticks, if the whole video is in ticks of ``MediaTime/timescale``; else as ``startMs``.
    package let startTicks: Int64
    /// Whether its time in the file is no whole millisecond.
    package let isRounded: Bool
    /// Whether no later sample needs an earlier one.
    package let isIDR: Bool
    package let data: [UInt8]
  }

  /// A sample of the timing track.
  package struct Timing {
    package let startMs: Int64
    package let holdMs: Int64
    /// The capture, in unix milliseconds.
    package let timeMs: Int64
    package let source: String
    package let isContinued: Bool
  }

  package let parameterSets: ParameterSets
  /// nil if the sample description has none.
  package let colour: VideoColour?
  /// In pixels, as coded.
  package let size: PixelSize
  /// In order; at least one. The first one starts at 0.
  package let samples: [Coded]
  /// The time from the first picture to the end, in milliseconds; that of the last picture if the file has no duration for it.
  package let durationMs: Int64
  /// Whether the last picture has a duration.
  package let isLastHeld: Bool
  /// The frames in our timing track, contiguous, each with a sample at its start; nil if there is no such track.
  package let timing: [Timing]?
}

extension FinishedVideo {
  /// The remedy for a video that cannot be copied.
  package static let advice = "encode it anew with reencode"

  /// Reads a video.
  ///
  /// - Parameter name: names the file in errors.
  /// - Throws: ``BadSession`` if it cannot be copied as it is, ``FFmpegError`` if it cannot be read.
  package init(
    reading bytes: [UInt8], name: String, _ reader: VideoReader, limits: Limits, cancellation: Cancellation
  ) throws {
    let track = try bytes.withFile {
      try reader.track(of: $0, name: name, limits: limits, cancellation: cancellation)
    }
    // Every sample has a byte at least.
    let stored = try reader.samples(
      of: bytes, name, StoredSamples.Tracks(video: track.index, timing: track.timingIndex, areSome: true),
      limit: min(2 * limits.filmPictures, bytes.count), cancellation: cancellation)
    try self.init(track, stored, name: name)
  }

  private init(_ track: VideoTrack, _ stored: StoredSamples, name: String) throws(BadSession) {
    func bad(_ cause: String) -> BadSession { BadSession(name, cause, advice: Self.advice) }
    guard track.isOnlyVideo else { throw bad("several video tracks") }
    guard let configuration = stored.configuration, AV1Record(configuration) == nil else {
      throw bad("no H.264 track")
    }
    guard configuration.count > 4, configuration[4] & 3 == 3, let sets = ParameterSets(configuration: configuration),
      sets.isOrdinary420
    else { throw bad("another kind of H.264 than segments have: several parameter sets, or no 4:2:0 of 8 bits") }
    // PQ and HLG.
    guard ![16, 18].contains(stored.colour?.transfer) else { throw bad("high dynamic range (PQ or HLG)") }
    guard track.quarterTurns == 0 else { throw bad("its pictures are turned") }
    let first = track.samples[0]
    guard track.samples.allSatisfy({ $0.width == first.width && $0.height == first.height }) else {
      throw bad("pictures of several sizes")
    }
    let video = stored.samples.filter { $0.track == 0 && !$0.data.isEmpty }
    guard zip(video, video.dropFirst()).allSatisfy({ $0.pts < $1.pts }) else {
      throw bad("its pictures are not stored in the order in which they are shown (B-frames)")
    }
    guard video.map(\.pts) == track.samples.map(\.pts) else {
      throw bad("it has pictures that are not shown (an edit list)")
    }
    let clock = MediaClock(track)
    var samples: [Coded] = []
    for sample in video {
      guard let time = clock.milliseconds(sample.pts) else { throw bad("times that cannot be captures") }
      if let last = samples.last, last.startMs >= time.ms { throw bad("two pictures in one millisecond") }
      guard let isIDR = Self.isIDR(sample.data, sets) else { throw bad("a sample that segments cannot have") }
      samples.append(
        Coded(
          startMs: time.ms, startTicks: clock.ticks(sample.pts) ?? MediaTime.ticks(ms: time.ms),
          isRounded: !time.isExact, isIDR: isIDR, data: sample.data))
    }
    guard samples[0].isIDR else { throw bad("it does not begin with a key frame") }
    let last = video[video.count - 1]
    let lastDuration = track.hasEnd ? max(0, last.duration) : 0
    guard lastDuration < 1 << 60, let end = clock.milliseconds(last.pts + lastDuration) else {
      throw bad("times that cannot be captures")
    }
    parameterSets = sets
    colour = stored.colour
    size = PixelSize(width: first.width, height: first.height)
    self.samples = samples
    isLastHeld = end.ms > samples[samples.count - 1].startMs
    durationMs = end.ms
    timing = clock.isOurs && end.isExact ? Self.timing(in: stored.samples, of: samples, endMs: end.ms) : nil
  }

  /// Whether a sample is an IDR (ITU-T H.264, 7.4.1); nil if its NAL units do not fill it, or change the parameter sets.
  private static func isIDR(_ sample: [UInt8], _ sets: ParameterSets) -> Bool? {
    var (offset, slices, keys) = (0, 0, 0)
    while offset < sample.count {
      guard offset + 4 < sample.count else { return nil }
      let length = sample[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
      offset += 4
      guard (1...sample.count - offset).contains(length) else { return nil }
      let unit = sample[offset..<offset + length]
      offset += length
      switch NALUnit.Kind(rawValue: unit[unit.startIndex] & 0x1F) {
      case .slice: slices += 1
      case .keySlice: keys += 1
      case .sequenceParameterSet: guard unit.elementsEqual(sets.sequence) else { return nil }
      case .pictureParameterSet: guard unit.elementsEqual(sets.picture) else { return nil }
      case nil: break
      }
    }
    return (slices == 0) != (keys == 0) ? keys > 0 : nil
  }

  /// Reads the texts of our timing track; nil if they are not as we write them.
  private static func timing(in stored: [StoredSamples.Stored], of samples: [Coded], endMs: Int64) -> [Timing]? {
    let tick = MediaTime.ticks(ms: 1)
    let starts = Set(samples.map(\.startTicks))
    var timing: [Timing] = []
    var end: Int64 = 0
    for sample in stored where sample.track == 1 {
      guard sample.pts == end, sample.duration > 0, sample.duration % tick == 0, starts.contains(sample.pts),
        sample.duration <= MediaTime.ticks(ms: MediaTime.maximumSampleMs),
        sample.data.count > 2, let text = try? JSONParser.parse(Array(sample.data.dropFirst(2))),
        let timeMs = text.object?["t"]?.integer, let source = text.object?["f"]?.string
      else { return nil }
      timing.append(
        Timing(
          startMs: end / tick, holdMs: sample.duration / tick, timeMs: timeMs,
          source: source.shortened(to: FrameHold.sourceBytes),
          isContinued: text.object?["continued"]?.bool ?? false))
      end += sample.duration
      guard end <= MediaTime.ticks(ms: endMs) else { return nil }
    }
    return !timing.isEmpty && end == MediaTime.ticks(ms: endMs) ? timing : nil
  }
}

/// Converts the times of a track, counted from its first picture.
private struct MediaClock {
  private let first: Int64
  private let numerator: Int64
  private let denominator: Int64

  init(_ track: VideoTrack) {
    first = track.samples[0].pts
    (numerator, denominator) = track.timeBase
  }

  /// Whether the track has the ticks of our own segments.
  var isOurs: Bool { numerator == 1 && denominator == MediaTime.timescale && first == 0 }

  /// Returns a time in milliseconds, to the nearest; nil if a segment cannot be so long. The rounding of one picture does not
  /// move the next one.
  func milliseconds(_ pts: Int64) -> (ms: Int64, isExact: Bool)? {
    let (units, overflows) = pts.subtractingReportingOverflow(first)
    guard !overflows, units >= 0 else { return nil }
    let scaled = units.multipliedFullWidth(by: 1_000 * numerator)
    guard scaled.high == 0, let product = Int64(exactly: scaled.low) else { return nil }
    let (quotient, rest) = product.quotientAndRemainder(dividingBy: denominator)
    guard quotient < MediaTime.maximumSampleMs else { return nil }
    return (quotient + (2 * rest >= denominator ? 1 : 0), rest == 0)
  }

  /// Returns a time in ticks; nil if the track has other units.
  func ticks(_ pts: Int64) -> Int64? { isOurs ? pts : nil }
}
