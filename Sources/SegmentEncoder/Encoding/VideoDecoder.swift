// Decodes a video track, sample by sample. What is broken anywhere is an error, never a guess.

import CFFmpeg

final class VideoDecoder {
  /// One picture, as coded.
  struct Decoded {
    /// In the track's own units.
    let pts: Int64
    let pixels: FrameBuffer
  }

  private let codec: CodecContext
  private let packet: Packet

  init(_ parameters: UnsafePointer<AVCodecParameters>) throws(FFmpegError) {
    guard let decoder = avcodec_find_decoder(parameters.pointee.codec_id) else {
      throw FFmpegError(function: "avcodec_find_decoder", code: cff_error_decoder_not_found())
    }
    codec = try CodecContext(decoder)
    packet = try Packet()
    let context = codec.pointer
    try check("avcodec_parameters_to_context", avcodec_parameters_to_context(context, parameters))
    context.pointee.thread_count = 1
    context.pointee.err_recognition = cff_strict_input()
    try check("avcodec_open2", avcodec_open2(context, decoder, nil))
  }

  /// Decodes one sample, or, with nil, what is still held back.
  ///
  /// - Returns: the pictures that came out, in the order they are shown.
  func decode(_ sample: MP4Reader.ReadSample?) throws(FFmpegError) -> [Decoded] {
    if let sample, let start = sample.bytes.baseAddress {
      try check("av_new_packet", av_new_packet(packet.pointer, Int32(sample.bytes.count)))
      packet.pointer.pointee.data.update(from: start, count: sample.bytes.count)
      packet.pointer.pointee.pts = sample.pts
      packet.pointer.pointee.dts = sample.dts
      if sample.isDiscarded { packet.pointer.pointee.flags |= AV_PKT_FLAG_DISCARD }
      defer { av_packet_unref(packet.pointer) }
      try check("avcodec_send_packet", avcodec_send_packet(codec.pointer, packet.pointer))
    } else {
      try check("avcodec_send_packet", avcodec_send_packet(codec.pointer, nil))
    }
    var pictures: [Decoded] = []
    while true {
      let pixels = try FrameBuffer()
      let status = avcodec_receive_frame(codec.pointer, pixels.frame)
      if status == cff_error_eagain() || status == cff_error_eof() { return pictures }
      try check("avcodec_receive_frame", status)
      guard pixels.frame.pointee.decode_error_flags == 0 else {
        throw FFmpegError(function: "avcodec_receive_frame", code: cff_error_invalid_data())
      }
      pictures.append(Decoded(pts: pixels.frame.pointee.pts, pixels: pixels))
    }
  }
}

/// A track's pictures in the order they are shown, decoded as they are asked for.
final class VideoPictures {
  private let reader: MP4Reader
  private let track: Int
  private let decoder: VideoDecoder
  private var ready: ArraySlice<VideoDecoder.Decoded> = []
  private var current: VideoDecoder.Decoded?
  private var isAtEnd = false

  /// - Parameter reader: reads on from where it stands.
  init(_ reader: MP4Reader, track: Int) throws {
    self.reader = reader
    self.track = track
    decoder = try VideoDecoder(reader.parameters(of: track))
  }

  /// The picture shown from `pts` on; asked for in order, and more than once where it is wanted.
  ///
  /// - Returns: nil when there is none.
  func picture(at pts: Int64) throws -> FrameBuffer? {
    while current.map({ $0.pts < pts }) ?? true {
      guard let next = try next() else { return nil }
      current = next
    }
    return current?.pts == pts ? current?.pixels : nil
  }

  private func next() throws -> VideoDecoder.Decoded? {
    while ready.isEmpty, !isAtEnd {
      if let sample = try reader.next() {
        if sample.track == track { ready = try decoder.decode(sample)[...] }
      } else {
        ready = try decoder.decode(nil)[...]
        isAtEnd = true
      }
    }
    return ready.popFirst()
  }
}
