// From whatever an image decodes to, to the planar 4:2:0 that is coded. A usual JPEG passes through untouched.

import CFFmpeg

final class PictureConverter {
  private var scaler: OpaquePointer?

  deinit { sws_freeContext(scaler) }

  /// The picture in a form whose pixels can be painted in place: 8-bit planar YUV or grey as decoded, else RGB.
  func paintable(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    switch source.format {
    case AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_GRAY8,
      AV_PIX_FMT_RGB24:
      return source
    default:
      guard let descriptor = av_pix_fmt_desc_get(source.format) else {
        throw FFmpegError(function: "av_pix_fmt_desc_get", code: cff_error_invalid_data())
      }
      let hasAlpha = descriptor.pointee.flags & UInt64(AV_PIX_FMT_FLAG_ALPHA) != 0 || source.format == AV_PIX_FMT_PAL8
      guard hasAlpha else { return try convert(source, to: AV_PIX_FMT_RGB24) }
      let layered = source.format == AV_PIX_FMT_RGBA ? source : try convert(source, to: AV_PIX_FMT_RGBA)
      return try flattened(layered)
    }
  }

  /// The picture as planar 4:2:0, full range, BT.601.
  func planar420(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    source.format == AV_PIX_FMT_YUVJ420P ? source : try convert(source, to: AV_PIX_FMT_YUV420P)
  }

  /// A video's picture as planar 4:2:0, full range, BT.601.
  ///
  /// - Parameter maxSide: what is longer is made smaller, in its own proportions; nil for any length.
  func planar420(ofVideo source: FrameBuffer, maxSide: Int?) throws(FFmpegError) -> FrameBuffer {
    let size = Self.size(source.width, source.height, maxSide: maxSide)
    let matrix = source.yuvMatrix
    if source.isFullRange, matrix == SWS_CS_ITU601, size == (source.width, source.height),
      [AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P].contains(source.format)
    {
      return source
    }
    return try convert(
      source, to: AV_PIX_FMT_YUV420P, size: size, matrix: matrix, isFullRange: source.isFullRange)
  }

  /// What pixels of `width` × `height` become.
  static func size(_ width: Int, _ height: Int, maxSide: Int?) -> (width: Int, height: Int) {
    let side = max(width, height)
    guard let maxSide, side > maxSide else { return (width, height) }
    func scaled(_ length: Int) -> Int { max(1, (2 * length * maxSide + side) / (2 * side)) }
    return (scaled(width), scaled(height))
  }

  /// Alpha over black: what is transparent in a screenshot has nothing behind it.
  private func flattened(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer(width: source.width, height: source.height, format: AV_PIX_FMT_RGB24)
    let from = source.plane(0)
    let to = result.plane(0)
    for row in 0..<source.height {
      let input = from.start + row * from.stride
      let output = to.start + row * to.stride
      for column in 0..<source.width {
        let alpha = UInt32(input[4 * column + 3])
        for channel in 0..<3 {
          let value = UInt32(input[4 * column + channel])
          output[3 * column + channel] = UInt8(alpha == 255 ? value : (value * alpha + 127) / 255)
        }
      }
    }
    return result
  }

  /// To JFIF's BT.601 and full range; from the same, unless it is said otherwise.
  private func convert(
    _ source: FrameBuffer, to format: AVPixelFormat, size: (width: Int, height: Int)? = nil,
    matrix: Int32 = SWS_CS_ITU601, isFullRange: Bool = true
  ) throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer(
      width: size?.width ?? source.width, height: size?.height ?? source.height, format: format)
    let (width, height) = (Int32(source.width), Int32(source.height))
    // Everything at full precision, and chroma averaged from all its pixels rather than from every second one.
    let flags = SWS_BICUBIC | Int32(SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP)
    scaler = sws_getCachedContext(
      scaler, width, height, Self.plain(source.format), Int32(result.width), Int32(result.height), format, flags, nil,
      nil, nil)
    guard let scaler else { throw FFmpegError(function: "sws_getCachedContext", code: cff_error_invalid_data()) }
    sws_setColorspaceDetails(
      scaler, sws_getCoefficients(matrix), isFullRange ? 1 : 0, sws_getCoefficients(SWS_CS_ITU601), 1, 0, 1 << 16,
      1 << 16)
    let input = source.planes.map { UnsafePointer($0.start) }
    let output = result.planes.map(\.start)
    try check(
      "sws_scale",
      sws_scale(
        scaler, input, source.planes.map { Int32($0.stride) }, 0, height, output, result.planes.map { Int32($0.stride) }
      ))
    return result
  }

  /// The format without its deprecated name for full range, which is said separately.
  private static func plain(_ format: AVPixelFormat) -> AVPixelFormat {
    switch format {
    case AV_PIX_FMT_YUVJ420P: AV_PIX_FMT_YUV420P
    case AV_PIX_FMT_YUVJ422P: AV_PIX_FMT_YUV422P
    case AV_PIX_FMT_YUVJ440P: AV_PIX_FMT_YUV440P
    case AV_PIX_FMT_YUVJ444P: AV_PIX_FMT_YUV444P
    default: format
    }
  }
}
