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

/// Writes one segment. Dropping it abandons the segment.
struct SegmentWriter: ~Copyable {
  private let settings: EncoderSettings
  /// The picture, as long as the segment shows no other.
  private var only: Still?
  private let width: Int
  private let height: Int
  /// How many pictures wait to be coded until the segment's holds are known: a second more than a full one has.
  private static let patience = 6
  private var waiting: [(still: Still, shot: Shot)] = []
  private var isStreaming = false
  private var shots: [Shot] = []
  /// Opened when there is something to code.
  private var encoder: H264Encoder?
  private var coded: [CodedPicture] = []
  /// The picture on screen.
  private var shown: Still?
  /// Where each sample starts, in ticks from the segment's start, and whether it only repeats the one before.
  private var samples: [(start: Int64, repeats: Bool)] = []
  private var timing: [Sample] = []
  /// Where the next sample starts, in ticks from the segment's start.
  private var now: Int64 = 0
  private let profile: Profile?
  /// What encoding took.
  private var coding = Profile.Span()

  init(first: Still, settings: EncoderSettings, profile: Profile? = nil) {
    self.profile = profile
    only = first
    (width, height) = (first.width, first.height)
    self.settings = settings
  }

  /// Adds a shot that begins where the one before ended.
  mutating func show(_ still: Still, in shot: Shot) throws {
    if isStreaming { return try show(still, in: shot, at: Pace(forStreamed: shot.holdMs)) }
    waiting.append((still, shot))
    // Pictures wait until all holds are known, but not for ever.
    guard waiting.count > Self.patience else { return }
    isStreaming = true
    for (still, shot) in waiting { try show(still, in: shot, at: Pace(forStreamed: shot.holdMs)) }
    waiting = []
  }

  private mutating func show(_ still: Still, in shot: Shot, at pace: Pace) throws {
    try show(still, in: shot, sampleStarts: pace.sampleStarts(of: shot.holdMs))
  }

  /// Adds a shot whose samples are to begin where they are told, in ticks from its own start.
  mutating func show(_ still: Still, in shot: Shot, sampleStarts: [Int64]) throws {
    timing.append(Sample(duration: MediaTime.ticks(ms: shot.holdMs), data: TimingText.sample(of: shot)))
    shots.append(shot)
    for start in sampleStarts {
      let repeats = try shown.map { try $0.looksLike(still) } ?? false
      if !repeats && !samples.isEmpty {
        try encode(still.picture(), pts: now + start)
        only = nil
      }
      samples.append((now + start, repeats))
      shown = still
    }
    now += MediaTime.ticks(ms: shot.holdMs)
  }

  private mutating func encode(_ picture: Picture, pts: Int64) throws {
    let encoder = try openEncoder()
    let watch = profile?.start(.encode)
    coded += try encoder.encode(picture, pts: pts)
    if let watch { coding = coding + watch.span }
  }

  /// The encoder, which has got the first picture.
  private mutating func openEncoder() throws -> H264Encoder {
    if let encoder { return encoder }
    guard let picture = try only?.picture() else { throw SegmentMismatch("it shows nothing") }
    let watch = profile?.start(.encode)
    let opened = try H264Encoder(width: picture.codedWidth, height: picture.codedHeight, settings: settings)
    coded += try opened.encode(picture, pts: 0)
    if let watch { coding = coding + watch.span }
    encoder = opened
    return opened
  }

  consuming func finish() throws -> EncodedSegment {
    let pace = Pace(for: waiting.map(\.shot.holdMs))
    for (still, shot) in waiting { try show(still, in: shot, at: pace) }
    let key = try finishCoding()
    let muxing = profile?.start(.mux)
    defer { muxing?.stop() }
    let file = MP4File(
      width: key.codedWidth, height: key.codedHeight, parameterSets: key.parameterSets, video: try video(key),
      timing: timing)
    let bytes = file.bytes
    try SegmentCheck.compare(bytes, with: file)
    return EncodedSegment(
      shots: shots, bytes: bytes, codec: file.parameterSets.codec, codedWidth: key.codedWidth,
      codedHeight: key.codedHeight, samples: file.video.count)
  }

  /// The first picture, coded now or, where nothing follows it, before.
  private mutating func finishCoding() throws -> KeyFrame {
    if encoder == nil, let key = only?.key { return key }
    let encoder = try openEncoder()
    let watch = profile?.start(.encode)
    coded += try encoder.finish()
    if let watch { profile?.add(.encode, coding + watch.span) }
    let starts = samples.filter { !$0.repeats }.map(\.start)
    guard let data = coded.first?.data, coded.map(\.pts) == starts, coded.map(\.dts) == starts,
      coded.map(\.isKey) == starts.map({ $0 == 0 })
    else { throw SegmentMismatch("the encoder changed a time or added a key frame") }
    let key = KeyFrame(
      width: width, height: height, codedWidth: encoder.width, codedHeight: encoder.height, notes: only?.notes ?? [],
      parameterSets: encoder.parameterSets, data: data)
    only?.key = key
    return key
  }

  /// The samples: what was coded and what repeats, numbered through.
  private func video(_ key: KeyFrame) throws(SegmentMismatch) -> [Sample] {
    let repeats = try SkippedPictures(after: key.parameterSets)
    var rest = coded.dropFirst()
    // All repeats are the same but for their numbers.
    var repeated: [UInt8]?
    var video: [Sample] = []
    for (index, sample) in samples.enumerated() {
      let end = index + 1 < samples.count ? samples[index + 1].start : now
      var data: [UInt8]
      if index == 0 {
        data = key.data
      } else {
        data = sample.repeats ? repeated ?? repeats.picture(index) : rest.removeFirst().data
        if sample.repeats { repeated = data }
        try repeats.renumber(&data, index)
      }
      video.append(Sample(duration: end - sample.start, data: data))
    }
    return video
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
