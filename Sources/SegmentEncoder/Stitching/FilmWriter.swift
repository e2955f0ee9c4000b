// A session as one MP4: coded pictures are copied as they are, times are those of the captures, the timing track comes
// along. Each segment is read once. `moov` stands first, in space that is reserved from the manifests' counts; what of that is not
// needed is removed at the end.

/// Writes a film part by part. Dropping it without ``finish()`` leaves an unfinished film in the file.
struct FilmWriter {
  private let file: OutputFile
  private let chapters: [Chapter]
  /// When the first picture was captured, in unix milliseconds.
  private let startMs: Int64?
  /// Where `moov` goes, and how much room there is.
  private let movieOffset: Int
  private let movieSpace: Int
  private let mediaOffset: Int
  /// Whether key frames carry their parameter sets, because there is more than one kind.
  private let isMixed: Bool
  private var video: MP4Track?
  /// By ``PublishedSegment/pictureKind``.
  private var descriptions: [String: VideoDescription] = [:]
  private var timing = MP4Track(.timing)
  private var end: Int
  /// One part in so many of a film may be unused space.
  private static let mostFree = 200

  init(_ file: OutputFile, plan: FilmPlan) throws {
    self.file = file
    chapters = plan.chapters
    startMs = plan.parts.first?.segment.startMs
    let kinds = Set(plan.parts.map(\.segment.pictureKind))
    isMixed = kinds.count > 1
    let head = MP4Movie.fileType
    movieOffset = head.count
    let samples = plan.parts.reduce(0) { $0 + $1.segment.samples + $1.segment.frames.count + 1 }
    let chapterSize = chapters.reduce(0) { $0 + 9 + $1.title.utf8.count }
    // Two parameter sets have 2 KiB at most.
    movieSpace =
      4_096 + 4_096 * kinds.count + MP4Track.tableSize(samples: samples, chunks: 2 * plan.parts.count) + chapterSize
    mediaOffset = movieOffset + movieSpace
    end = mediaOffset + 16
    try file.write(head, at: 0)
  }

  mutating func append(_ part: FilmPlan.Part, from directory: SessionDirectory) throws {
    let segment = part.segment
    var samples = try SegmentSamples(of: segment, in: directory)
    try samples.stretch(toMs: part.lengthMs, gapMs: part.gapMs, file: segment.file)
    let description = VideoDescription(
      width: segment.codedWidth, height: segment.codedHeight, parameterSets: samples.parameterSets, isInBand: isMixed)
    if isMixed { samples.carryParameterSets() }
    let known = descriptions.updateValue(description, forKey: segment.pictureKind)
    guard known == nil || known == description else {
      throw BadSession(segment.file, "other parameter sets than its manifest makes one expect")
    }
    if video == nil { video = MP4Track(description) }
    let texts = samples.timing.flatMap(\.data)
    let pictures = samples.video.flatMap(\.data)
    timing.append(samples.timing, at: UInt64(end))
    video?.append(samples.video, at: UInt64(end + texts.count), as: description)
    try file.write(texts + pictures, at: end)
    end += texts.count + pictures.count
  }

  private func movie(_ video: MP4Track) -> MP4Movie {
    MP4Movie(tracks: [video, timing], chapters: chapters, startMs: startMs)
  }

  /// Writes what stands before the pictures.
  ///
  /// - Returns: the film's size in bytes.
  mutating func finish() throws -> Int {
    guard var video else { return 0 }
    var media = MP4Box()
    media.u32(1)  // the size follows in 64 bits
    media.ascii("mdat")
    media.u64(UInt64(end - mediaOffset))
    try file.write(media.bytes, at: mediaOffset)
    // The space is an upper bound that leaves at least the 8 bytes of an empty box.
    var rest = movieSpace - movie(video).bytes.count
    precondition(rest >= 8)
    if Self.mostFree * rest > end {
      try file.move(mediaOffset..<end, to: mediaOffset - rest)
      end -= rest
      video.move(by: rest)
      timing.move(by: rest)
      // Smaller offsets may take less room themselves.
      rest = movieSpace - rest - movie(video).bytes.count
    }
    var head = MP4Box()
    head.append(movie(video).bytes)
    if rest >= 8 { head.box("free") { $0.zeros(rest - 8) } }
    try file.write(head.bytes, at: movieOffset)
    return end
  }
}
