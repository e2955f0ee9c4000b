import Encoding
import ISOMedia

/// A published segment's samples, read back and held against its manifest.
package struct SegmentSamples {
  /// How to decode the video.
  var parameterSets: ParameterSets
  package private(set) var video: [Sample] = []
  package private(set) var timing: [Sample] = []
  /// Whether the key frame carries the parameter sets.
  private var isInBand = false

  init(parameterSets: ParameterSets, video: [Sample], timing: [Sample]) {
    self.parameterSets = parameterSets
    self.video = video
    self.timing = timing
  }

  /// - Throws: ``BadSession`` when the file is not the one the manifest describes.
  init(of segment: PublishedSegment, in directory: SessionDirectory) throws {
    try self.init(of: segment, bytes: try directory.video(of: segment), reader: directory.reader)
  }

  /// - Parameters:
  ///   - bytes: the file that the manifest describes.
  ///   - reader: where it is read.
  init(of segment: PublishedSegment, bytes: [UInt8], reader: VideoReader) throws {
    func bad(_ cause: String) -> BadSession { BadSession(segment.file, cause) }
    let stored: StoredSamples
    do {
      stored = try reader.samples(of: segment, bytes)
    } catch let error as FFmpegError {
      throw bad("\(error)")
    }
    var tracks: [[Sample]] = [[], []]
    var ends: [Int64] = [0, 0]
    for sample in stored.samples {
      guard tracks.indices.contains(sample.track) else { throw bad("more than two tracks") }
      guard sample.pts == ends[sample.track], (1...Int64(Int32.max)).contains(sample.duration) else {
        throw bad("a sample out of time")
      }
      ends[sample.track] += sample.duration
      tracks[sample.track].append(Sample(duration: sample.duration, data: sample.data))
    }
    let sets = stored.configuration.flatMap { $0.withUnsafeBufferPointer { ParameterSets(configuration: $0) } }
    guard let sets else { throw bad("no H.264 track first") }
    parameterSets = sets
    video = tracks[0]
    timing = tracks[1]
    guard video.count == segment.samples, timing.count == segment.frames.count else { throw bad("samples are missing") }
  }

  /// Makes the segment last until the next one: its last picture is held longer, or cut short. On the timing track what
  /// unrecorded has an empty text.
  mutating func stretch(toMs lengthMs: Int64, gapMs: Int64, file: String) throws(BadSession) {
    let length = MediaTime.ticks(ms: lengthMs)
    let gap = MediaTime.ticks(ms: gapMs)
    try Self.stretchLast(&video, to: length, file)
    try Self.stretchLast(&timing, to: length - gap, file)
    if gap > 0 { timing.append(Sample(duration: gap, data: [0, 0])) }
  }

  /// The frames as events.
  ///
  /// - Parameter start: where the segment is, in ticks.
  package func events(from start: Int64) -> [CaptureEvent] {
    var now = start
    return timing.map { sample in
      defer { now += sample.duration }
      // Behind the text's length in 2 bytes.
      return CaptureEvent(
        start: now, duration: sample.duration, text: Array(sample.data.dropFirst(2)))
    }
  }

  /// Puts the parameter sets before the key frame, for readers that go through pictures of several kinds.
  mutating func carryParameterSets() {
    video[0] = Sample(duration: video[0].duration, data: parameterSets.lengthPrefixed + video[0].data)
    isInBand = true
  }

  /// The sample description of the video.
  package func description(of segment: PublishedSegment) -> VideoDescription {
    VideoDescription(
      width: segment.codedWidth, height: segment.codedHeight, parameterSets: parameterSets, isInBand: isInBand)
  }

  private static func stretchLast(_ samples: inout [Sample], to length: Int64, _ file: String) throws(BadSession) {
    var start = samples.reduce(0) { $0 + $1.duration }
    // Repeats may lie behind the next segment's start.
    var last: Sample?
    while let sample = samples.popLast() {
      last = sample
      start -= sample.duration
      if start < length { break }
    }
    guard let last else { return }
    let duration = length - start
    guard duration > 0, duration <= MediaTime.ticks(ms: MediaTime.maximumSampleMs) else {
      guard duration > 0 else { throw BadSession(file, "the next segment begins too early") }
      throw BadSession(file, "a hold of more than 6.6 hours behind it", advice: "stitch with --gaps cut")
    }
    samples.append(Sample(duration: duration, data: last.data))
  }
}
