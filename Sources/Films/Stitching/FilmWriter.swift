// A session as one MP4, with its coded pictures, times and timing track unchanged. Each segment is read once. `moov` stands first,
// in space reserved by the manifests' counts; unused space is removed at the end.

import Encoding
import FileSystem
import ISOMedia
import Sessions

/// Writes a film part by part. Dropping it without ``finish()`` leaves an unfinished film in the file.
struct FilmWriter {
  private let file: OutputFile
  private let plan: StitchPlan
  /// The bytes reserved for `moov`.
  private let movieSpace: Int
  /// Whether key frames carry their parameter sets, because there is more than one kind.
  private let isMixed: Bool
  private var video = MP4Track(.video)
  /// One for each ``PublishedSegment/pictureKind``: this bounds the size of `moov`.
  private var descriptions: [String: VideoDescription] = [:]
  private var timing = MP4Track(.timing)
  /// Whether a frame was captured in what the film shows. WebKitGTK waits for ever for the first text of a track without any.
  private var hasTexts = false
  private var end: Int
  /// The duration of the parts so far, in ticks.
  private var now: Int64 = 0
  private var clock: FilmClock
  private var keyFrames: KeyFrameMerger
  private var held = HeldParts()
  /// The number of pictures that are written since the last key frame, with it.
  private var count = 0
  private let chapters: [Chapter]
  private let captions: [Sample]
  private var captionTrack = MP4Track(.captions)
  private static let movieOffset = MP4Movie.fileType.count
  /// A film has at least this many bytes for each unused byte: 0.5 %.
  private static let sizePerUnusedByte = 200

  init(_ file: OutputFile, plan: StitchPlan) throws {
    self.file = file
    self.plan = plan
    let kinds = Set(plan.parts.map(\.segment.pictureKind))
    isMixed = kinds.count > 1
    clock = FilmClock(plan.speed)
    keyFrames = KeyFrameMerger(plan.keyFrames)
    let samples = plan.parts.reduce(0) { sum, part in
      let own = part.segment.samples + part.segment.frames.count + 1
      return sum + own + plan.mostRepeats(in: part, ofPictures: own)
    }
    let keys = plan.parts.reduce(0) { $0 + ($1.segment.isImported ? $1.segment.samples : 0) }
    chapters = plan.namedMap(of: "").movieChapters
    let chapterSize = chapters.reduce(0) { $0 + 9 + $1.title.utf8.count }
    captions = plan.captions.isEmpty ? [] : plan.captions.samples(plan.map)
    // A segment's two parameter sets have 2 KiB at most; a key picture's has some bytes.
    movieSpace =
      4_096 + 4_096 * kinds.count + MP4Track.tableSize(samples: samples, chunks: 2 * plan.parts.count, keys: keys)
      + chapterSize + (captions.isEmpty ? 0 : 1_024) + MP4Track.tableSize(samples: captions.count, chunks: 1, keys: 0)
    end = Self.movieOffset + movieSpace + 16
    try file.write(MP4Movie.fileType, at: 0)
  }

  mutating func append(_ part: StitchPlan.Part, from videos: some SegmentVideos) throws {
    let segment = part.segment
    let known = descriptions[segment.pictureKind]
    var samples = try self.samples(of: part, from: videos)
    // The parts of a kind have one description.
    samples.parameterSets.keyPicture = samples.parameterSets.keyPicture ?? known?.parameterSets.keyPicture
    let range = now..<now + samples.video.reduce(0) { $0 + $1.duration }
    let since = keyFrames.merge(&samples, as: samples.description(of: segment), in: range)
    if isMixed { samples.carryParameterSets() }
    let description = samples.description(of: segment)
    descriptions[segment.pictureKind] = description
    guard known == nil || known == description else {
      throw BadSession(segment.file, "other parameter sets than its manifest makes one expect")
    }
    now = range.upperBound
    let part = FilmPart(samples: samples, description: description, range: range)
    for part in held.add(part, since: since) { try write(part) }
  }

  private mutating func write(_ part: FilmPart) throws {
    var samples = part.samples
    if part.needsRepeats { samples.addRepeats(onGridFrom: part.range.lowerBound) }
    if samples.isContinued {
      try samples.number(after: count, SkipSliceWriter(after: samples.parameterSets))
    } else {
      count = 0
    }
    count += samples.video.count
    let texts = samples.timing.flatMap(\.data)
    let pictures = samples.video.flatMap(\.data)
    hasTexts = hasTexts || samples.timing.contains { $0.data.count > 2 }
    timing.append(samples.timing, at: UInt64(end))
    video.append(
      samples.video, at: UInt64(end + texts.count), as: part.description, isContinued: samples.isContinued)
    try file.write(texts + pictures, at: end)
    end += texts.count + pictures.count
  }

  /// Reads the samples of a part, as the film has them but for key frames and repeats.
  private mutating func samples(of part: StitchPlan.Part, from videos: some SegmentVideos) throws -> SegmentSamples {
    var samples = try PartSamples(part, of: plan, from: videos)
    try samples.fillTime()
    try samples.countTimes()
    samples.cut()
    try samples.shortenIdle()
    samples.retime(&clock)
    try samples.divideUnreadable()
    try samples.open()
    return samples.samples
  }

  private var movie: [UInt8] {
    MP4Movie.bytes(
      of: [video] + (hasTexts ? [timing] : []) + (captions.isEmpty ? [] : [captionTrack]), chapters: chapters,
      startMs: plan.zeroMs == nil ? plan.shown.lowerBound : nil)
  }

  /// Writes the last parts, `moov` and the header of `mdat`.
  ///
  /// - Returns: the film's size in bytes.
  mutating func finish() throws -> Int {
    for part in held.flush() { try write(part) }
    if !captions.isEmpty {
      let texts = captions.flatMap(\.data)
      captionTrack.append(captions, at: UInt64(end))
      try file.write(texts, at: end)
      end += texts.count
    }
    let mediaOffset = Self.movieOffset + movieSpace
    var media = MP4Box()
    media.u32(1)  // the size follows in 64 bits
    media.ascii("mdat")
    media.u64(UInt64(end - mediaOffset))
    try file.write(media.bytes, at: mediaOffset)
    var movie = movie
    // The space is an upper bound that leaves at least the 8 bytes of an empty box.
    var unused = movieSpace - movie.count
    precondition(unused >= 8)
    if Self.sizePerUnusedByte * unused > end {
      try file.move(mediaOffset..<end, to: mediaOffset - unused)
      end -= unused
      video.move(by: unused)
      timing.move(by: unused)
      captionTrack.move(by: unused)
      let space = movie.count
      movie = self.movie
      // Offsets that fit 32 bits again save 4 bytes a chunk, and a film of more than 4 GiB has many chunks.
      unused = space - movie.count
    }
    var head = MP4Box()
    head.append(movie)
    if unused > 0 { head.box("free") { $0.zeros(unused - 8) } }
    try file.write(head.bytes, at: Self.movieOffset)
    return end
  }
}
