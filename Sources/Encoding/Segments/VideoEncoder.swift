// libx264 through libavcodec: one encoder a segment, in which the first picture is the only key frame.
// Each unit shows one picture, in order. With one thread, the same pictures give the same bytes.

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

final class VideoEncoder {
  /// Pixels, even.
  let width: Int
  let height: Int
  let parameterSets: ParameterSets
  private let codec: CodecContext
  private let packet: Packet
  /// Whether the encoder counts pictures, and does not know their times, by which look-ahead values them.
  private let counts: Bool
  /// The times of the pictures that were sent, if the encoder counts them.
  private var times: [Int64] = []

  /// - Parameter isDelayed: whether each picture comes out with a later one; by default in archives only.
  init(width: Int, height: Int, settings: EncoderSettings, isDelayed: Bool? = nil) throws(FFmpegError) {
    guard let encoder = unsafe avcodec_find_encoder_by_name(settings.codec) else {
      throw FFmpegError(
        function: "avcodec_find_encoder_by_name(\(settings.codec))", code: cff_error_encoder_not_found())
    }
    (self.width, self.height) = (width, height)
    counts = settings.isArchive
    codec = try unsafe CodecContext(encoder)
    packet = try Packet()
    let context = unsafe codec.pointer
    unsafe context.pointee.width = Int32(width)
    unsafe context.pointee.height = Int32(height)
    unsafe context.pointee.pix_fmt = AV_PIX_FMT_YUV420P
    // Without a frame rate x264 takes the time base for it, and chooses level 6.2 instead of 3.2. It is a constant: all segments of a
    // size have the same parameter sets, whatever the recorder's interval.
    let (base, rate): (Int32, Int32) = counts ? (25, 25) : (Int32(MediaTime.timescale), 1)
    unsafe context.pointee.time_base = AVRational(num: 1, den: base)
    unsafe context.pointee.framerate = AVRational(num: rate, den: 1)
    unsafe context.pointee.thread_count = 1
    unsafe context.pointee.flags |= cff_flag_global_header()
    // The screenshot's own colours: sRGB in the matrix of BT.601.
    unsafe context.pointee.color_primaries = AVCOL_PRI_BT709
    unsafe context.pointee.color_trc = AVCOL_TRC_IEC61966_2_1
    unsafe context.pointee.colorspace = AVCOL_SPC_SMPTE170M
    unsafe context.pointee.color_range = AVCOL_RANGE_MPEG
    try codec.set("preset", settings.preset)
    unsafe context.pointee.max_b_frames = 0
    unsafe context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
    unsafe context.pointee.chroma_sample_location = AVCHROMA_LOC_CENTER
    try codec.set("crf", String(settings.rateFactor))
    let isDelayed = isDelayed ?? settings.isArchive
    try codec.set("x264-params", settings.parameters + (isDelayed ? "" : Self.withoutDelay))
    try unsafe check("avcodec_open2", avcodec_open2(context, encoder, nil))
    let header = unsafe UnsafeBufferPointer(
      start: context.pointee.extradata, count: Int(context.pointee.extradata_size))
    guard let sets = unsafe Self.parameterSets(header) else {
      throw FFmpegError(function: "avcodec_open2 (parameter sets)", code: cff_error_invalid_data())
    }
    parameterSets = sets.at(framesASecond: Int(MediaTime.timescale), isVariable: true)
  }

  /// Left to itself, x264 keeps each picture until the next one tells how long it is shown: 9 MB at 1170×2532. Without look-ahead and
  /// with `qcomp=1` no decision depends on it. The times stay as they are; only the sequence parameter set would tell another rate.
  /// It is no setting: the segments have the same bytes.
  private static let withoutDelay = ":force-cfr=1"

  private static func parameterSets(_ header: UnsafeBufferPointer<UInt8>) -> ParameterSets? {
    let units = unsafe NALUnit.split(header)
    guard let sequence = units.first(where: { unsafe $0.kind == .sequenceParameterSet }),
      let picture = units.first(where: { unsafe $0.kind == .pictureParameterSet })
    else { return nil }
    return unsafe ParameterSets(sequence: Array(sequence.bytes), picture: Array(picture.bytes))
  }

  /// Encodes a picture. In an archive, it comes out with a later one or at the end.
  ///
  /// - Parameter pts: ticks from the segment's start, more than the one before.
  /// - Returns: the pictures that are ready, in their order.
  func encode(_ picture: Picture, pts: Int64) throws -> [CodedPicture] {
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

  /// Ends the segment.
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
      result.append(
        CodedPicture(
          pts: try unsafe time(packet.pointer.pointee.pts), dts: try unsafe time(packet.pointer.pointee.dts),
          isKey: unsafe cff_packet_is_key(packet.pointer) != 0,
          data: unsafe NALUnit.lengthPrefixed(NALUnit.split(packet.bytes))))
    }
  }

  /// Returns the time of a picture by its time in the encoder.
  private func time(_ coded: Int64) throws(SegmentMismatch) -> Int64 {
    guard counts else { return coded }
    guard times.indices.contains(Int(coded)) else {
      throw SegmentMismatch("the encoder returned a picture that it did not get")
    }
    return times[Int(coded)]
  }
}
