// Shots become one segment's file: each picture is coded at its instant, repeated where players need it, and listed
// on the timing track.

/// A segment's bytes and what they hold.
struct EncodedSegment {
  let shots: [Shot]
  let bytes: [UInt8]
  let codec: String
  let codedWidth: Int
  let codedHeight: Int
  /// Coded pictures, repeats included.
  let samples: Int
}

/// Writes one segment. Dropping it without ``finish()`` abandons the segment.
struct SegmentWriter: ~Copyable {
  private let encoder: H264Encoder
  private let codedWidth: Int
  private let codedHeight: Int
  /// How many pictures wait to be coded until the segment's holds are known: a second more than a full one has.
  private static let patience = 6
  private var waiting: [(picture: Picture, shot: Shot)] = []
  private var isStreaming = false
  private var shots: [Shot] = []
  private var pictures: [CodedPicture] = []
  /// Where each sample starts, in ticks from the segment's start.
  private var starts: [Int64] = []
  private var timing: [Sample] = []
  /// Where the next sample starts, in ticks from the segment's start.
  private var now: Int64 = 0

  init(first picture: Picture, settings: EncoderSettings) throws(FFmpegError) {
    codedWidth = picture.codedWidth
    codedHeight = picture.codedHeight
    encoder = try H264Encoder(width: codedWidth, height: codedHeight, settings: settings)
  }

  /// Adds a shot that begins where the one before ended.
  mutating func show(_ picture: Picture, in shot: Shot) throws(FFmpegError) {
    if isStreaming { return try show(picture, in: shot, at: Pace(forStreamed: shot.holdMs)) }
    waiting.append((picture, shot))
    // Pictures wait until all holds are known, but not for ever.
    guard waiting.count > Self.patience else { return }
    isStreaming = true
    for (picture, shot) in waiting { try show(picture, in: shot, at: Pace(forStreamed: shot.holdMs)) }
    waiting = []
  }

  private mutating func show(_ picture: Picture, in shot: Shot, at pace: Pace) throws(FFmpegError) {
    try show(picture, in: shot, sampleStarts: pace.sampleStarts(of: shot.holdMs))
  }

  /// Adds a shot whose samples are to begin where they are told, in ticks from its own start.
  mutating func show(_ picture: Picture, in shot: Shot, sampleStarts: [Int64]) throws(FFmpegError) {
    timing.append(Sample(duration: MediaTime.ticks(ms: shot.holdMs), data: TimingText.sample(of: shot)))
    shots.append(shot)
    for start in sampleStarts {
      starts.append(now + start)
      pictures += try encoder.encode(picture, pts: now + start)
    }
    now += MediaTime.ticks(ms: shot.holdMs)
  }

  consuming func finish() throws -> EncodedSegment {
    let pace = Pace(for: waiting.map(\.shot.holdMs))
    for (picture, shot) in waiting { try show(picture, in: shot, at: pace) }
    pictures += try encoder.finish()
    let keys = pictures.map(\.isKey)
    guard pictures.map(\.pts) == starts, pictures.map(\.dts) == starts, keys.first == true,
      keys.count(where: { $0 }) == 1
    else { throw SegmentMismatch("the encoder changed a time or added a key frame") }
    let ends = starts.dropFirst() + [now]
    let video = zip(pictures, zip(starts, ends)).map { Sample(duration: $1.1 - $1.0, data: $0.data) }
    let file = MP4File(
      width: codedWidth, height: codedHeight, parameterSets: encoder.parameterSets, video: video, timing: timing)
    let bytes = file.bytes
    try SegmentCheck.compare(bytes, with: file)
    return EncodedSegment(
      shots: shots, bytes: bytes, codec: file.parameterSets.codec, codedWidth: codedWidth, codedHeight: codedHeight,
      samples: video.count)
  }
}

/// What the timing track says of one frame.
enum TimingText {
  /// JSON behind its length in 2 bytes (3GPP TS 26.245, 5.17): the capture in unix milliseconds, the frame's source
  /// name, and whether it was captured in an earlier segment.
  static func sample(of shot: Shot) -> [UInt8] {
    var members: [String: JSONValue] = [
      "t": .number(shot.capture.timeMs), "f": .string(shot.capture.source.shortened(to: 1_024)),
    ]
    if shot.status == .continued { members["continued"] = .bool(true) }
    let text = JSONValue.object(members).bytes()
    return withUnsafeBytes(of: UInt16(text.count).bigEndian) { Array($0) } + text
  }
}
