// Writes one segment: encodes each picture, inserts the repeats that players need once all holds are known, and lists the
// frames on the timing track.

import FileSystem
import ISOMedia
import JSON

/// A segment's bytes and their contents.
package struct EncodedSegment {
  package let holds: [FrameHold]
  package let bytes: [UInt8]
  package let codec: String
  package let codedWidth: Int
  package let codedHeight: Int
  /// The number of coded pictures, repeats included.
  package let samples: Int
}

extension EncodedSegment {
  /// Makes a segment of coded samples.
  ///
  /// - Parameters:
  ///   - video: the first one is the key frame; their durations add up to those of `holds`.
  ///   - holds: at least one.
  package init(
    copying video: [Sample], of source: FinishedVideo, holds: [FrameHold]
  ) throws(SegmentMismatch) {
    try self.init(
      MP4File(
        width: source.size.width, height: source.size.height, parameterSets: source.parameterSets,
        colour: source.colour, video: video, timing: holds.map(\.timingSample)), holds: holds)
  }

  fileprivate init(_ file: MP4File, holds: [FrameHold]) throws(SegmentMismatch) {
    let bytes = file.bytes
    try SegmentReadback.compare(bytes, with: file)
    self.init(
      holds: holds, bytes: bytes, codec: file.parameterSets.codec, codedWidth: file.width, codedHeight: file.height,
      samples: file.video.count)
  }
}

