// Decodes the primary picture of HEIC and AVIF files. libavcodec decodes each tile; this code makes one picture of them, in the
// colours that the file states.

import CFFmpeg
import FrameBatches

/// A HEIF file whose sizes are within the limits.
struct CheckedHEIF {
  let file: HEIFFile
  let picture: HEIFPicture
  let alpha: (picture: HEIFPicture, isPremultiplied: Bool)?

  /// - Throws: ``RefusedPicture``.
  init(_ file: HEIFFile, limits: Limits) throws(RefusedPicture) {
    self.file = file
    guard file.isWhole else { throw RefusedPicture(reason: "incomplete") }
    do throws(HEIFFault) {
      picture = try file.picture()
      alpha = try file.alpha()
    } catch {
      throw RefusedPicture(reason: error.reason)
    }
    for size in [picture.size, picture.tileSize, alpha?.picture.tileSize] {
      if let excess = size?.excess(of: limits) { throw RefusedPicture(excess) }
    }
    // The alpha has no crop and no turn of its own, or those of the picture.
    if let alpha = alpha?.picture {
      let isPlain = alpha.crop == nil && alpha.turns.isEmpty
      guard alpha.size == picture.size, isPlain || (alpha.crop, alpha.turns) == (picture.crop, picture.turns) else {
        throw RefusedPicture(reason: "a picture whose transparency has another shape is not supported")
      }
    }
  }
}

struct HEIFDecoder {
  let converter: PictureConverter

  /// Returns the picture in a form that ``PictureDecoder`` takes, cropped, and its colours.
  ///
  /// - Throws: ``RefusedPicture``, ``FFmpegError``.
  func decode(_ image: CheckedHEIF, notes: inout [String]) throws -> (pixels: FrameBuffer, colours: ImageColours) {
    let stored = try planes(of: image.picture, in: image.file)
    let coding = StoredColours(of: stored, image.picture.coded)
    let colours = image.picture.profile == nil ? coding.colours(notes: &notes) : .profile
    let result: FrameBuffer
    if image.alpha == nil, coding.areImages(of: stored, croppedTo: image.picture.crop) {
      result = stored
    } else {
      let isWide = image.alpha == nil && stored.sampleBytes == 2
      let format =
        if image.alpha != nil { AV_PIX_FMT_RGBA } else if isWide, case .other = colours { AV_PIX_FMT_RGB48BE } else {
          AV_PIX_FMT_RGB24
        }
      result = try converter.convert(stored, to: format, colours: coding.yuv(of: stored))
      result.colourRange = AVCOL_RANGE_JPEG
    }
    if let alpha = image.alpha {
      let opacity = try planes(of: alpha.picture, in: image.file)
      let coding = StoredColours(of: opacity, alpha.picture.coded)
      result.setAlpha(try converter.convert(opacity, to: AV_PIX_FMT_GRAY8, colours: coding.yuv(of: opacity)))
      if alpha.isPremultiplied { result.unpremultiply() }
    }
    if let crop = image.picture.crop { try result.crop(x: crop.x, y: crop.y, crop.size) }
    if let profile = image.picture.profile { try result.setColourProfile(profile) }
    return (result, colours)
  }

  /// Returns the whole picture as it is coded.
  private func planes(of picture: HEIFPicture, in file: HEIFFile) throws -> FrameBuffer {
    var canvas: FrameBuffer?
    for (index, tile) in picture.tiles.enumerated() {
      guard let data = file.data(of: tile) else { throw RefusedPicture(reason: "incomplete") }
      let decoded = try ImageCodec(tile, size: picture.tileSize).decode(data)
      guard decoded.size == picture.tileSize, decoded.colourRange == canvas?.colourRange ?? decoded.colourRange,
        decoded.format == canvas?.format ?? decoded.format
      else { throw RefusedPicture(reason: "two sizes or kinds of pictures in one file") }
      if picture.tileSize == picture.size { return decoded }
      let whole = try canvas ?? decoded.blank(picture.size)
      canvas = whole
      let (row, column) = index.quotientAndRemainder(dividingBy: picture.columns)
      try whole.copy(decoded, x: column * decoded.width, y: row * decoded.height)
    }
    guard let canvas else { throw RefusedPicture(reason: "invalid data") }
    return canvas
  }
}

