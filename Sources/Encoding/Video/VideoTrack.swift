import CFFmpeg
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// The samples of a video track, read without decoding them.
package struct VideoTrack {
  package struct Sample {
    /// The times of presentation and decoding, in the track's units.
    package let pts: Int64
    package let dts: Int64
    /// The duration in the file; zero if the file has none.
    package let duration: Int64
    package let width: Int
    package let height: Int
    /// The capture in unix milliseconds, from the timing track of a film by `stitch`; nil for repeats and in other films.
    package var timeMs: Int64?

    /// Whether a sample from a decoder process, which is not trusted, is within bounds.
    func isWithin(_ limits: Limits) -> Bool {
      PixelSize(width: width, height: height).isWithin(limits) && pts.magnitude < 1 << 60 && dts.magnitude < 1 << 60
        && duration.magnitude < 1 << 60 && timeMs.map { $0.magnitude < 1 << 60 } ?? true
    }
  }

  /// The index of the track in the file.
  package let index: Int
  /// The track's units, in seconds.
  package let timeBase: (numerator: Int64, denominator: Int64)
  package let quarterTurns: Int
  /// The file's `creation_time`, as it is written; nil if it has none.
  package let creationTime: String?
  /// The index of the timing track in the file; nil if it has none.
  package let timingIndex: Int?
  /// Whether the file has no other video track.
  package let isOnlyVideo: Bool
  /// Whether the file says when the last sample ends. libavformat guesses a duration where it does not.
  package let hasEnd: Bool
  /// The shown samples, by presentation time.
  package let samples: [Sample]
  /// The key frames, by presentation time, whose successors need no sample before them. Some are not shown.
  package let keys: [Sample]
}

extension VideoTrack {
  /// The cause of ``BadSession`` for a track without samples.
  package static let noPicture = "no picture"
  /// The cause of ``BadSession`` for a file without a track that can be read.
  package static let noTrack = "no H.264, HEVC or AV1 track"

  /// Reads a file once.
  ///
  /// - Parameter name: names the file in errors.
  /// - Throws: ``FFmpegError`` if it cannot be read, ``BadSession`` if it cannot be encoded anew.
  package init(of file: any ByteSource, name: String, limits: Limits, cancellation: Cancellation = .never) throws {
    func bad(_ cause: String, _ advice: String) -> BadSession { BadSession(name, cause, advice: advice) }
    guard MP4SampleBudget.isBearable(file) else {
      throw bad("its tables list more samples than a film has", "remux it with ffmpeg -c copy")
    }
    let reader = try MP4Reader(file)
    let codecs = [AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1]
    guard let index = (0..<reader.trackCount).first(where: { codecs.contains(reader.codec(of: $0)) }) else {
      throw bad(Self.noTrack, "name an MP4 with one")
    }
    let parameters = unsafe reader.parameters(of: index)
    guard let quarterTurns = reader.quarterTurns(of: index) else {
      throw bad("its pictures are mirrored, or turned by no quarter turn", "encode it upright first")
    }
    let aspect = reader.pixelAspect(of: index)
    // A difference of less than one in a hundred comes from a rounded size.
    guard aspect.num <= 0 || 100 * abs(Int(aspect.num) - Int(aspect.den)) < Int(aspect.den) else {
      throw bad("pixels that are not square (\(aspect.num):\(aspect.den))", "scale it first")
    }
    var sizes = try unsafe SizeParser(parameters)
    let isAVC = reader.codec(of: index) == AV_CODEC_ID_H264
    var shown: [Sample] = []
    var keys: [(sample: Sample, index: Int)] = []
    var size: PixelSize?
    var leastPts: [Int64] = []
    var (leastDTS, lastDTS) = (Int64.max, Int64.min)
    var timing = TimingTrack(in: reader, beside: index)
    while let sample = try reader.next() {
      try cancellation.check()
      timing.add(sample)
      guard sample.track == index, unsafe !sample.bytes.isEmpty else { continue }
      guard sample.pts != cff_no_pts(), sample.pts.magnitude < 1 << 60, sample.dts.magnitude < 1 << 60 else {
        throw bad("a sample without a time", "remux it with ffmpeg -c copy")
      }
      if let configuration = unsafe sample.configuration { sizes = try unsafe SizeParser(parameters, configuration) }
      if sample.isKey { size = sizes.size(of: sample) ?? size }
      guard let size else { throw bad("it does not begin with a key frame", "cut it at a key frame") }
      guard size.isWithin(limits) else {
        throw bad("\(size.width)×\(size.height) pixels, more than the limit", "scale it first")
      }
      let found = Sample(
        pts: sample.pts, dts: sample.dts, duration: sample.duration, width: size.width, height: size.height)
      // H.264 may begin with pictures that refer to earlier ones; only an IDR does not. HEVC tells it by its times.
      if sample.isKey, unsafe keys.isEmpty || !isAVC || Self.hasIDR(sample.bytes, parameters) {
        keys.append((found, leastPts.count))
      }
      leastPts.append(sample.pts)
      guard leastPts.count <= limits.filmPictures else {
        throw bad("more than the limit of \(limits.filmPictures) pictures", "cut it into parts")
      }
      if !sample.isDiscarded { shown.append(found) }
      (leastDTS, lastDTS) = (min(leastDTS, sample.dts), max(lastDTS, sample.dts))
    }
    guard !shown.isEmpty, !keys.isEmpty else { throw bad(Self.noPicture, "name an MP4 with one") }
    // Then each element is the earliest time of its sample and of all samples behind it.
    for index in leastPts.indices.dropLast().reversed() { leastPts[index] = min(leastPts[index], leastPts[index + 1]) }
    // A picture that is shown before its key frame needs samples before that (open GOP). The first key frame has none.
    let closed = keys.enumerated().filter { $0.offset == 0 || leastPts[$0.element.index] == $0.element.sample.pts }
    self.index = index
    timeBase = reader.timeBase(of: index)
    self.quarterTurns = quarterTurns
    creationTime = reader.creationTime
    timingIndex = timing.track
    isOnlyVideo = (0..<reader.trackCount).allSatisfy {
      unsafe $0 == index || reader.parameters(of: $0).pointee.codec_type != AVMEDIA_TYPE_VIDEO
    }
    hasEnd = reader.duration(of: index).map { $0 > leastDTS.distance(to: lastDTS) } ?? true
    samples = timing.dating(shown.sorted { $0.pts < $1.pts })
    self.keys = closed.map(\.element.sample).sorted { $0.pts < $1.pts }
  }

