// Decodes a video track, sample by sample. A broken file is an error, never a guess.

import CFFmpeg
import FileSystem
import FrameBatches

final class VideoDecoder {
  /// One picture, as coded.
  struct Decoded {
    /// In the track's own units.
    package let pts: Int64
    package let pixels: FrameBuffer
  }

  private let codec: CodecContext

  init(_ parameters: UnsafePointer<AVCodecParameters>, limits: Limits = Limits()) throws(FFmpegError) {
    codec = try CodecContext(parameters)
    let context = codec.pointer
    context.pointee.thread_count = 1
    context.pointee.err_recognition = cff_strict_input()
    // Blocks at the edges count, too.
    context.pointee.max_pixels = Int64(limits.pixels + 128 * limits.side)
    try check("avcodec_open2", avcodec_open2(context, nil, nil))
  }

  /// Decodes one sample, or, with nil, what is still held back.
  ///
  /// - Returns: the pictures that came out, in the order they are shown.
  package func decode(_ sample: MP4Reader.ReadSample?) throws(FFmpegError) -> [Decoded] {
    // A sample without bytes is no picture, and would be taken for the end.
    if let sample, sample.bytes.isEmpty { return [] }
    try check("avcodec_send_packet", avcodec_send_packet(codec.pointer, sample?.packet))
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
