/// A published segment's samples, read back and held against its manifest.
struct SegmentSamples {
  let parameterSets: ParameterSets
  private(set) var video: [Sample] = []
  private(set) var timing: [Sample] = []

  /// - Throws: ``BadSession`` when the file is not the one the manifest describes.
  init(of segment: PublishedSegment, in directory: SessionDirectory) throws {
    try self.init(of: segment, bytes: try directory.video(of: segment))
  }

  /// - Parameter bytes: the file that the manifest describes.
  init(of segment: PublishedSegment, bytes: [UInt8]) throws {
    func bad(_ cause: String) -> BadSession { BadSession(segment.file, cause) }
    var tracks: [[Sample]] = [[], []]
    var ends: [Int64] = [0, 0]
    do {
      parameterSets = try bytes.withUnsafeBytes { buffer in
        let reader = try MP4Reader(buffer)
        while let sample = try reader.next() {
          guard tracks.indices.contains(sample.track) else { throw bad("more than two tracks") }
          guard sample.pts == ends[sample.track], (1...Int64(Int32.max)).contains(sample.duration) else {
            throw bad("a sample out of time")
          }
          ends[sample.track] += sample.duration
          tracks[sample.track].append(Sample(duration: sample.duration, data: Array(sample.bytes)))
        }
        guard let sets = reader.parameterSets else { throw bad("no H.264 track first") }
        return sets
      }
    } catch let error as FFmpegError {
      throw bad("\(error)")
    }
    video = tracks[0]
    timing = tracks[1]
    guard video.count == segment.samples, timing.count == segment.frames.count else { throw bad("samples are missing") }
  }

  /// Makes the segment last until the next one: its last picture is held longer, or cut short. On the timing track what
  /// nobody recorded has an empty text.
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
  func events(from start: Int64) -> [CaptureEvent] {
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
    guard duration > 0, duration <= MediaTime.ticks(ms: MediaTime.longestSampleMs) else {
      guard duration > 0 else { throw BadSession(file, "the next segment begins too early") }
      throw BadSession(file, "a hold of more than 6.6 hours behind it", advice: "stitch with --gaps cut")
    }
    samples.append(Sample(duration: duration, data: last.data))
  }
}
