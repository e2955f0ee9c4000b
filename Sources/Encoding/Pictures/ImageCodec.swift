import CFFmpeg
import FileSystem
import FrameBatches
import Glibc

/// A libavcodec decoder for one still image.
final class ImageCodec {
  private let kind: ImageKind
  private let codec: CodecContext
  private let packet: Packet
  private let buffer: SharedPictureBuffer?
  /// Whether the picture is in `buffer`.
  private var isInBuffer = false

  init(_ kind: ImageKind, limits: Limits, _ buffer: SharedPictureBuffer?) throws(FFmpegError) {
    self.kind = kind
    self.buffer = buffer
    guard let decoder = unsafe avcodec_find_decoder(kind.codec) else {
      throw FFmpegError(function: "avcodec_find_decoder", code: cff_error_invalid_data())
    }
    codec = try unsafe CodecContext(decoder)
    packet = try Packet()
    let context = unsafe codec.pointer
    unsafe context.pointee.thread_count = 1
    // In addition to our own check of the header; libavutil counts a width rounded up to 64, hence the slack.
    unsafe context.pointee.max_pixels = Int64(limits.pixels + 128 * limits.side)
    // Broken entropy data, a missing tail or a bad checksum is an error, not a grey area in the picture.
    unsafe context.pointee.err_recognition = cff_strict_input()
    // Memory is reused, and a decoder need not fill it. Clear it: pixels of an earlier frame, before its masks were painted, must
    // not be visible.
    unsafe context.pointee.opaque = Unmanaged.passUnretained(self).toOpaque()
    unsafe context.pointee.get_buffer2 = { context, frame, flags in
      guard let context = unsafe context, let frame = unsafe frame else { return cff_error_invalid_data() }
      let codec = unsafe Unmanaged<ImageCodec>.fromOpaque(context.pointee.opaque).takeUnretainedValue()
      codec.isInBuffer = unsafe codec.useBuffer(for: frame, of: context)
      let status = unsafe codec.isInBuffer ? 0 : avcodec_default_get_buffer2(context, frame, flags)
      guard status >= 0 else { return status }
      unsafe withUnsafePointer(to: &frame.pointee.buf) { buffers in
        unsafe buffers.withMemoryRebound(to: UnsafeMutablePointer<AVBufferRef>?.self, capacity: 8) { buffers in
          for index in 0..<8 {
            if let buffer = unsafe buffers[index] { unsafe memset(buffer.pointee.data, 0, buffer.pointee.size) }
          }
        }
      }
      return status
    }
    try unsafe check("avcodec_open2", avcodec_open2(context, decoder, nil))
  }

  /// Lets the decoder write a picture into the shared buffer. Returns false when the picture needs a conversion, or does not fit.
  private func useBuffer(
    for frame: UnsafeMutablePointer<AVFrame>, of context: UnsafeMutablePointer<AVCodecContext>
  ) -> Bool {
    guard let shared = self.buffer, let start = unsafe shared.memory.baseAddress,
      unsafe frame.pointee.format == AV_PIX_FMT_YUVJ420P.rawValue
    else { return false }
    // Decoders write whole blocks, and rows are aligned for vector instructions.
    var (width, height) = unsafe (frame.pointee.width, frame.pointee.height)
    unsafe avcodec_align_dimensions(context, &width, &height)
    let stride = (Int(width) + 127) / 128 * 128
    let rows = Int(height)
    let size = stride * rows * 3 / 2 + 64
    guard unsafe size <= shared.memory.count else { return false }
    shared.used = max(shared.used, size)
    shared.prepare(size)
    guard let buffer = unsafe av_buffer_create(start, size, { _, _ in }, nil, 0) else { return false }
    unsafe frame.pointee.buf.0 = buffer
    unsafe frame.pointee.data = (start, start + stride * rows, start + stride * rows * 5 / 4, nil, nil, nil, nil, nil)
    unsafe frame.pointee.linesize = (Int32(stride), Int32(stride / 2), Int32(stride / 2), 0, 0, 0, 0, 0)
    return true
  }

  func decode(_ file: [UInt8]) throws -> FrameBuffer {
    let result = try FrameBuffer()
    try unsafe check("av_new_packet", av_new_packet(packet.pointer, Int32(file.count)))
    defer { unsafe av_packet_unref(packet.pointer) }
    // Otherwise the decoder takes a PNG for the difference to the previous one, as in some AVI files.
    unsafe packet.pointer.pointee.flags |= cff_packet_key()
    unsafe file.withUnsafeBufferPointer {
      unsafe packet.pointer.pointee.data.update(from: $0.baseAddress!, count: $0.count)
    }
    do throws(FFmpegError) {
      try unsafe check("avcodec_send_packet", avcodec_send_packet(codec.pointer, packet.pointer))
      try unsafe check("avcodec_receive_frame", avcodec_receive_frame(codec.pointer, result.frame))
      guard unsafe result.frame.pointee.decode_error_flags == 0 else {
        throw FFmpegError(function: "avcodec_receive_frame", code: cff_error_invalid_data())
      }
      result.hasRoom = isInBuffer
      // WebP has the limited range of VP8 (RFC 9649, 2.5), which its decoder does not report.
      if kind == .webp, result.format == AV_PIX_FMT_YUV420P || result.format == AV_PIX_FMT_YUVA420P {
        result.colourRange = AVCOL_RANGE_MPEG
      }
    } catch {
      if error.isOutOfMemory { throw error }
      switch error.code {
      // No picture, or the -1 of MJPEG, which would read as "operation not permitted".
      case cff_error_eagain(), cff_error_eof(), -1: throw RefusedPicture(reason: "invalid data")
      case cff_error_patch_welcome(): throw RefusedPicture(reason: "a rare kind of file that is not supported")
      default: throw RefusedPicture(reason: error.cause)
      }
    }
    return result
  }
}

extension ImageKind {
  fileprivate var codec: AVCodecID {
    switch self {
    case .jpeg: AV_CODEC_ID_MJPEG
    case .png: AV_CODEC_ID_PNG
    case .webp: AV_CODEC_ID_WEBP
    }
  }
}
