// What a video file's track holds, found by reading it once without decoding it.

import CFFmpeg

struct VideoTrack {
  struct Sample {
    /// When it is shown and when it is decoded, in the track's units.
    let pts: Int64
    let dts: Int64
    /// How long the file says it lasts; zero where it says nothing.
    let duration: Int64
    let isKey: Bool
    let width: Int
    let height: Int
  }

  /// Which of the file's tracks it is.
  let index: Int
  /// The track's units, in seconds.
  let timeBase: (numerator: Int64, denominator: Int64)
  let quarterTurns: Int
  /// As the file has it, where it does.
  let creationTime: String?
  /// In the order they are shown.
  let samples: [Sample]

  /// - Throws: ``FFmpegError`` when it cannot be read, ``BadSession`` when it is nothing that we can encode anew.
  init(of path: String) throws {
    let reader = try MP4Reader(opening: path)
    func bad(_ cause: String, _ advice: String) -> BadSession { BadSession(path, cause, advice: advice) }
    let codecs = [AV_CODEC_ID_H264, AV_CODEC_ID_HEVC]
    guard
      let index = (0..<reader.trackCount).first(where: { codecs.contains(reader.parameters(of: $0).pointee.codec_id) })
    else { throw bad("no H.264 or HEVC track", "name an MP4 with one") }
    guard let quarterTurns = reader.quarterTurns(of: index) else {
      throw bad("turned by what is no quarter turn", "turn it upright first")
    }
    let sizes = try SizeParser(reader.parameters(of: index))
    var samples: [Sample] = []
    var size: (width: Int, height: Int)?
    while let sample = try reader.next() {
      guard sample.track == index else { continue }
      guard sample.pts != cff_no_pts() else { throw bad("a sample without a time", "remux it with ffmpeg -c copy") }
      if sample.isKey { size = sizes.size(of: sample) ?? size }
      guard !sample.isDiscarded else { continue }
      guard let size else { throw bad("it does not begin with a key frame", "cut it at one") }
      samples.append(
        Sample(
          pts: sample.pts, dts: sample.dts, duration: sample.duration, isKey: sample.isKey, width: size.width,
          height: size.height))
    }
    guard !samples.isEmpty else { throw bad("no picture", "name an MP4 with one") }
    self.index = index
    timeBase = reader.timeBase(of: index)
    self.quarterTurns = quarterTurns
    creationTime = reader.creationTime
    self.samples = samples.sorted { $0.pts < $1.pts }
  }

  /// A time as milliseconds from the first picture on, and whether that is exact.
  func milliseconds(_ pts: Int64) -> (value: Int64, isExact: Bool) {
    let (scaled, overflow) = (pts - samples[0].pts).multipliedReportingOverflow(by: 1_000 * timeBase.numerator)
    guard !overflow else { return (.max / 2, false) }
    let (quotient, rest) = scaled.quotientAndRemainder(dividingBy: timeBase.denominator)
    return (quotient + (2 * rest >= timeBase.denominator ? 1 : 0), rest == 0)
  }
}

/// Tells how large a key frame's picture is, without decoding it.
private final class SizeParser {
  private let parser: UnsafeMutablePointer<AVCodecParserContext>
  private let context: CodecContext

  init(_ parameters: UnsafePointer<AVCodecParameters>) throws(FFmpegError) {
    guard let codec = avcodec_find_decoder(parameters.pointee.codec_id) else {
      throw FFmpegError(function: "avcodec_find_decoder", code: cff_error_decoder_not_found())
    }
    context = try CodecContext(codec)
    parser = try allocated("av_parser_init", av_parser_init(Int32(parameters.pointee.codec_id.rawValue)))
    parser.pointee.flags |= PARSER_FLAG_COMPLETE_FRAMES
    try check(
      "avcodec_parameters_to_context", avcodec_parameters_to_context(context.pointer, parameters))
  }

  deinit { av_parser_close(parser) }

  func size(of sample: MP4Reader.ReadSample) -> (width: Int, height: Int)? {
    var unit: UnsafeMutablePointer<UInt8>?
    var unitSize: Int32 = 0
    av_parser_parse2(
      parser, context.pointer, &unit, &unitSize, sample.bytes.baseAddress, Int32(sample.bytes.count), sample.pts,
      sample.dts, -1)
    let (width, height) = (Int(parser.pointee.width), Int(parser.pointee.height))
    return width > 0 && height > 0 ? (width, height) : nil
  }
}
