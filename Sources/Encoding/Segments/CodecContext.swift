import CFFmpeg
import FileSystem

/// Owns an `AVCodecContext`.
final class CodecContext {
  let pointer: UnsafeMutablePointer<AVCodecContext>

  init(_ codec: UnsafePointer<AVCodec>) throws(FFmpegError) {
    pointer = try allocated("avcodec_alloc_context3", avcodec_alloc_context3(codec))
  }

  /// Makes a decoder of a track.
  convenience init(_ parameters: UnsafePointer<AVCodecParameters>) throws(FFmpegError) {
    guard let decoder = avcodec_find_decoder(parameters.pointee.codec_id) else {
      throw FFmpegError(function: "avcodec_find_decoder", code: cff_error_decoder_not_found())
    }
    try self.init(decoder)
    try check("avcodec_parameters_to_context", avcodec_parameters_to_context(pointer, parameters))
  }

  deinit {
    var owned: UnsafeMutablePointer<AVCodecContext>? = pointer
    avcodec_free_context(&owned)
  }

  /// Sets a decoder's configuration.
  func setConfiguration(_ bytes: UnsafeBufferPointer<UInt8>) throws(FFmpegError) {
    // The context frees the copy. libavcodec needs zeros behind it (libavcodec/avcodec.h).
    let size = bytes.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
    let copy = try allocated("av_mallocz", av_mallocz(size)).assumingMemoryBound(to: UInt8.self)
    if let start = bytes.baseAddress { copy.update(from: start, count: bytes.count) }
    av_freep(&pointer.pointee.extradata)
    pointer.pointee.extradata = copy
    pointer.pointee.extradata_size = Int32(bytes.count)
  }

  /// Sets a codec's private option.
  func set(_ option: String, _ value: String) throws(FFmpegError) {
    try check("av_opt_set(\(option))", av_opt_set(pointer.pointee.priv_data, option, value, 0))
  }
}

/// Owns an `AVPacket`.
final class Packet {
  let pointer: UnsafeMutablePointer<AVPacket>

  var bytes: UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: pointer.pointee.data, count: Int(pointer.pointee.size))
  }

  init() throws(FFmpegError) {
    pointer = try allocated("av_packet_alloc", av_packet_alloc())
  }

  deinit {
    var owned: UnsafeMutablePointer<AVPacket>? = pointer
    av_packet_free(&owned)
  }
}