/// Writes one segment. Dropping it abandons the segment.
package struct SegmentWriter: ~Copyable {
  private let settings: EncoderSettings
  private let profile: Profile?
  /// The first frame; nil once another picture is known to follow.
  private var only: SourceFrame?
  private let width: Int
  private let height: Int
  private var holds: [PlacedHold] = []
  /// Opened once another picture is known to follow, or at the end.
  private var encoder: VideoEncoder?
  private var coded: [CodedPicture] = []
  /// The frame on screen; nil if the next one is known to differ.
  private var shown: SourceFrame?
  /// The end of the last hold, in ticks from the segment's start.
  private var end: Int64 = 0
  private var encodingTime = Profile.Span()

  package init(first: SourceFrame, settings: EncoderSettings, profile: Profile? = nil) {
    self.settings = settings
    self.profile = profile
    only = first
    (width, height) = (first.width, first.height)
  }

  private struct PlacedHold {
    let hold: FrameHold
    /// In ticks from the segment's start.
    let start: Int64
    /// Whether it shows the picture before it.
    let repeats: Bool
    /// In ticks from the start of the hold; nil if the segment's cadence decides.
    let sampleStarts: [Int64]?
  }

  /// Adds a hold that begins at the end of the one before.
  ///
  /// - Parameters:
  ///   - nextDiffers: whether a hold of this segment follows whose frame is known to have other pixels.
  ///   - sampleStarts: the starts of its samples, in ticks from its own start, the first at 0; nil for those that players need.
  package mutating func show(
    _ frame: SourceFrame, in hold: FrameHold, nextDiffers: Bool = false, sampleStarts: [Int64]? = nil
  ) throws {
    guard sampleStarts.map({ $0.first == 0 }) ?? true else {
      throw SegmentMismatch("a picture is not shown at its capture")
    }
    let repeats = try shown.map { try $0.looksLike(frame) } ?? false
    if !repeats && !holds.isEmpty {
      let picture = try frame.picture()
      let encoder = try openEncoder()
      let watch = profile?.start(.encode)
      coded += try encoder.encode(picture, pts: end)
      if let watch { encodingTime = encodingTime + watch.span }
      only = nil
    }
    holds.append(PlacedHold(hold: hold, start: end, repeats: repeats, sampleStarts: sampleStarts))
    shown = frame
    end += MediaTime.ticks(ms: hold.holdMs)
    if nextDiffers {
      // The frame is encoded, and not compared with the next one: its pixels are not needed any more.
      _ = try openEncoder()
      (only, shown) = (nil, nil)
    }
  }

  /// Returns the encoder, which is opened with the first picture.
  private mutating func openEncoder() throws -> VideoEncoder {
    if let encoder { return encoder }
    guard let picture = try only?.picture() else { throw SegmentMismatch("it has no picture") }
    let watch = profile?.start(.encode)
    let opened = try VideoEncoder(width: picture.codedWidth, height: picture.codedHeight, settings: settings)
    coded += try opened.encode(picture, pts: 0)
    if let watch { encodingTime = encodingTime + watch.span }
    encoder = opened
    return opened
  }

  package consuming func finish() throws -> EncodedSegment {
    let key = try finishEncoding()
    let muxing = profile?.start(.mux)
    defer { muxing?.stop() }
    let holds = holds.map(\.hold)
    let file = MP4File(
      width: key.codedWidth, height: key.codedHeight, parameterSets: key.parameterSets, video: try video(key),
      timing: holds.map(\.timingSample))
    return try EncodedSegment(file, holds: holds)
  }

  /// Ends the encoding, unless the segment shows only a picture whose key frame is known.
  private mutating func finishEncoding() throws -> KeyFrame {
    if encoder == nil, let key = only?.key { return key }
    let encoder = try openEncoder()
    let watch = profile?.start(.encode)
    coded += try encoder.finish()
    if let watch { profile?.add(.encode, encodingTime + watch.span) }
    let starts = holds.filter { !$0.repeats }.map(\.start)
    guard let data = coded.first?.data, coded.map(\.pts) == starts, coded.map(\.dts) == starts,
      coded.map(\.isKey) == starts.map({ $0 == 0 })
    else { throw SegmentMismatch("the encoder changed a time or added a key frame") }
    let key = KeyFrame(
      width: width, height: height, codedWidth: encoder.width, codedHeight: encoder.height, notes: only?.notes ?? [],
      facts: only?.facts ?? PictureFacts(), masks: only?.masks ?? [], parameterSets: encoder.parameterSets, data: data)
    only?.key = key
    return key
  }

  /// Returns the samples: coded pictures and numbered repeats.
  private func video(_ key: KeyFrame) throws(SegmentMismatch) -> [Sample] {
    // A film has repeats of its own.
    let cadence =
      settings.isFilm
      ? .asCaptured : SampleCadence(for: holds.map(\.hold.holdMs), segmentMs: settings.segmentMs)
    let samples = holds.flatMap { placed in
      (placed.sampleStarts ?? cadence.sampleStarts(of: placed.hold.holdMs)).enumerated().map { index, start in
        (start: placed.start + start, repeats: placed.repeats || index > 0)
      }
    }
    let repeats = try SkipSliceWriter(after: key.parameterSets)
    var rest = coded.dropFirst()
    // All repeats are equal but for their numbers.
    var repeated: [UInt8]?
    var video: [Sample] = []
    for (index, sample) in samples.enumerated() {
      let next = index + 1 < samples.count ? samples[index + 1].start : end
      var data: [UInt8]
      if index == 0 {
        data = key.data
      } else {
        guard let own = sample.repeats ? repeated ?? repeats.picture(index) : rest.popFirst()?.data else {
          throw SegmentMismatch("a picture is shown and was not coded")
        }
        data = own
        if sample.repeats { repeated = data }
        try repeats.renumber(&data, index)
      }
      video.append(Sample(duration: next - sample.start, data: data))
    }
    guard rest.isEmpty else { throw SegmentMismatch("a picture was coded and is not shown") }
    return video
  }
}

extension FrameHold {
  /// Maximum bytes of a source's name on the timing track.
  static let sourceBytes = 1_024

  /// The sample on the timing track: JSON behind its length in 2 bytes (3GPP TS 26.245, 5.17), with the capture in unix
  /// milliseconds, the frame's source, and whether it was captured in an earlier segment.
  fileprivate var timingSample: Sample {
    var members: [String: JSONValue] = [
      "t": .number(capture.timeMs), "f": .string(capture.source.shortened(to: Self.sourceBytes)),
    ]
    if status == .continued { members["continued"] = .bool(true) }
    let text = JSONValue.object(members).bytes()
    let length = UInt16(text.count)
    return Sample(
      duration: MediaTime.ticks(ms: holdMs), data: [UInt8(length >> 8), UInt8(truncatingIfNeeded: length)] + text)
  }
}
