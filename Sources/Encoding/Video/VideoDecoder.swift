import CFFmpeg
import FileSystem
import FrameBatches

/// Decodes a video track, sample by sample. A sample that is broken anywhere is an error.
final class VideoDecoder {
  private let codec: CodecContext

  /// - Parameter isCropped: whether pictures lack the columns and rows that players crop.
  init(
    _ parameters: UnsafePointer<AVCodecParameters>, limits: Limits, isCropped: Bool = true
  ) throws(FFmpegError) {
    codec = try unsafe CodecContext(parameters)
    let context = unsafe codec.pointer
    unsafe context.pointee.thread_count = 1
    unsafe context.pointee.apply_cropping = isCropped ? 1 : 0
    unsafe context.pointee.err_recognition = cff_strict_input()
    // libavcodec counts whole blocks at the edges.
    unsafe context.pointee.max_pixels = Int64(limits.pixels + 128 * limits.side)
    try unsafe check("avcodec_open2", avcodec_open2(context, nil, nil))
  }

  /// Decodes one sample; nil ends the track.
  ///
  /// - Returns: the pictures that are ready, in the order in which they are shown, as coded. `pts` is in the track's units.
  func decode(_ sample: MP4Reader.ReadSample?) throws(FFmpegError) -> [FrameBuffer] {
    // libavcodec takes an empty sample for the end.
    if let sample, unsafe sample.bytes.isEmpty { return [] }
    try unsafe check("avcodec_send_packet", avcodec_send_packet(codec.pointer, sample?.packet))
    var pictures: [FrameBuffer] = []
    while true {
      let picture = try FrameBuffer()
      let status = unsafe avcodec_receive_frame(codec.pointer, picture.frame)
      if status == cff_error_eagain() || status == cff_error_eof() { return pictures }
      try check("avcodec_receive_frame", status)
      guard unsafe picture.frame.pointee.decode_error_flags == 0 else {
        throw FFmpegError(function: "avcodec_receive_frame", code: cff_error_invalid_data())
      }
      pictures.append(picture)
    }
  }
}
