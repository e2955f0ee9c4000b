// Encodes a picture as an image file, through libavcodec: planar 4:2:0 as JPEG, RGB as PNG, BGRA as WebP. The same pixels give the
// same bytes.

import CFFmpeg
import FileSystem

package enum ImageFile {
  /// - Parameters:
  ///   - picture: planar 4:2:0, full range, BT.601, as JFIF has it.
  ///   - scale: the quantiser scale of mjpeg, 1 to 31; a lower scale gives a better picture.
  package static func jpeg(_ picture: FrameBuffer, scale: Int32 = 4) throws(FFmpegError) -> [UInt8] {
    // FFmpeg's unit of quality, 1/118 of the scale (libavutil/avutil.h).
    let quality = scale * FF_QP2LAMBDA
    picture.colourRange = AVCOL_RANGE_JPEG
    unsafe picture.frame.pointee.quality = quality
    return try unsafe encode(picture, with: encoder(AV_CODEC_ID_MJPEG)) { context in
      unsafe context.pointee.color_range = AVCOL_RANGE_JPEG
      // For FFmpeg, 4:2:0 with a separate full range is unofficial; the pixel format that implies the range is deprecated.
      unsafe context.pointee.strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL
      unsafe context.pointee.flags |= AV_CODEC_FLAG_QSCALE
      unsafe context.pointee.global_quality = quality
    }
  }

  /// - Parameters:
  ///   - picture: RGB24.
  ///   - effort: zlib's level, 1 to 9; a higher level makes smaller files and takes longer.
  package static func png(_ picture: FrameBuffer, effort: Int32 = 6) throws(FFmpegError) -> [UInt8] {
    try unsafe encode(picture, with: encoder(AV_CODEC_ID_PNG)) { context in
      unsafe context.pointee.color_range = AVCOL_RANGE_JPEG
      unsafe context.pointee.compression_level = effort
    }
  }

  /// The encoder of a still WebP; the other one of libavcodec makes animations.
  static let webpEncoder = "libwebp"

  /// - Parameter picture: BGRA, whose colours are not multiplied by alpha.
  /// - Throws: ``MissingEncoder``, ``FFmpegError``.
  static func webp(_ picture: FrameBuffer) throws -> [UInt8] {
    try unsafe encode(picture, with: encoder(named: webpEncoder)) { context in
      unsafe context.pointee.compression_level = 4
    }
  }

  static func encoder(named name: String) throws(MissingEncoder) -> UnsafePointer<AVCodec> {
    guard let encoder = unsafe avcodec_find_encoder_by_name(name) else { throw MissingEncoder(name: name) }
    return unsafe encoder
  }

  private static func encoder(_ kind: AVCodecID) throws(FFmpegError) -> UnsafePointer<AVCodec> {
    guard let encoder = unsafe avcodec_find_encoder(kind) else {
      throw FFmpegError(function: "avcodec_find_encoder", code: cff_error_encoder_not_found())
    }
    return unsafe encoder
  }

  private static func encode(
    _ picture: FrameBuffer, with encoder: UnsafePointer<AVCodec>,
    _ configure: (UnsafeMutablePointer<AVCodecContext>) -> Void
  ) throws(FFmpegError) -> [UInt8] {
    let codec = try unsafe CodecContext(encoder)
    let context = unsafe codec.pointer
    unsafe context.pointee.width = Int32(picture.width)
    unsafe context.pointee.height = Int32(picture.height)
    unsafe context.pointee.pix_fmt = picture.format
    unsafe context.pointee.time_base = AVRational(num: 1, den: 1)
    unsafe context.pointee.thread_count = 1
    // Otherwise the file contains the library's version.
    unsafe context.pointee.flags |= AV_CODEC_FLAG_BITEXACT
    unsafe configure(context)
    try unsafe check("avcodec_open2", avcodec_open2(context, encoder, nil))
    picture.pts = 0
    // The end follows the only picture.
    try unsafe check("avcodec_send_frame", avcodec_send_frame(context, picture.frame))
    try unsafe check("avcodec_send_frame", avcodec_send_frame(context, nil))
    let packet = try Packet()
    try unsafe check("avcodec_receive_packet", avcodec_receive_packet(context, packet.pointer))
    return unsafe Array(packet.bytes)
  }
}
