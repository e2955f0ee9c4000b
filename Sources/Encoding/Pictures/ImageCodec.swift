import CFFmpeg
import FileSystem
import FrameBatches
import Glibc

/// A libavcodec decoder for one still image.
final class ImageCodec {
  private let codec: CodecContext
  private let packet: Packet
  private let buffer: SharedPictureBuffer?
  private let traits: Traits
  /// Whether the picture is in `buffer`.
  private var isInBuffer = false

  private enum Traits {
    case usual
    /// WebP has the limited range of VP8 (RFC 9649, 2.5), which its decoder does not report.
    case limitedRange
    /// A video codec may leave parts of a picture out.
    case video
  }

  /// - Throws: ``RefusedPicture`` where libavcodec has no decoder of the format.
  convenience init(_ kind: ImageKind, limits: Limits, _ buffer: SharedPictureBuffer?) throws {
    guard let decoder = unsafe kind.codec.flatMap({ unsafe avcodec_find_decoder($0) }) else {
      throw RefusedPicture(Refusal("this system's libavcodec does not decode \(kind.name)", kind.conversion))
    }
    // In addition to our own check of the header; libavutil counts a width rounded up to 64, hence the slack.
    try unsafe self.init(
      decoder, maxPixels: limits.pixels + 128 * limits.side, buffer, kind == .webp ? .limitedRange : .usual)
  }

  /// A decoder for a picture of a HEIF file, or for a tile of it.
  ///
  /// - Throws: ``RefusedPicture`` where libavcodec has no decoder of the codec.
  convenience init(_ tile: HEIFPicture.Tile, size: PixelSize) throws {
    let decoder: UnsafePointer<AVCodec>?
    switch tile.coding {
    case .hevc: unsafe decoder = avcodec_find_decoder(AV_CODEC_ID_HEVC)
    // libavcodec's own decoder needs a graphics card.
    case .av1:
      unsafe decoder = avcodec_find_decoder_by_name("libdav1d") ?? avcodec_find_decoder_by_name("libaom-av1")
    }
    guard let decoder = unsafe decoder else {
      let (name, format) = tile.coding == .hevc ? ("HEVC", OtherImage.heic) : ("AV1", .avif)
      throw RefusedPicture(Refusal("this system's libavcodec does not decode \(name)", .convert(format)))
    }
    // Decoders round both sides up to whole blocks.
    try unsafe self.init(
      decoder, maxPixels: (size.width + 128) * (size.height + 128), nil, .video, configuration: tile.configuration)
  }

  private init(
    _ decoder: UnsafePointer<AVCodec>, maxPixels: Int, _ buffer: SharedPictureBuffer?, _ traits: Traits,
    configuration: ArraySlice<UInt8> = []
  ) throws(FFmpegError) {
    self.buffer = buffer
    self.traits = traits
    codec = try unsafe CodecContext(decoder)
    packet = try Packet()
    let context = unsafe codec.pointer
    unsafe context.pointee.thread_count = 1
    unsafe context.pointee.max_pixels = Int64(maxPixels)
    // Cropping comes after the check of the whole picture.
    if traits == .video { unsafe context.pointee.apply_cropping = 0 }
    if !configuration.isEmpty {
      try unsafe configuration.withUnsafeBufferPointer { (bytes) throws(FFmpegError) in
        try unsafe codec.setConfiguration(bytes)
      }
    }
    // Broken entropy data, a missing tail or a bad checksum is an error, not a grey area in the picture.
    unsafe context.pointee.err_recognition = cff_strict_input()
    // Memory is reused, and a decoder need not fill it. Clear it: pixels of an earlier frame, before its masks were painted, must
    // not be visible.
    unsafe context.pointee.opaque = Unmanaged.passUnretained(self).toOpaque()
    unsafe context.pointee.get_buffer2 = { context, frame, flags in
      guard let context = unsafe context, let frame = unsafe frame else { return cff_error_invalid_data() }
      let codec = unsafe Unmanaged<ImageCodec>.fromOpaque(context.pointee.opaque).takeUnretainedValue()
      // libavcodec itself checks the visible part alone.
      let pixels = unsafe Int64(frame.pointee.width) * Int64(frame.pointee.height)
      guard unsafe codec.traits != .video || pixels <= context.pointee.max_pixels else {
        return cff_error_invalid_data()
      }
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
      if codec.traits == .video { unsafe UnwrittenBlocks.mark(in: frame) }
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

  func decode(_ file: [UInt8]) throws -> FrameBuffer { try decode(file[...]) }

  func decode(_ file: ArraySlice<UInt8>) throws -> FrameBuffer {
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
      try receive(into: result)
      guard unsafe result.frame.pointee.decode_error_flags == 0 else {
        throw FFmpegError(function: "avcodec_receive_frame", code: cff_error_invalid_data())
      }
      result.hasRoom = isInBuffer
      if traits == .limitedRange, result.format == AV_PIX_FMT_YUV420P || result.format == AV_PIX_FMT_YUVA420P {
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
    if traits == .video {
      guard unsafe !UnwrittenBlocks.areFound(in: result.frame) else { throw RefusedPicture(reason: "incomplete") }
      try unsafe check(
        "av_frame_apply_cropping", av_frame_apply_cropping(result.frame, Int32(AV_FRAME_CROP_UNALIGNED)))
    }
    return result
  }

  /// Receives the picture, at the end of the stream if the decoder holds it back until then: video codecs do, and so does that of
  /// JPEG XL from FFmpeg 9 on.
  private func receive(into result: FrameBuffer) throws(FFmpegError) {
    var status = unsafe avcodec_receive_frame(codec.pointer, result.frame)
    if status == cff_error_eagain() {
      try unsafe check("avcodec_send_packet", avcodec_send_packet(codec.pointer, nil))
      status = unsafe avcodec_receive_frame(codec.pointer, result.frame)
    }
    try check("avcodec_receive_frame", status)
  }
}

extension ImageKind {
  /// nil for formats of boxes, whose pictures libavcodec gets one by one.
  fileprivate var codec: AVCodecID? {
    switch self {
    case .jpeg: AV_CODEC_ID_MJPEG
    case .png: AV_CODEC_ID_PNG
    case .webp: AV_CODEC_ID_WEBP
    case .jpegXL: AV_CODEC_ID_JPEGXL
    case .gif: AV_CODEC_ID_GIF
    case .bmp: AV_CODEC_ID_BMP
    case .tiff: AV_CODEC_ID_TIFF
    case .heic, .avif: nil
    }
  }

  /// The remedy where libavcodec has no decoder.
  fileprivate var conversion: Refusal.Remedy? { self == .jpegXL ? .convert(.jpegXL) : nil }
}