  /// Whether a sample has a NAL unit of type 5, an IDR (ITU-T H.264, 7.4.1). The configuration tells the bytes of a unit's
  /// length (ISO/IEC 14496-15, 5.3.3.1).
  private static func hasIDR(_ sample: UnsafeBufferPointer<UInt8>, _ parameters: UnsafePointer<AVCodecParameters>)
    -> Bool
  {
    guard let configuration = unsafe parameters.pointee.extradata,
      unsafe parameters.pointee.extradata_size > 4 && configuration[0] == 1
    else { return false }
    let lengthSize = unsafe Int(configuration[4] & 3) + 1
    var offset = 0
    while offset + lengthSize < sample.count {
      let length = unsafe sample[offset..<offset + lengthSize].reduce(0) { $0 << 8 | Int($1) }
      if unsafe sample[offset + lengthSize] & 0x1F == 5 { return true }
      offset += lengthSize + length
    }
    return false
  }

  /// Converts a time to milliseconds from the first picture, rounded to the nearest.
  package func milliseconds(_ pts: Int64) -> Int64 {
    let scaled = (pts - samples[0].pts).multipliedFullWidth(by: 1_000 * timeBase.numerator)
    // Larger than any valid instant; the caller refuses it.
    guard scaled.high == 0, scaled.low < UInt64(Int64.max / 4) else { return Int64.max / 4 }
    let (quotient, rest) = Int64(scaled.low).quotientAndRemainder(dividingBy: timeBase.denominator)
    return quotient + (2 * rest >= timeBase.denominator ? 1 : 0)
  }
}

/// The captures of a film by `stitch`, from its timing track.
private struct TimingTrack {
  /// The index of the track; nil if there is none.
  private(set) var track: Int?
  /// Unix milliseconds of captures, by presentation time in the film's units.
  private var instants: [Int64: Int64] = [:]

  init(in reader: MP4Reader, beside video: Int) {
    track = (0..<reader.trackCount).first {
      reader.codec(of: $0) == AV_CODEC_ID_MOV_TEXT
        && reader.timeBase(of: $0) == reader.timeBase(of: video)
    }
  }

  mutating func add(_ sample: MP4Reader.ReadSample) {
    // The text comes after its length in 2 bytes. An empty text is a gap.
    guard sample.track == track, unsafe sample.bytes.count > 2 else { return }
    guard let text = try? unsafe JSONParser.parse(Array(sample.bytes.dropFirst(2))).object,
      let timeMs = text["t"]?.integer
    else {
      // The texts are subtitles.
      track = nil
      instants = [:]
      return
    }
    instants[sample.pts] = timeMs
  }

  /// Returns the samples with their captures; unchanged when the captures are not in order.
  func dating(_ samples: [VideoTrack.Sample]) -> [VideoTrack.Sample] {
    var dated = samples
    var last: Int64?
    for index in dated.indices {
      guard let timeMs = instants[dated[index].pts] else { continue }
      guard last ?? .min <= timeMs else { return samples }
      // The same capture again: a picture that stays on screen in the next segment.
      if timeMs != last { dated[index].timeMs = timeMs }
      last = timeMs
    }
    return dated.first?.timeMs == nil ? samples : dated
  }
}

/// Reads the size of a key frame's picture without decoding it. It is safe: it owns its parser.
@safe private final class SizeParser {
  private let parser: UnsafeMutablePointer<AVCodecParserContext>
  private let context: CodecContext

  init(
    _ parameters: UnsafePointer<AVCodecParameters>, _ configuration: UnsafeBufferPointer<UInt8>? = nil
  ) throws(FFmpegError) {
    context = try unsafe CodecContext(parameters)
    unsafe parser = try allocated("av_parser_init", cff_parser_init(parameters.pointee.codec_id))
    unsafe parser.pointee.flags |= PARSER_FLAG_COMPLETE_FRAMES
    if let configuration = unsafe configuration { try unsafe context.setConfiguration(configuration) }
  }

  deinit { unsafe av_parser_close(parser) }

  func size(of sample: MP4Reader.ReadSample) -> PixelSize? {
    var unit: UnsafeMutablePointer<UInt8>?
    var unitSize: Int32 = 0
    unsafe av_parser_parse2(
      parser, context.pointer, &unit, &unitSize, sample.bytes.baseAddress, Int32(sample.bytes.count), sample.pts,
      sample.dts, -1)
    let size = unsafe PixelSize(width: Int(parser.pointee.width), height: Int(parser.pointee.height))
    return min(size.width, size.height) > 0 ? size : nil
  }
}
