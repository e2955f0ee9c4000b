import CFFmpeg

/// An `AVCodecContext`, owned.
final class CodecContext {
  let pointer: UnsafeMutablePointer<AVCodecContext>

  init(_ codec: UnsafePointer<AVCodec>) throws(FFmpegError) {
    pointer = try allocated("avcodec_alloc_context3", avcodec_alloc_context3(codec))
  }

  deinit {
    var owned: UnsafeMutablePointer<AVCodecContext>? = pointer
    avcodec_free_context(&owned)
  }

  /// Sets a codec's private option.
  func set(_ option: String, _ value: String) throws(FFmpegError) {
    try check("av_opt_set(\(option))", av_opt_set(pointer.pointee.priv_data, option, value, 0))
  }
}

/// An `AVPacket`, owned.
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
