// From whatever an image decodes to, to the planar 4:2:0 that is coded. A usual JPEG passes through untouched.

import CFFmpeg
import FileSystem
import FrameBatches

package final class PictureConverter {
  private var scaler: Scaler?
  private var conversion: Conversion?
  /// The colour behind transparent pixels.
  private let background: Colour

  init(background: Colour = .black) { self.background = background }

  /// The picture in a form whose pixels can be painted in place: 8-bit planar YUV or grey as decoded, else RGB.
  func paintable(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    switch source.format {
    case AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_GRAY8,
      AV_PIX_FMT_RGB24:
      return source
    default:
      guard source.hasAlpha else { return try rgb(source) }
      return try flattened(rgba(source))
    }
  }

  package func rgb(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    try source.format == AV_PIX_FMT_RGB24
      ? source : convert(source, to: AV_PIX_FMT_RGB24, colours: source.coloursOfStill)
  }

  /// With alpha that the colours are not multiplied by.
  func rgba(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    try source.format == AV_PIX_FMT_RGBA
      ? source : convert(source, to: AV_PIX_FMT_RGBA, colours: source.coloursOfStill)
  }

  /// RGBA in another size.
  func scaled(_ source: FrameBuffer, to size: PixelSize) throws(FFmpegError) -> FrameBuffer {
    try (source.width, source.height) == (size.width, size.height)
      ? source : convert(source, to: AV_PIX_FMT_RGBA, size: (size.width, size.height))
  }

  /// A paintable picture as it is to be shown.
  func oriented(_ source: FrameBuffer, _ orientation: Orientation) throws(FFmpegError) -> FrameBuffer {
    guard orientation != .upright else { return source }
    return try rgb(source).oriented(orientation)
  }

  /// A video's picture as planar 4:2:0, limited range, BT.601.
  ///
  /// - Parameters:
  ///   - quarterTurns: how it is to be shown, clockwise.
  ///   - maxSide: what is longer is made smaller, in its own proportions; nil for any length.
  func planar420(ofVideo source: FrameBuffer, quarterTurns: Int, maxSide: Int?) throws(FFmpegError) -> FrameBuffer {
    let size = Self.size(source.width, source.height, maxSide: maxSide)
    let is420 = [AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P].contains(source.format)
    let isAsItIs = quarterTurns == 0 && size == (source.width, source.height) && is420
    if isAsItIs, source.colours == .coded { return source }
    let full: FrameBuffer
    if isAsItIs, source.colours == .jfif {
      full = source
    } else if quarterTurns == 0 {
      full = try convert(source, to: AV_PIX_FMT_YUV420P, size: size, colours: source.colours)
    } else {
      let rgb = try convert(source, to: AV_PIX_FMT_RGB24, size: size, colours: source.colours)
      full = try rgb.oriented(Orientation(isMirrored: false, quarterTurns: quarterTurns)).subsampled()
    }
    try full.limitRange()
    return full
  }

  /// A published segment's picture, made to fit a box; planar 4:2:0, full range, BT.601, or RGB.
  ///
  /// - Parameter size: of the picture as captured, without what coding has added.
  package func fitted(
    _ source: FrameBuffer, as size: PixelSize, into box: PixelSize, isRGB: Bool
  ) throws(FFmpegError) -> FrameBuffer {
    let colours = source.colours
    source.crop(width: size.width, height: size.height)
    let fitted = size.fitted(into: box)
    return try convert(
      source, to: isRGB ? AV_PIX_FMT_RGB24 : AV_PIX_FMT_YUV420P, size: (fitted.width, fitted.height), colours: colours)
  }

  /// The frame that pixels of `width` × `height` become.
  package static func size(_ width: Int, _ height: Int, maxSide: Int?) -> (width: Int, height: Int) {
    let side = max(width, height)
    guard let maxSide, side > maxSide else { return (width, height) }
    func scaled(_ length: Int) -> Int { max(1, (2 * length * maxSide + side) / (2 * side)) }
    return (scaled(width), scaled(height))
  }

  /// Alpha over the background: what is transparent in a screenshot has nothing behind it.
  private func flattened(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer(width: source.width, height: source.height, format: AV_PIX_FMT_RGB24)
    let from = source.plane(0)
    let to = result.plane(0)
    let behind = [background.red, background.green, background.blue].map { UInt32($0) }
    for row in 0..<source.height {
      let input = from.start + row * from.stride
      let output = to.start + row * to.stride
      for column in 0..<source.width {
        let alpha = UInt32(input[4 * column + 3])
        for channel in 0..<3 {
          let value = UInt32(input[4 * column + channel])
          let mixed = (value * alpha + behind[channel] * (255 - alpha) + 127) / 255
          output[3 * column + channel] = UInt8(alpha == 255 ? value : mixed)
        }
      }
    }
    return result
  }

  /// To JFIF's BT.601, full range and chroma in the middle; from the same, unless it is said otherwise.
  private func convert(
    _ source: FrameBuffer, to format: AVPixelFormat, size: (width: Int, height: Int)? = nil,
    colours: YUVColours = .jfif
  ) throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer(
      width: size?.width ?? source.width, height: size?.height ?? source.height, format: format)
    let kind = Conversion(
      width: source.width, height: source.height, format: Self.plain(source.format).rawValue, colours: colours,
      targetWidth: result.width, targetHeight: result.height, targetFormat: format.rawValue)
    if scaler == nil || kind != conversion {
      scaler = try Scaler(kind)
      conversion = kind
    }
    let input = source.planes.map { UnsafePointer($0.start) }
    let output = result.planes.map(\.start)
    try check(
      "sws_scale",
      cff_scaler_scale(
        scaler?.context, input, source.planes.map { Int32($0.stride) }, Int32(source.height), output,
        result.planes.map { Int32($0.stride) }))
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

/// How YUV is made of RGB.
struct YUVColours: Hashable {
  /// As libswscale names it.
  let matrix: Int32
  /// Whether black is 0 and white is 255.
  let isFullRange: Bool
  /// Whether a chroma sample lies between its pixels, or with the left one.
  let isChromaCentred: Bool

  static let jfif = YUVColours(matrix: SWS_CS_ITU601, isFullRange: true, isChromaCentred: true)
  /// As segments are coded.
  package static let coded = YUVColours(matrix: SWS_CS_ITU601, isFullRange: false, isChromaCentred: true)
}

/// From what to what.
private struct Conversion: Hashable {
  let width: Int
  let height: Int
  let format: Int32
  let colours: YUVColours
  let targetWidth: Int
  let targetHeight: Int
  let targetFormat: Int32
}

/// A `SwsContext`, owned.
private final class Scaler {
  let context: UnsafeMutableRawPointer

  init(_ conversion: Conversion) throws(FFmpegError) {
    context = try allocated("sws_alloc_context", cff_scaler_alloc())
    // Ranges before all else: with equal ones libswscale settles for copying. Places of chroma are in 256ths of a pixel
    // (libswscale/options.c), from the chroma sample's own first pixel; -513 is its middle, however many pixels share it.
    let options: [(String, Int)] = [
      ("srcw", conversion.width), ("srch", conversion.height), ("src_format", Int(conversion.format)),
      ("dstw", conversion.targetWidth), ("dsth", conversion.targetHeight),
      ("dst_format", Int(conversion.targetFormat)), ("src_range", conversion.colours.isFullRange ? 1 : 0),
      ("dst_range", 1), ("src_h_chr_pos", conversion.colours.isChromaCentred ? -513 : 0), ("dst_h_chr_pos", -513),
      ("sws_flags", Int(cff_scaler_exact_flags())),
    ]
    for (name, value) in options {
      try check("av_opt_set_int(\(name))", av_opt_set_int(context, name, Int64(value), 0))
    }
    try check("sws_init_context", cff_scaler_init(context))
    try check(
      "sws_setColorspaceDetails",
      cff_scaler_set_colours(
        context, conversion.colours.matrix, conversion.colours.isFullRange ? 1 : 0, SWS_CS_ITU601, 1))
  }

  deinit { cff_scaler_free(context) }
}
