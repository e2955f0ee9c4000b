// Encodes a picture as an image file, through libavcodec: planar 4:2:0 as JPEG, RGB as PNG. The same pixels give the same bytes.

import CFFmpeg
import FileSystem

package enum ImageFile {
  /// - Parameters:
  ///   - picture: planar 4:2:0, full range, BT.601, as JFIF has it.
  ///   - scale: the quantiser scale of mjpeg, 1 to 31; a lower scale gives a better picture.
  package static func jpeg(_ picture: FrameBuffer, scale: Int32 = 4) throws(FFmpegError) -> [UInt8] {
    // FFmpeg's unit of quality, 1/118 of the scale (libavutil/avutil.h).
    let quality = scale * FF_QP2LAMBDA
    picture.frame.pointee.color_range = AVCOL_RANGE_JPEG
    picture.frame.pointee.quality = quality
    return try encode(picture, as: AV_CODEC_ID_MJPEG) { context in
      context.pointee.color_range = AVCOL_RANGE_JPEG
      // For FFmpeg, 4:2:0 with a separate full range is unofficial; the pixel format that implies the range is deprecated.
      context.pointee.strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL
      context.pointee.flags |= AV_CODEC_FLAG_QSCALE
      context.pointee.global_quality = quality
    }
  }

  /// - Parameters:
  ///   - picture: RGB24.
  ///   - effort: zlib's level, 1 to 9; a higher level makes smaller files and takes longer.
  package static func png(_ picture: FrameBuffer, effort: Int32 = 6) throws(FFmpegError) -> [UInt8] {
    try encode(picture, as: AV_CODEC_ID_PNG) { context in
      context.pointee.color_range = AVCOL_RANGE_JPEG
      context.pointee.compression_level = effort
    }
  }

  private static func encode(
    _ picture: FrameBuffer, as kind: AVCodecID, _ configure: (UnsafeMutablePointer<AVCodecContext>) -> Void
  ) throws(FFmpegError) -> [UInt8] {
    guard let encoder = avcodec_find_encoder(kind) else {
      throw FFmpegError(function: "avcodec_find_encoder", code: cff_error_encoder_not_found())
    }
    let codec = try CodecContext(encoder)
    let context = codec.pointer
    context.pointee.width = Int32(picture.width)
    context.pointee.height = Int32(picture.height)
    context.pointee.pix_fmt = picture.format
    context.pointee.time_base = AVRational(num: 1, den: 1)
    context.pointee.thread_count = 1
    // Otherwise the file contains the library's version.
    context.pointee.flags |= AV_CODEC_FLAG_BITEXACT
    configure(context)
    try check("avcodec_open2", avcodec_open2(context, encoder, nil))
    picture.frame.pointee.pts = 0
    // The end follows the only picture.
    for frame in [picture.frame, nil] { try check("avcodec_send_frame", avcodec_send_frame(context, frame)) }
    let packet = try Packet()
    try check("avcodec_receive_packet", avcodec_receive_packet(context, packet.pointer))
    return Array(packet.bytes)
  }
}
