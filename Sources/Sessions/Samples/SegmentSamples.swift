import Encoding
import FileSystem
import Glibc
import ISOMedia
import JSON

/// The samples of a published segment, read back and checked against its manifest.
package struct SegmentSamples {
  /// The parameter sets of the video.
  package var parameterSets: ParameterSets
  /// The colours in its sample description.
  private(set) var colour: VideoColour?
  package private(set) var video: [Sample] = []
  package private(set) var timing: [Sample] = []
  /// Whether the key frame carries the parameter sets.
  private(set) var isInBand = false
  /// Whether the bytes of the samples are zeros.
  private(set) var isOutline = false
  /// Whether the first picture repeats the one before it in a film, and is no key frame.
  package private(set) var isContinued = false
}

extension SegmentSamples {
  /// - Throws: ``BadSession`` when the file is not the one the manifest describes.
  init(of segment: PublishedSegment, in directory: SessionDirectory) throws {
    try self.init(of: segment, bytes: try directory.video(of: segment), reader: directory.reader)
  }

  /// - Parameter bytes: the file that the manifest describes.
  package init(of segment: PublishedSegment, bytes: [UInt8], reader: VideoReader) throws {
    let tracks = try SegmentTracks(of: segment, bytes: bytes, reader: reader)
    guard !tracks.isAV1 else { throw Self.av1(segment.file) }
    guard let sets = tracks.configuration.flatMap({ ParameterSets(configuration: $0) }) else {
      throw BadSession(segment.file, "no H.264 track first")
    }
    self.init(parameterSets: sets, colour: tracks.colour, video: tracks.video, timing: tracks.timing)
  }

  /// - Parameter file: the segment's own.
  init(_ file: MP4File) {
    self.init(parameterSets: file.parameterSets, colour: file.colour, video: file.video, timing: file.timing)
  }

  /// An archive of an earlier version, whose samples cannot be copied.
  static func av1(_ file: String) -> BadSession {
    BadSession(
      file, "AV1, as an earlier version wrote archives",
      advice: "make H.264 of the session with reencode --quality small")
  }

