// Writes one segment's file: encodes each picture, adds the repeats that players need once all holds are known, and lists the
// frames on the timing track.

import FileSystem
import ISOMedia
import JSON

/// A segment's bytes and what they hold.
package struct EncodedSegment {
  package let shots: [FrameHold]
  package let bytes: [UInt8]
  package let codec: String
  package let codedWidth: Int
  package let codedHeight: Int
  /// Coded pictures, repeats included.
  package let samples: Int
}

/// Writes one segment. Dropping it abandons the segment.
package struct SegmentWriter: ~Copyable {
  private let settings: EncoderSettings
  /// The only picture of the segment so far.
  private var only: SourceFrame?
  private let width: Int
  private let height: Int
  private var showings: [PlacedHold] = []
  /// The encoder, opened with the second picture.
  private var encoder: H264Encoder?
  private var coded: [CodedPicture] = []
  /// The picture on screen.
  private var shown: SourceFrame?
  /// Where the next shot starts, in ticks from the segment's start.
  private var now: Int64 = 0
  private let profile: Profile?
  /// The encoding time.
  private var coding = Profile.Span()

  package init(first: SourceFrame, settings: EncoderSettings, profile: Profile? = nil) {
    self.profile = profile
    only = first
    (width, height) = (first.width, first.height)
    self.settings = settings
  }

  /// A shot, where it starts in ticks from the segment's start, and what is known of its samples.
  private struct PlacedHold {
    let shot: FrameHold
    let start: Int64
    /// Whether it equals the picture before.
    let repeats: Bool
    /// Where they start, in ticks from its own start; nil where the segment's pace will say it.
    let sampleStarts: [Int64]?
  }

  /// Adds a hold that begins at the end of the one before.
  ///
  /// - Parameter sampleStarts: where its samples are to begin, in ticks from its own start, the first at 0; where not given,
  ///   it is as players need it.
  package mutating func show(_ still: SourceFrame, in shot: FrameHold, sampleStarts: [Int64]? = nil) throws {
    guard sampleStarts.map({ $0.first == 0 }) ?? true else {
      throw SegmentMismatch("a picture is not shown at its capture")
    }
    let repeats = try shown.map { try $0.looksLike(still) } ?? false
    if !repeats && shown != nil {
      try encode(still.picture(), pts: now)
      only = nil
    }
    showings.append(PlacedHold(shot: shot, start: now, repeats: repeats, sampleStarts: sampleStarts))
    shown = still
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

  package consuming func finish() throws -> EncodedSegment {
    let key = try finishCoding()
    let muxing = profile?.start(.mux)
    defer { muxing?.stop() }
    let shots = showings.map(\.shot)
    let timing = shots.map { Sample(duration: MediaTime.ticks(ms: $0.holdMs), data: TimingText.sample(of: $0)) }
    let file = MP4File(
      width: key.codedWidth, height: key.codedHeight, parameterSets: key.parameterSets, video: try video(key),
      timing: timing)
    let bytes = file.bytes
    try SegmentReadback.compare(bytes, with: file)
    return EncodedSegment(
      shots: shots, bytes: bytes, codec: file.parameterSets.codec, codedWidth: key.codedWidth,
      codedHeight: key.codedHeight, samples: file.video.count)
  }

  /// Where each sample starts, in ticks from the segment's start, and whether it only repeats the one before.
  private var samples: [(start: Int64, repeats: Bool)] {
    let pace = SampleCadence(for: showings.map(\.shot.holdMs))
    return showings.flatMap { showing in
      (showing.sampleStarts ?? pace.sampleStarts(of: showing.shot.holdMs)).enumerated().map { index, start in
        (showing.start + start, showing.repeats || index > 0)
      }
    }
  }

  /// The first picture, coded now or, where nothing follows it, before.
  private mutating func finishCoding() throws -> KeyFrame {
    if encoder == nil, let key = only?.key { return key }
    let encoder = try openEncoder()
    let watch = profile?.start(.encode)
    coded += try encoder.finish()
    if let watch { profile?.add(.encode, coding + watch.span) }
    let starts = showings.filter { !$0.repeats }.map(\.start)
    guard let data = coded.first?.data, coded.map(\.pts) == starts, coded.map(\.dts) == starts,
      coded.map(\.isKey) == starts.map({ $0 == 0 })
    else { throw SegmentMismatch("the encoder changed a time or added a key frame") }
    let key = KeyFrame(
      width: width, height: height, codedWidth: encoder.width, codedHeight: encoder.height, notes: only?.notes ?? [],
      parameterSets: encoder.parameterSets, data: data)
    only?.key = key
    return key
  }

  /// The samples, coded pictures and repeats, with their numbers.
  private func video(_ key: KeyFrame) throws(SegmentMismatch) -> [Sample] {
    let repeats = try SkipSliceWriter(after: key.parameterSets)
    var rest = coded.dropFirst()
    // All repeats are the same but for their numbers.
    var repeated: [UInt8]?
    let samples = samples
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
    guard rest.isEmpty else { throw SegmentMismatch("a picture was coded and is not shown") }
    return video
  }
}

/// The text of one frame in the timing track.
enum TimingText {
  /// JSON behind its length in 2 bytes (3GPP TS 26.245, 5.17): the capture in unix milliseconds, the frame's source
  /// name, and whether it was captured in an earlier segment.
  package static func sample(of shot: FrameHold) -> [UInt8] {
    var members: [String: JSONValue] = [
      "t": .number(shot.capture.timeMs), "f": .string(shot.capture.source.shortened(to: 1_024)),
    ]
    if shot.status == .continued { members["continued"] = .bool(true) }
    let text = JSONValue.object(members).bytes()
    return withUnsafeBytes(of: UInt16(text.count).bigEndian) { Array($0) } + text
  }
}
