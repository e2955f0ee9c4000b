// libsvtav1 through libavcodec, one encoder a segment: the first picture is the only key frame. Pictures are coded in another order than
// they are shown, but each unit shows one picture, in order. With one thread, the same pictures give the same bytes.

import CFFmpeg
import FileSystem
import ISOMedia

final class AV1Encoder: SegmentCoder {
  let width: Int
  let height: Int
  let parameterSets: ParameterSets
  private let codec: CodecContext
  private let packet: Packet
  /// The times of the pictures that were sent. The encoder counts them instead, so that its choices do not depend on times.
  private var times: [Int64] = []

  init(width: Int, height: Int, settings: EncoderSettings) throws(FFmpegError) {
    guard let encoder = unsafe avcodec_find_encoder_by_name(settings.codec) else {
      throw FFmpegError(
        function: "avcodec_find_encoder_by_name(\(settings.codec))", code: cff_error_encoder_not_found())
    }
    (self.width, self.height) = (width, height)
    codec = try unsafe CodecContext(encoder)
    packet = try Packet()
    let context = unsafe codec.pointer
    unsafe context.pointee.width = Int32(width)
    unsafe context.pointee.height = Int32(height)
    unsafe context.pointee.pix_fmt = AV_PIX_FMT_YUV420P
    // A nominal rate, for the level alone: the container has the times.
    unsafe context.pointee.time_base = AVRational(num: 1, den: 25)
    unsafe context.pointee.framerate = AVRational(num: 25, den: 1)
    unsafe context.pointee.thread_count = 1
    unsafe context.pointee.gop_size = -1
    unsafe context.pointee.flags |= cff_flag_global_header()
    unsafe context.pointee.color_primaries = AVCOL_PRI_BT709
    unsafe context.pointee.color_trc = AVCOL_TRC_IEC61966_2_1
    unsafe context.pointee.colorspace = AVCOL_SPC_SMPTE170M
    unsafe context.pointee.color_range = AVCOL_RANGE_MPEG
    try codec.set("preset", settings.preset)
    try codec.set("crf", String(Int(settings.rateFactor)))
    try codec.set("svtav1-params", settings.parameters)
    try unsafe check("avcodec_open2", avcodec_open2(context, encoder, nil))
    let header = unsafe Array(
      UnsafeBufferPointer(start: context.pointee.extradata, count: Int(context.pointee.extradata_size)))
    // Later versions of libavcodec give the whole record.
    guard let sets = ParameterSets(av1: header) ?? ParameterSets(configuration: header) else {
      throw FFmpegError(function: "avcodec_open2 (sequence header)", code: cff_error_invalid_data())
    }
    parameterSets = sets
  }

  func encode(_ picture: Picture, pts: Int64) throws -> [CodedPicture] {
    guard (picture.codedWidth, picture.codedHeight) == (width, height) else {
      throw FFmpegError(function: "avcodec_send_frame", code: cff_error_invalid_data())
    }
    try unsafe picture.withFrame(pts: Int64(times.count)) { (frame) throws(FFmpegError) in
      _ = try unsafe check("avcodec_send_frame", avcodec_send_frame(codec.pointer, frame))
    }
    times.append(pts)
    return try ready()
  }

  func finish() throws -> [CodedPicture] {
    try unsafe check("avcodec_send_frame", avcodec_send_frame(codec.pointer, nil))
    return try ready()
  }

  private func ready() throws -> [CodedPicture] {
    var result: [CodedPicture] = []
    while true {
      let status = unsafe avcodec_receive_packet(codec.pointer, packet.pointer)
      if status == cff_error_eagain() || status == cff_error_eof() { return result }
      try check("avcodec_receive_packet", status)
      defer { unsafe av_packet_unref(packet.pointer) }
      let number = unsafe packet.pointer.pointee.pts
      guard times.indices.contains(Int(number)) else {
        throw SegmentMismatch("the encoder returned a picture that it did not get")
      }
      let pts = times[Int(number)]
      let data = try unsafe AV1Sample.bytes(ofTemporalUnit: Array(packet.bytes))
      unsafe result.append(
        CodedPicture(pts: pts, dts: pts, isKey: cff_packet_is_key(packet.pointer) != 0, data: data))
    }
  }
}
