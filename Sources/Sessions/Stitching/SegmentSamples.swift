import Encoding
import ISOMedia
import JSON

/// The samples of a published segment, read back and checked against its manifest.
struct SegmentSamples {
  /// The parameter sets of the video.
  var parameterSets: ParameterSets
  /// The colours in its sample description.
  private(set) var colour: VideoColour?
  private(set) var video: [Sample] = []
  private(set) var timing: [Sample] = []
  /// Whether the key frame carries the parameter sets.
  private(set) var isInBand = false
}

extension SegmentSamples {
  /// - Throws: ``BadSession`` when the file is not the one the manifest describes.
  init(of segment: PublishedSegment, in directory: SessionDirectory) throws {
    try self.init(of: segment, bytes: try directory.video(of: segment), reader: directory.reader)
  }

  /// - Parameter bytes: the file that the manifest describes.
  init(of segment: PublishedSegment, bytes: [UInt8], reader: VideoReader) throws {
    let tracks = try SegmentTracks(of: segment, bytes: bytes, reader: reader)
    guard !tracks.isAV1 else { throw Self.av1(segment.file) }
    guard let sets = tracks.configuration.flatMap({ ParameterSets(configuration: $0) }) else {
      throw BadSession(segment.file, "no H.264 track first")
    }
    self.init(parameterSets: sets, colour: tracks.colour, video: tracks.video, timing: tracks.timing)
  }

  /// An archive of an earlier version, whose samples cannot be copied.
  static func av1(_ file: String) -> BadSession {
    BadSession(
      file, "AV1, as an earlier version wrote archives",
      advice: "make H.264 of the session with reencode --quality small")
  }

  /// Makes the segment last until the next one: its last picture is held longer, or cut short. The timing track has an empty
  /// text for the gap.
  mutating func stretch(toMs lengthMs: Int64, gapMs: Int64, file: String) throws(BadSession) {
    let length = MediaTime.ticks(ms: lengthMs)
    let gap = MediaTime.ticks(ms: gapMs)
    try Self.stretchLast(&video, to: length, file)
    try Self.stretchLast(&timing, to: length - gap, file)
    if gap > 0 { timing.append(.gap(lasting: gap)) }
  }

  /// Shows the last picture only. Those that its decoder needs before last a tick each.
  ///
  /// - Throws: ``BadSession`` if the time is too short.
  mutating func holdLast(forMs lengthMs: Int64, file: String) throws(BadSession) {
    let length = MediaTime.ticks(ms: lengthMs)
    guard let picture = video.last, let text = timing.last, length >= video.count else {
      throw BadSession(file, "more pictures than a hold has room for")
    }
    let needed = video.dropLast().map { $0.lasting(1) }
    set(video: needed + [picture.lasting(length - Int64(needed.count))], timing: [text.lasting(length)])
  }

  /// - Throws: ``BadSession`` if a picture is shown for longer than a reader can count.
  func requireReadableDurations(_ file: String) throws(BadSession) {
    guard (video + timing).allSatisfy({ $0.duration <= Self.longest }) else { throw Self.unreadableHold(file) }
  }

  /// Divides what is shown for longer than a reader can count: a picture is repeated, and so is its text.
  ///
  /// - Throws: ``BadSession`` for the video of another encoder.
  mutating func divideUnreadable(_ file: String) throws(BadSession) {
    guard (video + timing).contains(where: { $0.duration > Self.longest }) else { return }
    guard let writer = try? SkipSliceWriter(after: parameterSets) else {
      throw Self.unreadableHold(file)
    }
    let repeated = writer.picture(1)
    let texts = timing.flatMap { text in Self.pieces(of: text.duration).map { text.lasting($0) } }
    let pictures = video.flatMap { sample in
      let pieces = Self.pieces(of: sample.duration)
      return [sample.lasting(pieces[0])] + pieces.dropFirst().map { Sample(duration: $0, data: repeated) }
    }
    guard let numbered = try? numbered(pictures, writer) else { throw Self.unreadableHold(file) }
    set(video: numbered, timing: texts)
    try requireReadableDurations(file)
  }

  private static let longest = MediaTime.ticks(ms: MediaTime.maximumSampleMs)

  private static func pieces(of duration: Int64) -> [Int64] {
    let count = 1 + (duration - 1) / longest
    return (0..<count).map { duration * ($0 + 1) / count - duration * $0 / count }
  }

  static func unreadableHold(_ file: String) -> BadSession {
    BadSession(file, "a hold of more than 6.6 hours behind it", advice: "use --gaps cut")
  }

  /// Puts the parameter sets before each key frame, for readers of pictures of several kinds.
  mutating func carryParameterSets() {
    for (index, sample) in video.enumerated() where index == 0 || sample.isKey {
      video[index] = Sample(
        duration: sample.duration, data: parameterSets.lengthPrefixed + sample.data, isKey: sample.isKey)
    }
    isInBand = true
  }

  /// Counts the captures on the timing track from an instant, for pictures without a clock.
  ///
  /// - Throws: ``BadSession`` for a text without a capture.
  mutating func countTimes(fromMs zeroMs: Int64, file: String) throws(BadSession) {
    var texts: [Sample] = []
    for sample in timing {
      // The text follows its length in two bytes. That of a gap is empty.
      guard sample.data.count > 2 else {
        texts.append(sample)
        continue
      }
      let text: JSONValue
      let timeMs: Int64
      do throws(JSONError) {
        text = try JSONParser.parse(Array(sample.data.dropFirst(2)))
        timeMs = try text.required("t", .integer)
      } catch {
        throw BadSession(file, "a text of the timing track: \(error)")
      }
      let counted = text.setting(["t": .number(timeMs - zeroMs)]).bytes()
      let length = [UInt8(truncatingIfNeeded: counted.count >> 8), UInt8(truncatingIfNeeded: counted.count)]
      texts.append(Sample(duration: sample.duration, data: length + counted))
    }
    set(video: video, timing: texts)
  }

  /// Returns the sample description of the video.
  func description(of segment: PublishedSegment) -> VideoDescription {
    VideoDescription(
      width: segment.codedWidth, height: segment.codedHeight, parameterSets: parameterSets, colour: colour,
      isInBand: isInBand)
  }

  /// Replaces the samples.
  mutating func set(video: [Sample], timing: [Sample]) {
    (self.video, self.timing) = (video, timing)
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
    guard duration > 0 else { throw BadSession(file, "the next segment begins too early") }
    samples.append(last.lasting(duration))
  }
}
