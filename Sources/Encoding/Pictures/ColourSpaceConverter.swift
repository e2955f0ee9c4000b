import CFFmpeg
import CPixels

/// Converts pictures of stated colour spaces to sRGB, from 8 or 16 bits. Light that sRGB lacks is clipped in each channel. Not
/// thread-safe: use one for each thread.
final class ColourSpaceConverter {
  /// The tables of the latest colour space: all images of a recorder have the same.
  private var previous: (space: ColourSpace, isWide: Bool, light: [Float], known: KnownColours)?

  /// Returns RGB24, or RGBA of a picture with alpha.
  func converted(
    _ picture: FrameBuffer, from space: ColourSpace, _ converter: PictureConverter
  ) throws(FFmpegError) -> FrameBuffer {
    let isWide: Bool
    let source: FrameBuffer
    let channels: Int
    switch picture.format {
    case AV_PIX_FMT_GRAY16BE: (source, isWide, channels) = (picture, true, 1)
    case AV_PIX_FMT_YA16BE: (source, isWide, channels) = (picture, true, 2)
    case AV_PIX_FMT_RGB48BE: (source, isWide, channels) = (picture, true, 3)
    case AV_PIX_FMT_RGBA64BE: (source, isWide, channels) = (picture, true, 4)
    default:
      (isWide, channels) = (false, picture.hasAlpha ? 4 : 3)
      source = try picture.hasAlpha ? converter.rgba(picture) : converter.rgb(picture)
    }
    let result = try FrameBuffer(
      width: source.width, height: source.height, format: channels % 2 == 0 ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24)
    let (from, to) = unsafe (source.plane(0), result.plane(0))
    let (light, known) = try tables(of: space, isWide: isWide)
    let matrix = space.matrix.map { Float($0) }
    // The luminance of BT.2100, which HLG's display needs.
    let weights: [Float]? = space.transfer == .hlg ? [0.2627, 0.6780, 0.0593] : nil
    // The pointers do not keep the pictures and the table.
    return withExtendedLifetime((source, result, known)) {
      for row in 0..<source.height {
        let (pixels, target) = unsafe (from.start + row * from.stride, to.start + row * to.stride)
        if isWide {
          unsafe cpx_to_srgb(
            pixels, result.width, channels, isWide, light, matrix, weights, ColourSpace.sRGBCodes, target)
        } else {
          unsafe target.update(from: pixels, count: channels * result.width)
          unsafe cpx_recolour_to_srgb(
            known.table, target, result.width, channels, light, matrix, weights, ColourSpace.sRGBCodes)
        }
      }
      return result
    }
  }

  /// Returns the light of each value, and the colours that are known.
  private func tables(of space: ColourSpace, isWide: Bool) throws(FFmpegError) -> ([Float], KnownColours) {
    if let previous, previous.space == space, previous.isWide == isWide { return (previous.light, previous.known) }
    let highest = isWide ? 65_535 : 255
    let light = (0...highest).map { Float(space.light(of: Double($0) / Double(highest))) }
    let known = try KnownColours()
    previous = (space, isWide, light, known)
    return (light, known)
  }
}

/// Colours whose conversion is known: screens have few. For one conversion. It is safe: it owns the table, and only the table itself
/// is unsafe.
@safe final class KnownColours {
  let table: OpaquePointer

  init() throws(FFmpegError) { unsafe table = try allocated("cpx_colours_create", cpx_colours_create()) }

  deinit { unsafe cpx_colours_free(table) }
}
