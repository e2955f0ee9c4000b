// libx264 through libavcodec, one encoder a segment: the first picture is the key frame, no picture is reordered or
// delayed, and times go through as they came. Single-threaded, so the same pictures give the same bytes.

import CFFmpeg
import FileSystem
import ISOMedia

/// One coded picture.
struct CodedPicture {
  /// Media time of its start, in ticks of ``MediaTime/timescale``, from the segment's start.
  package let pts: Int64
  /// When it is to be decoded; the same, as nothing is reordered.
  package let dts: Int64
  let isKey: Bool
  /// NAL units, each behind its length in 4 bytes (ISO/IEC 14496-15, 5.3.4.2).
  package let data: [UInt8]
}

final class H264Encoder {
  /// Pixels, even.
  package let width: Int
  package let height: Int
  package let parameterSets: ParameterSets
  private let codec: CodecContext
  private let packet: Packet

  static var libraryVersion: String {
    let version = avcodec_version()
    return "\(version >> 16).\(version >> 8 & 255).\(version & 255)"
  }

  /// - Parameters:
  ///   - width: pixels, even.
  ///   - height: pixels, even.
  init(width: Int, height: Int, settings: EncoderSettings) throws(FFmpegError) {
    guard let encoder = avcodec_find_encoder_by_name(settings.codec) else {
      throw FFmpegError(function: "avcodec_find_encoder_by_name(\(settings.codec))", code: cff_error_invalid_data())
    }
    (self.width, self.height) = (width, height)
    codec = try CodecContext(encoder)
    packet = try Packet()
    let context = codec.pointer
    context.pointee.width = Int32(width)
    context.pointee.height = Int32(height)
    context.pointee.pix_fmt = AV_PIX_FMT_YUV420P
    context.pointee.time_base = AVRational(num: 1, den: Int32(MediaTime.timescale))
    // Without it x264 takes the time base for the frame rate, and level 6.2 for what is level 3.2. A constant, so that
    // all segments of a size have the same parameter sets whatever the recorder's pace.
    context.pointee.framerate = AVRational(num: 1, den: 1)
    context.pointee.thread_count = 1
    context.pointee.max_b_frames = 0
    context.pointee.flags |= cff_flag_global_header()
    context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
    // The screenshot's own colours: sRGB in the matrix of BT.601.
    context.pointee.color_primaries = AVCOL_PRI_BT709
    context.pointee.color_trc = AVCOL_TRC_IEC61966_2_1
    context.pointee.colorspace = AVCOL_SPC_SMPTE170M
    context.pointee.color_range = AVCOL_RANGE_MPEG
    context.pointee.chroma_sample_location = AVCHROMA_LOC_CENTER
    try codec.set("preset", settings.preset)
    try codec.set("crf", String(settings.rateFactor))
    try codec.set("x264-params", settings.parameters)
    try check("avcodec_open2", avcodec_open2(context, encoder, nil))
    let header = UnsafeBufferPointer(start: context.pointee.extradata, count: Int(context.pointee.extradata_size))
    let units = NALUnit.split(header)
    guard let sequence = units.first(where: { $0.kind == .sequenceParameterSet }),
      let picture = units.first(where: { $0.kind == .pictureParameterSet })
    else { throw FFmpegError(function: "avcodec_open2 (parameter sets)", code: cff_error_invalid_data()) }
    parameterSets = ParameterSets(sequence: Array(sequence.bytes), picture: Array(picture.bytes))
  }

  /// Codes one picture; it comes out when the next one goes in, or at the end.
  ///
  /// - Parameter pts: ticks from the segment's start, more than the one before.
  /// - Returns: what is ready, in the order it went in.
  package func encode(_ picture: Picture, pts: Int64) throws(FFmpegError) -> [CodedPicture] {
    // libx264 reads as many pixels as it was opened for, whatever the picture has.
    guard (picture.codedWidth, picture.codedHeight) == (width, height) else {
      throw FFmpegError(function: "avcodec_send_frame", code: cff_error_invalid_data())
    }
    try picture.withFrame(pts: pts) { (frame) throws(FFmpegError) in
      _ = try check("avcodec_send_frame", avcodec_send_frame(codec.pointer, frame))
    }
    return try ready()
  }

  /// Ends the segment.
  package func finish() throws(FFmpegError) -> [CodedPicture] {
    try check("avcodec_send_frame", avcodec_send_frame(codec.pointer, nil))
    return try ready()
  }

  private func ready() throws(FFmpegError) -> [CodedPicture] {
    var result: [CodedPicture] = []
    while true {
      let status = avcodec_receive_packet(codec.pointer, packet.pointer)
      if status == cff_error_eagain() || status == cff_error_eof() { return result }
      try check("avcodec_receive_packet", status)
      defer { av_packet_unref(packet.pointer) }
      result.append(
        CodedPicture(
          pts: packet.pointer.pointee.pts, dts: packet.pointer.pointee.dts,
          isKey: cff_packet_is_key(packet.pointer) != 0, data: NALUnit.lengthPrefixed(NALUnit.split(packet.bytes))))
    }
  }
}
