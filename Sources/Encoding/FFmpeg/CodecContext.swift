import CFFmpeg
import FileSystem

/// Owns an `AVCodecContext`. It is safe: only its pointer is unsafe.
@safe final class CodecContext {
  let pointer: UnsafeMutablePointer<AVCodecContext>

  init(_ codec: UnsafePointer<AVCodec>) throws(FFmpegError) {
    unsafe pointer = try allocated("avcodec_alloc_context3", avcodec_alloc_context3(codec))
  }

  /// Makes a decoder of a track.
  convenience init(_ parameters: UnsafePointer<AVCodecParameters>) throws(FFmpegError) {
    guard let decoder = unsafe avcodec_find_decoder(parameters.pointee.codec_id) else {
      throw FFmpegError(function: "avcodec_find_decoder", code: cff_error_decoder_not_found())
    }
    try unsafe self.init(decoder)
    try unsafe check("avcodec_parameters_to_context", avcodec_parameters_to_context(pointer, parameters))
  }

  deinit {
    var owned: UnsafeMutablePointer<AVCodecContext>? = unsafe pointer
    unsafe avcodec_free_context(&owned)
  }

  /// Sets a decoder's configuration.
  func setConfiguration(_ bytes: UnsafeBufferPointer<UInt8>) throws(FFmpegError) {
    // The context frees the copy. libavcodec needs zeros behind it (libavcodec/avcodec.h).
    let size = bytes.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
    let copy = try unsafe allocated("av_mallocz", av_mallocz(size)).assumingMemoryBound(to: UInt8.self)
    if let start = bytes.baseAddress { unsafe copy.update(from: start, count: bytes.count) }
    unsafe av_freep(&pointer.pointee.extradata)
    unsafe pointer.pointee.extradata = copy
    unsafe pointer.pointee.extradata_size = Int32(bytes.count)
  }

  /// Sets a codec's private option.
  func set(_ option: String, _ value: String) throws(FFmpegError) {
    try unsafe check("av_opt_set(\(option))", av_opt_set(pointer.pointee.priv_data, option, value, 0))
  }
}

/// Owns an `AVPacket`. It is safe: only its pointer and its bytes are unsafe.
@safe final class Packet {
  let pointer: UnsafeMutablePointer<AVPacket>

  var bytes: UnsafeBufferPointer<UInt8> {
    unsafe UnsafeBufferPointer(start: pointer.pointee.data, count: Int(pointer.pointee.size))
  }

  init() throws(FFmpegError) {
    unsafe pointer = try allocated("av_packet_alloc", av_packet_alloc())
  }

  deinit {
    var owned: UnsafeMutablePointer<AVPacket>? = unsafe pointer
    unsafe av_packet_free(&owned)
  }
}
