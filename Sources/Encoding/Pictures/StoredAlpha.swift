// Decoded pixels of HEIF, TIFF and BMP, before they are an image.

import CFFmpeg
import FrameBatches

/// The meaning of the fourth sample of a pixel, or the second one of grey.
enum StoredAlpha: Equatable {
  case straight
  /// The colours are multiplied by it.
  case premultiplied
  /// It is no opacity.
  case unused
}

extension FrameBuffer {
  /// Bits of a sample of the first component.
  var sampleDepth: Int { unsafe Int(av_pix_fmt_desc_get(format)?.pointee.comp.0.depth ?? 8) }

  /// Bytes of a sample of a planar picture.
  var sampleBytes: Int { sampleDepth > 8 ? 2 : 1 }

  /// How the codec states that the picture is coded.
  var coded: HEIFPicture.Coded {
    let isFull: Bool =
      switch format {
      case AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUVJ444P: true
      default: colourRange == AVCOL_RANGE_JPEG
      }
    return unsafe HEIFPicture.Coded(
      primaries: Int(frame.pointee.color_primaries.rawValue), transfer: Int(frame.pointee.color_trc.rawValue),
      matrix: Int(frame.pointee.colorspace.rawValue), isFullRange: isFull)
  }

  var isPlanarRGB: Bool { [AV_PIX_FMT_GBRP, AV_PIX_FMT_GBRP10LE, AV_PIX_FMT_GBRP12LE].contains(format) }

  /// Names the planes of a picture without subsampling as those of green, blue and red, if it is no RGB yet.
  func nameRGB() {
    switch format {
    case AV_PIX_FMT_YUV444P, AV_PIX_FMT_YUVJ444P: format = AV_PIX_FMT_GBRP
    case AV_PIX_FMT_YUV444P10LE: format = AV_PIX_FMT_GBRP10LE
    case AV_PIX_FMT_YUV444P12LE: format = AV_PIX_FMT_GBRP12LE
    default: break
    }
  }