  /// Makes the segment last until the next one: its last picture is held longer, or cut short. The timing track has an empty
  /// text for the gap.
  package mutating func stretch(toMs lengthMs: Int64, gapMs: Int64, file: String) throws(BadSession) {
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
  package mutating func divideUnreadable(_ file: String) throws(BadSession) {
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

  /// Numbers the pictures behind the first one, which is a key frame. If it is none, see ``number(after:_:)``.
  package func numbered(_ samples: [Sample], _ writer: SkipSliceWriter) throws(SegmentMismatch) -> [Sample] {
    var numbered = samples
    for index in samples.indices.dropFirst() {
      numbered[index] = try samples[index].numbered(index, writer)
    }
    return numbered
  }

  /// Makes a repeat of the key frame, whose picture is on screen before it.
  ///
  /// - Throws: ``SegmentMismatch`` for the video of another encoder, which stays as it is.
  package mutating func continuePicture(_ writer: SkipSliceWriter) throws(SegmentMismatch) {
    var continued = self
    continued.video[0] = Sample(duration: video[0].duration, data: writer.picture(1))
    continued.isContinued = true
    try continued.number(after: 1, writer)
    self = continued
  }

  /// Numbers all pictures of samples that continue others.
  ///
  /// - Parameter count: the number of pictures since the last key frame, with it.
  package mutating func number(after count: Int, _ writer: SkipSliceWriter) throws(SegmentMismatch) {
    for index in video.indices { video[index] = try video[index].numbered(count + index, writer) }
  }

  private static let longest = MediaTime.ticks(ms: MediaTime.maximumSampleMs)

  private static func pieces(of duration: Int64) -> [Int64] {
    let count = 1 + (duration - 1) / longest
    return (0..<count).map { duration * ($0 + 1) / count - duration * $0 / count }
  }

  package static func unreadableHold(_ file: String) -> BadSession {
    BadSession(file, "a hold of more than 6.6 hours behind it", advice: "use --gaps cut")
  }

  /// Puts the parameter sets before each key frame, for readers of pictures of several kinds.
  package mutating func carryParameterSets() {
    for (index, sample) in video.enumerated() where index == 0 && !isContinued || sample.isKey {
      video[index] = Sample(
        duration: sample.duration, data: parameterSets.lengthPrefixed + sample.data, isKey: sample.isKey)
    }
    isInBand = true
  }

  /// Counts the captures on the timing track from an instant, for pictures without a clock.
  ///
  /// - Throws: ``BadSession`` for a text without a capture.
  package mutating func countTimes(fromMs zeroMs: Int64, file: String) throws(BadSession) {
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
  package func description(of segment: PublishedSegment) -> VideoDescription {
    VideoDescription(
      width: segment.codedWidth, height: segment.codedHeight, parameterSets: parameterSets, colour: colour,
      isInBand: isInBand)
  }

  /// Replaces the samples.
  package mutating func set(video: [Sample], timing: [Sample]) {
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

// MARK: - From the tables alone

// The durations and sizes of samples, from the tables at the beginning of the file. A playlist of key frames needs no more.

extension SegmentSamples {
  /// Of `moov`, which has some kilobytes in a segment.
  private static let maximumTableBytes = 8 << 20

  /// Reads durations and sizes. The samples' bytes are zeros.
  ///
  /// - Throws: ``BadSession`` when the video is missing, or its tables are not those of the segment.
  init(outlineOf segment: PublishedSegment, in session: SessionDirectory) throws {
    guard let file = try session.openVideo(of: segment), file.size == segment.bytes,
      file.size <= SegmentManifest.maximumVideoBytes
    else {
      throw BadSession(segment.file, "missing, or not a plain file of its size")
    }
    do {
      let source = FileBytes(file)
      // `moov` is the second box.
      let start = try BoxReader(source.bytes(at: 0, 8)[...]).number(at: 0)
      let size = try BoxReader(source.bytes(at: start, 8)[...]).number(at: 0)
      guard (8...Self.maximumTableBytes).contains(size) else { throw SegmentMismatch("no movie") }
      let movie = try BoxReader(source.bytes(at: start, size)[...]).first("moov")
      let tracks = try movie.all("trak")
      guard tracks.count == 2 else { throw SegmentMismatch("not two tracks") }
      let table = try tracks[0].table
      let entries = try table.first("stsd").skipping(8)
      guard try entries.all("av01").isEmpty else { throw Self.av1(segment.file) }
      let description = try VideoDescription(entry: entries.first("avc1"))
      self.init(
        parameterSets: description.parameterSets, colour: description.colour,
        video: try table.samples(segment.samples, in: segment.bytes),
        timing: try tracks[1].table.samples(segment.frames.count, in: segment.bytes), isOutline: true)
    } catch let mismatch as SegmentMismatch {
      throw BadSession(segment.file, "its tables are not those of a segment: \(mismatch)")
    }
  }
}

extension BoxReader {
  /// Returns the samples of a track by its tables.
  ///
  /// - Parameters:
  ///   - count: the number of samples in the manifest.
  ///   - bytes: the size of the file.
  fileprivate func samples(_ count: Int, in bytes: Int) throws(SegmentMismatch) -> [Sample] {
    let rows = try sampleRows()
    guard rows.count == count, rows.allSatisfy({ $0.size <= bytes }), rows.reduce(0, { $0 + $1.size }) <= bytes else {
      throw SegmentMismatch("other samples than its manifest says")
    }
    guard rows.allSatisfy({ (1...Int64(Int32.max)).contains($0.duration) }) else {
      throw SegmentMismatch("a sample without a duration")
    }
    return rows.map { Sample(duration: $0.duration, data: [UInt8](repeating: 0, count: $0.size)) }
  }
}

extension Sample {
  /// Returns an empty text of the timing track, which stands for a gap.
  package static func gap(lasting duration: Int64) -> Sample { Sample(duration: duration, data: [0, 0]) }

  fileprivate func numbered(_ number: Int, _ writer: SkipSliceWriter) throws(SegmentMismatch) -> Sample {
    var data = data
    try writer.renumber(&data, number)
    return Sample(duration: duration, data: data)
  }
}