/// How the values of a stored picture are meant: as its file states, else as its codec does.
private struct StoredColours {
  private let coded: HEIFPicture.Coded

  init(of picture: FrameBuffer, _ stated: HEIFPicture.Coded?) {
    let own = picture.coded
    /// Returns what the file states, else what the codec does. 2 means that it is not told.
    func told(_ stated: Int?, _ own: Int) -> Int { stated.flatMap { $0 == 2 ? nil : $0 } ?? own }
    let matrix = told(stated?.matrix, own.matrix)
    // A matrix that nobody tells is that of BT.601.
    coded = HEIFPicture.Coded(
      primaries: told(stated?.primaries, own.primaries), transfer: told(stated?.transfer, own.transfer),
      matrix: matrix == 2 ? 6 : matrix, isFullRange: stated?.isFullRange ?? own.isFullRange)
    if coded.matrix == 0 { picture.nameRGB() }
  }

  func colours(notes: inout [String]) -> ImageColours {
    // Conversion from YUV makes the range full.
    ImageColours(
      primaries: coded.primaries, transfer: coded.transfer, isFullRange: coded.matrix != 0 || coded.isFullRange,
      notes: &notes)
  }

  /// - Throws: ``RefusedPicture``.
  func yuv(of picture: FrameBuffer) throws(RefusedPicture) -> YUVColours {
    let matrix: Int32
    switch coded.matrix {
    case 1: matrix = SWS_CS_ITU709
    case 4: matrix = SWS_CS_FCC
    case 5, 6: matrix = SWS_CS_ITU601
    case 0 where picture.isPlanarRGB || picture.isGrey: matrix = SWS_CS_ITU601
    case 7: matrix = SWS_CS_SMPTE240M
    case 9: matrix = SWS_CS_BT2020
    default: throw RefusedPicture(reason: "a picture of the colour matrix \(coded.matrix) is not supported")
    }
    return YUVColours(matrix: matrix, isFullRange: coded.isFullRange, isChromaCentred: true)
  }

  /// Whether a picture has the colours of JPEG or WebP, so that it needs no conversion to RGB. It is marked as one then.
  ///
  /// - Parameter crop: an odd position would part pixels from their chroma.
  func areImages(of picture: FrameBuffer, croppedTo crop: HEIFPicture.Crop?) -> Bool {
    guard crop.map({ $0.x % 2 == 0 && $0.y % 2 == 0 }) ?? true else { return false }
    switch picture.format {
    case AV_PIX_FMT_GRAY8 where coded.isFullRange: break
    case AV_PIX_FMT_YUV420P where [5, 6].contains(coded.matrix) && !coded.isFullRange:
      picture.colourRange = AVCOL_RANGE_MPEG
      return true
    case AV_PIX_FMT_YUV420P where [5, 6].contains(coded.matrix), AV_PIX_FMT_YUVJ420P where isJFIF:
      picture.format = AV_PIX_FMT_YUVJ420P
    case AV_PIX_FMT_YUV422P where isJFIF, AV_PIX_FMT_YUVJ422P where isJFIF: picture.format = AV_PIX_FMT_YUVJ422P
    case AV_PIX_FMT_YUV444P where isJFIF, AV_PIX_FMT_YUVJ444P where isJFIF: picture.format = AV_PIX_FMT_YUVJ444P
    default: return false
    }
    picture.colourRange = AVCOL_RANGE_JPEG
    return true
  }

  private var isJFIF: Bool { [5, 6].contains(coded.matrix) && coded.isFullRange }
}
