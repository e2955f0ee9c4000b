// libx264 through libavcodec, one encoder a segment: the first picture is the key frame, no picture is reordered or
// delayed, and times go through as they came. Single-threaded, so the same pictures give the same bytes.

import CFFmpeg
import FileSystem
import ISOMedia

/// One coded picture.
struct CodedPicture {
  /// The start, in ticks of ``MediaTime/timescale`` from the segment's start.
  let pts: Int64
  /// The decoding time: equal, as no picture is reordered.
  let dts: Int64
  let isKey: Bool
  /// NAL units, each behind its length in 4 bytes (ISO/IEC 14496-15, 5.3.4.2).
  let data: [UInt8]
}

/// The encoder of one segment.
protocol SegmentCoder: AnyObject {
  /// Pixels, even.
  var width: Int { get }
  var height: Int { get }
  var parameterSets: ParameterSets { get }

  /// Encodes a picture, which comes out with a later one or at the end.
  ///
  /// - Parameter pts: ticks from the segment's start, more than the one before.
  /// - Returns: the pictures that are ready, in their order.
  func encode(_ picture: Picture, pts: Int64) throws -> [CodedPicture]

  /// Ends the segment.
  func finish() throws -> [CodedPicture]
}

extension EncoderSettings {
  /// Whether each picture needs a sample of the encoder, even if it repeats the one before.
  var codesRepeats: Bool { archive == .av1 }

  /// Returns a segment's encoder.
  func coder(width: Int, height: Int) throws -> any SegmentCoder {
    archive == .av1
      ? try AV1Encoder(width: width, height: height, settings: self)
      : try H264Encoder(width: width, height: height, settings: self)
  }
}

final class H264Encoder: SegmentCoder {
  let width: Int
  let height: Int
  let parameterSets: ParameterSets
  private let codec: CodecContext
  private let packet: Packet
  /// Whether the encoder counts pictures, and does not know their times, by which x264's look-ahead values them.
  private let counts: Bool
  /// The times of the pictures that were sent, if the encoder counts them.
  private var times: [Int64] = []

  init(width: Int, height: Int, settings: EncoderSettings) throws(FFmpegError) {
    guard let encoder = unsafe avcodec_find_encoder_by_name(settings.codec) else {
      throw FFmpegError(function: "avcodec_find_encoder_by_name(\(settings.codec))", code: cff_error_invalid_data())
    }
    (self.width, self.height) = (width, height)
    codec = try unsafe CodecContext(encoder)
    packet = try Packet()
    counts = settings.archive != nil
    let context = unsafe codec.pointer
    unsafe context.pointee.width = Int32(width)
    unsafe context.pointee.height = Int32(height)
    unsafe context.pointee.pix_fmt = AV_PIX_FMT_YUV420P
    unsafe context.pointee.time_base = AVRational(num: 1, den: Int32(MediaTime.timescale))
    // Without it x264 takes the time base for the frame rate, and chooses level 6.2 instead of 3.2. It is a constant: all
    // segments of a size have the same parameter sets, whatever the recorder's interval.
    unsafe context.pointee.framerate = AVRational(num: 1, den: 1)
    if counts {
      unsafe context.pointee.time_base = AVRational(num: 1, den: 25)
      unsafe context.pointee.framerate = AVRational(num: 25, den: 1)
    }
    unsafe context.pointee.thread_count = 1
    unsafe context.pointee.max_b_frames = 0
    unsafe context.pointee.flags |= cff_flag_global_header()
    unsafe context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
    // The screenshot's own colours: sRGB in the matrix of BT.601.
    unsafe context.pointee.color_primaries = AVCOL_PRI_BT709
    unsafe context.pointee.color_trc = AVCOL_TRC_IEC61966_2_1
    unsafe context.pointee.colorspace = AVCOL_SPC_SMPTE170M
    unsafe context.pointee.color_range = AVCOL_RANGE_MPEG
    unsafe context.pointee.chroma_sample_location = AVCHROMA_LOC_CENTER
    try codec.set("preset", settings.preset)
    try codec.set("crf", String(settings.rateFactor))
    try codec.set("x264-params", settings.parameters)
    try unsafe check("avcodec_open2", avcodec_open2(context, encoder, nil))
    let header = unsafe UnsafeBufferPointer(
      start: context.pointee.extradata, count: Int(context.pointee.extradata_size))
    let units = unsafe NALUnit.split(header)
    guard let sequence = units.first(where: { unsafe $0.kind == .sequenceParameterSet }),
      let picture = units.first(where: { unsafe $0.kind == .pictureParameterSet })
    else { throw FFmpegError(function: "avcodec_open2 (parameter sets)", code: cff_error_invalid_data()) }
    let sets = unsafe ParameterSets(sequence: Array(sequence.bytes), picture: Array(picture.bytes))
    parameterSets = counts ? sets.at(framesASecond: Int(MediaTime.timescale)) : sets
  }

  func encode(_ picture: Picture, pts: Int64) throws(FFmpegError) -> [CodedPicture] {
    // libx264 reads as many pixels as it was opened for, even from a smaller picture.
    guard (picture.codedWidth, picture.codedHeight) == (width, height) else {
      throw FFmpegError(function: "avcodec_send_frame", code: cff_error_invalid_data())
    }
    try unsafe picture.withFrame(pts: counts ? Int64(times.count) : pts) { (frame) throws(FFmpegError) in
      _ = try unsafe check("avcodec_send_frame", avcodec_send_frame(codec.pointer, frame))
    }
    if counts { times.append(pts) }
    return try ready()
  }

  func finish() throws(FFmpegError) -> [CodedPicture] {
    try unsafe check("avcodec_send_frame", avcodec_send_frame(codec.pointer, nil))
    return try ready()
  }

  private func ready() throws(FFmpegError) -> [CodedPicture] {
    var result: [CodedPicture] = []
    while true {
      let status = unsafe avcodec_receive_packet(codec.pointer, packet.pointer)
      if status == cff_error_eagain() || status == cff_error_eof() { return result }
      try check("avcodec_receive_packet", status)
      defer { unsafe av_packet_unref(packet.pointer) }
      unsafe result.append(
        CodedPicture(
          pts: time(packet.pointer.pointee.pts), dts: time(packet.pointer.pointee.dts),
          isKey: cff_packet_is_key(packet.pointer) != 0, data: NALUnit.lengthPrefixed(NALUnit.split(packet.bytes))))
    }
  }

  /// Returns the time of a picture by its time in the encoder; -1 for one that it did not get, which the writer refuses.
  private func time(_ coded: Int64) -> Int64 {
    guard counts else { return coded }
    return times.indices.contains(Int(coded)) ? times[Int(coded)] : -1
  }
}