  /// A picture of the same kind, and of another size, in black or green.
  func blank(_ size: PixelSize) throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer(width: size.width, height: size.height, format: format)
    try unsafe check("av_frame_copy_props", av_frame_copy_props(result.frame, frame))
    return result
  }

  /// Copies a planar picture of the same format into this one, at a position inside. Parts beyond the edges are cut off.
  ///
  /// - Throws: ``RefusedPicture`` where the position would part pixels from their chroma.
  func copy(_ tile: FrameBuffer, x: Int, y: Int) throws {
    precondition(tile.format == format && (0..<width).contains(x) && (0..<height).contains(y))
    let shifts = try chromaShifts()
    guard x % (1 << shifts.x) == 0, y % (1 << shifts.y) == 0 else {
      throw RefusedPicture(reason: "tiles of an odd size are not supported")
    }
    for index in 0..<Int(av_pix_fmt_count_planes(format)) {
      let (across, down) = index == 0 ? (0, 0) : (shifts.x, shifts.y)
      let columns = (min(tile.width, width - x) + (1 << across) - 1) >> across
      let rows = (min(tile.height, height - y) + (1 << down) - 1) >> down
      let (from, to) = unsafe (tile.plane(index), plane(index))
      unsafe av_image_copy_plane(
        to.start + (y >> down) * to.stride + (x >> across) * sampleBytes, Int32(to.stride), from.start,
        Int32(from.stride), Int32(columns * sampleBytes), Int32(rows))
    }
  }

  /// Sets the alpha of RGBA to the values of a grey picture of the same size.
  func setAlpha(_ grey: FrameBuffer) {
    precondition(format == AV_PIX_FMT_RGBA && grey.format == AV_PIX_FMT_GRAY8 && grey.size == size)
    let (from, to) = unsafe (grey.plane(0), plane(0))
    for row in 0..<height {
      for column in 0..<width {
        unsafe to.start[row * to.stride + 4 * column + 3] = from.start[row * from.stride + column]
      }
    }
  }

  /// Returns the picture with alpha that colours are not multiplied by, or without alpha.
  ///
  /// - Throws: ``RefusedPicture``, ``FFmpegError``.
  func withStraightAlpha(_ alpha: StoredAlpha, _ converter: PictureConverter) throws -> FrameBuffer {
    guard hasAlpha, format != AV_PIX_FMT_PAL8 else { return self }
    switch alpha {
    case .straight: return self
    case .premultiplied:
      let result = try converter.rgba(self)
      if result !== self { try unsafe check("av_frame_copy_props", av_frame_copy_props(result.frame, frame)) }
      try result.makeWritable()
      result.unpremultiply()
      return result
    case .unused:
      switch format {
      case AV_PIX_FMT_BGRA: format = AV_PIX_FMT_BGR0
      case AV_PIX_FMT_RGBA: format = AV_PIX_FMT_RGB0
      default: throw RefusedPicture(reason: "a picture with samples of no meaning is not supported")
      }
      return self
    }
  }

  /// Whether a picture in RGBA with transparent parts has nearly nothing else to see on a background: a drawing in its colour. Most
  /// pictures are told by their first rows.
  func isInvisible(on background: Colour) -> Bool {
    precondition(format == AV_PIX_FMT_RGBA)
    // Shades that nobody tells apart, in 255ths; and the share of the pixels that may differ, in percent.
    let (tolerance, share) = (16, 1)
    // The alpha from which a pixel is drawn, and no soft edge.
    let drawn = 64
    let behind = (Int(background.red), Int(background.green), Int(background.blue))
    var (different, same, transparent) = (0, 0, 0)
    let (start, stride) = unsafe plane(0)
    for row in 0..<height {
      let line = unsafe start + row * stride
      for column in 0..<width {
        let pixel = unsafe line + 4 * column
        let alpha = unsafe Int(pixel[3])
        let distance = unsafe max(
          abs(Int(pixel[0]) - behind.0), abs(Int(pixel[1]) - behind.1), abs(Int(pixel[2]) - behind.2))
        if distance * alpha > tolerance * 255 {
          different += 1
        } else if alpha < drawn {
          transparent += 1
        } else {
          same += 1
        }
      }
      if 100 * different > share * width * height { return false }
    }
    return transparent > 0 && same > 100 * different
  }

  /// Gives a picture the profile and the other facts of another one that it was made of.
  func withProperties(of other: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    if self !== other { try unsafe check("av_frame_copy_props", av_frame_copy_props(frame, other.frame)) }
    return self
  }

  /// Divides the colours of RGBA by its alpha, in place. Transparent pixels stay as they are.
  func unpremultiply() {
    precondition(format == AV_PIX_FMT_RGBA)
    let (start, stride) = unsafe plane(0)
    for row in 0..<height {
      let line = unsafe start + row * stride
      for pixel in 0..<width {
        let alpha = unsafe Int(line[4 * pixel + 3])
        guard (1..<255).contains(alpha) else { continue }
        for channel in 0..<3 {
          let value = unsafe (Int(line[4 * pixel + channel]) * 255 + alpha / 2) / alpha
          unsafe line[4 * pixel + channel] = UInt8(min(value, 255))
        }
      }
    }
  }

  /// Keeps a part of the picture, in place.
  func crop(x: Int, y: Int, _ size: PixelSize) throws(FFmpegError) {
    precondition(x >= 0 && y >= 0 && x + size.width <= width && y + size.height <= height)
    unsafe frame.pointee.crop_left = x
    unsafe frame.pointee.crop_top = y
    unsafe frame.pointee.crop_right = width - x - size.width
    unsafe frame.pointee.crop_bottom = height - y - size.height
    try unsafe check("av_frame_apply_cropping", av_frame_apply_cropping(frame, Int32(AV_FRAME_CROP_UNALIGNED)))
  }

  func setColourProfile(_ profile: ArraySlice<UInt8>) throws(FFmpegError) {
    unsafe av_frame_remove_side_data(frame, AV_FRAME_DATA_ICC_PROFILE)
    let data = try unsafe allocated(
      "av_frame_new_side_data", av_frame_new_side_data(frame, AV_FRAME_DATA_ICC_PROFILE, profile.count))
    for (index, byte) in profile.enumerated() { unsafe data.pointee.data[index] = byte }
  }
}
