// Converts decoded images and videos to the planar 4:2:0 that is coded. An ordinary JPEG and a lossy WebP need no conversion.

import CFFmpeg
import CPixels
import FileSystem
import FrameBatches

package final class PictureConverter {
  private var scaler: Scaler?
  /// The colour behind transparent pixels.
  let background: Colour

  init(background: Colour = .black) { self.background = background }

  /// Converts an image to a form that masks can be painted on: 8-bit planar YUV or grey as decoded, otherwise RGB.
  func paintable(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    if source.isCoded { return source }
    switch source.format {
    case AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_GRAY8,
      AV_PIX_FMT_RGB24:
      return source
    default:
      return try source.hasAlpha ? flattened(rgba(source)) : rgb(source)
    }
  }

  func rgb(_ image: FrameBuffer) throws(FFmpegError) -> FrameBuffer { try converted(image, to: AV_PIX_FMT_RGB24) }

  /// RGBA, whose colours are not multiplied by alpha.
  func rgba(_ image: FrameBuffer) throws(FFmpegError) -> FrameBuffer { try converted(image, to: AV_PIX_FMT_RGBA) }

  private func converted(_ image: FrameBuffer, to format: AVPixelFormat) throws(FFmpegError) -> FrameBuffer {
    try image.format == format ? image : convert(image, to: format, colours: image.coloursOfImage)
  }

  /// Scales RGBA.
  func scaled(_ source: FrameBuffer, to size: PixelSize) throws(FFmpegError) -> FrameBuffer {
    try source.size == size ? source : convert(source, to: AV_PIX_FMT_RGBA, size: size)
  }

  /// Scales planar 4:2:0 as segments have it.
  ///
  /// - Parameter visible: the upper left part of the source to scale.
  func scaled(coded source: FrameBuffer, visible: PixelSize, to size: PixelSize) throws(FFmpegError) -> FrameBuffer {
    let full = try convert(source, visible: visible, to: AV_PIX_FMT_YUV420P, size: size, colours: .coded)
    try full.limitRange()
    return full
  }

  /// Converts a video's picture to planar 4:2:0, limited range, BT.601.
  ///
  /// - Parameters:
  ///   - quarterTurns: the clockwise turns that the picture is shown with.
  ///   - maxSide: maximum length of a side, to which larger pictures are scaled; nil for any length.
  func planar420(ofVideo source: FrameBuffer, quarterTurns: Int, maxSide: Int?) throws(FFmpegError) -> FrameBuffer {
    let size = source.size.fitted(maxSide: maxSide)
    let is420 = [AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P].contains(source.format)
    let keepsPixels = quarterTurns == 0 && size == source.size && is420
    if keepsPixels, source.colours == .coded { return source }
    let full: FrameBuffer
    if keepsPixels, source.colours == .jfif {
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

  /// Scales a published segment's picture into a box; planar 4:2:0, full range, BT.601, or RGB.
  ///
  /// - Parameter size: the size as captured, without the columns and rows that coding has added.
  func fitted(
    _ source: FrameBuffer, as size: PixelSize, into box: PixelSize, isRGB: Bool
  ) throws(FFmpegError) -> FrameBuffer {
    try convert(
      source, visible: size, to: isRGB ? AV_PIX_FMT_RGB24 : AV_PIX_FMT_YUV420P, size: size.fitted(into: box),
      colours: source.colours)
  }

  /// Blends RGBA over the background.
  private func flattened(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer(width: source.width, height: source.height, format: AV_PIX_FMT_RGB24)
    let (from, to) = unsafe (source.plane(0), result.plane(0))
    let behind = [background.red, background.green, background.blue]
    for row in 0..<source.height {
      unsafe cpx_flatten(from.start + row * from.stride, source.width, behind, to.start + row * to.stride)
    }
    return result
  }

  /// Converts to the colours of JFIF.
  ///
  /// - Parameter visible: the upper left part of the source to convert; nil for all of it.
  func convert(
    _ source: FrameBuffer, visible: PixelSize? = nil, to format: AVPixelFormat, size: PixelSize? = nil,
    colours: YUVColours = .jfif
  ) throws(FFmpegError) -> FrameBuffer {
    let visible = visible ?? source.size
    let size = size ?? visible
    precondition(visible.width <= source.width && visible.height <= source.height)
    var (source, colours) = (source, colours)
    if source.isGreyOfVideo && !colours.isFullRange {
      // libswscale takes the range of 8-bit grey for full.
      source = try source.greyOfFullRange()
      colours = YUVColours(matrix: colours.matrix, isFullRange: true, isChromaCentred: colours.isChromaCentred)
    }
    let result = try FrameBuffer(width: size.width, height: size.height, format: format)
    let conversion = Conversion(
      source: visible, format: Self.plain(source.format), colours: colours, target: size, targetFormat: format)
    if scaler?.conversion != conversion { scaler = try Scaler(conversion) }
    try unsafe check(
      "sws_scale",
      cff_scaler_scale(
        scaler?.context, source.planes.map { unsafe UnsafePointer($0.start) },
        source.planes.map { unsafe Int32($0.stride) }, Int32(visible.height), result.planes.map { unsafe $0.start },
        result.planes.map { unsafe Int32($0.stride) }))
    return result
  }

  /// Returns a format under its current name; the deprecated names imply full range, which libswscale gets as an option.
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

extension PixelSize {
  /// The size of pictures that are scaled to a maximum length of their sides; nil for any length.
  package func fitted(maxSide: Int?) -> PixelSize {
    maxSide.map { fitted(into: PixelSize(width: $0, height: $0)) } ?? self
  }
}

/// How YUV is made of RGB.
struct YUVColours: Equatable {
  /// libswscale's number of the matrix.
  let matrix: Int32
  /// Whether black is 0 and white is 255.
  let isFullRange: Bool
  /// Whether a chroma sample lies between its pixels, or with the left one.
  let isChromaCentred: Bool

  static let jfif = YUVColours(matrix: SWS_CS_ITU601, isFullRange: true, isChromaCentred: true)
  /// The colours of segments.
  static let coded = YUVColours(matrix: SWS_CS_ITU601, isFullRange: false, isChromaCentred: true)
}

private struct Conversion: Equatable {
  let source: PixelSize
  let format: AVPixelFormat
  let colours: YUVColours
  let target: PixelSize
  let targetFormat: AVPixelFormat
}

/// A `SwsContext`, owned. It is safe: only its pointer is unsafe.
@safe private final class Scaler {
  let conversion: Conversion
  let context: UnsafeMutableRawPointer

  init(_ conversion: Conversion) throws(FFmpegError) {
    self.conversion = conversion
    unsafe context = try allocated("sws_alloc_context", cff_scaler_alloc())
    let isFullRange: Int32 = conversion.colours.isFullRange ? 1 : 0
    // Set the ranges before the context is initialised: libswscale only copies if they are equal by then. Chroma positions are
    // in 256ths of a pixel (libswscale/options.c), from the chroma sample's first pixel; -513 means the middle of its pixels.
    let options: [(String, Int)] = [
      ("srcw", conversion.source.width), ("srch", conversion.source.height),
      ("src_format", Int(conversion.format.rawValue)), ("dstw", conversion.target.width),
      ("dsth", conversion.target.height), ("dst_format", Int(conversion.targetFormat.rawValue)),
      ("src_range", Int(isFullRange)), ("dst_range", 1),
      ("src_h_chr_pos", conversion.colours.isChromaCentred ? -513 : 0), ("dst_h_chr_pos", -513),
      ("sws_flags", Int(cff_scaler_exact_flags())),
    ]
    for (name, value) in options {
      try unsafe check("av_opt_set_int(\(name))", av_opt_set_int(context, name, Int64(value), 0))
    }
    try unsafe check("sws_init_context", cff_scaler_init(context))
    try unsafe check(
      "sws_setColorspaceDetails",
      cff_scaler_set_colours(context, conversion.colours.matrix, isFullRange, SWS_CS_ITU601, 1))
  }

  deinit { unsafe cff_scaler_free(context) }
}
