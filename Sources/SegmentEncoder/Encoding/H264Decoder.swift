// Decodes a segment's samples to see that they can be: what comes out is counted and measured, not shown.

import CFFmpeg

final class H264Decoder {
  private let codec: CodecContext
  private let packet: Packet
  private let frame: FrameBuffer

  init(_ sets: ParameterSets) throws(FFmpegError) {
    guard let decoder = avcodec_find_decoder(AV_CODEC_ID_H264) else {
      throw FFmpegError(function: "avcodec_find_decoder(h264)", code: cff_error_invalid_data())
    }
    codec = try CodecContext(decoder)
    packet = try Packet()
    frame = try FrameBuffer()
    let configuration = sets.configuration
    let context = codec.pointer
    context.pointee.thread_count = 1
    context.pointee.err_recognition = cff_strict_input()
    // Freed with the context; zero padding behind it, as libavcodec asks (libavcodec/avcodec.h).
    let size = configuration.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
    let extradata = try allocated("av_mallocz", av_mallocz(size)).assumingMemoryBound(to: UInt8.self)
    extradata.update(from: configuration, count: configuration.count)
    context.pointee.extradata = extradata
    context.pointee.extradata_size = Int32(configuration.count)
    try check("avcodec_open2", avcodec_open2(context, decoder, nil))
  }

  /// Decodes one sample, or, with nil, what is still held back.
  ///
  /// - Returns: the sizes of the pictures that came out.
  func decode(_ sample: UnsafeBufferPointer<UInt8>?) throws(FFmpegError) -> [(width: Int, height: Int)] {
    if let sample, let start = sample.baseAddress {
      try check("av_new_packet", av_new_packet(packet.pointer, Int32(sample.count)))
      packet.pointer.pointee.data.update(from: start, count: sample.count)
      defer { av_packet_unref(packet.pointer) }
      try check("avcodec_send_packet", avcodec_send_packet(codec.pointer, packet.pointer))
    } else {
      try check("avcodec_send_packet", avcodec_send_packet(codec.pointer, nil))
    }
    var sizes: [(width: Int, height: Int)] = []
    while true {
      let status = avcodec_receive_frame(codec.pointer, frame.frame)
      if status == cff_error_eagain() || status == cff_error_eof() { return sizes }
      try check("avcodec_receive_frame", status)
      guard frame.frame.pointee.decode_error_flags == 0 else {
        throw FFmpegError(function: "avcodec_receive_frame", code: cff_error_invalid_data())
      }
      sizes.append((frame.width, frame.height))
    }
  }
}
