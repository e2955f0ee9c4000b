// Encodes a GIF (GIF89a). A picture is the rectangle that changes, transparent where nothing does. It has the palette of the first
// picture, or one of its own where that is smaller or better. Benchmarks/LIMITS.md has the measurements behind the constants.

import FrameBatches

final class GIFEncoder: AnimatedPictureEncoder {
  /// The most colours of a palette, beside the transparent one.
  private static let maximumColours = 255
  /// The mean squared error at which a palette has enough colours: some 1.6 units of 255 a channel.
  private static let wantedError = 8.0
  /// The mean squared error beyond which 255 colours are too few. Then the picture is dithered: it is a photograph.
  private static let ditheredError = 20.0
  /// The mean squared error at which the shared palette is good enough, and its ratio to that of the picture's own.
  private static let (sharedError, errorRatio) = (16.0, 1.5)
  private static let signature = Array("GIF89a".utf8)
  /// The application extension of Netscape: 0 repeats for ever.
  private static let loop: [UInt8] = [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1, 0, 0, 0]

  let tail: [UInt8] = [0x3B]
  private let size: PixelSize
  private var canvas: AnimationCanvas
  private var counts = ColourCounts()
  private var compressor = LZWEncoder()
  /// The palette of the first picture, and its mapper.
  private var shared: (palette: Palette, mapper: PaletteMapper)?

  /// Colours as a table of a power of two. The first index behind them is transparent.
  private struct Palette {
    let colours: [UInt32]
    /// The size of an index.
    let bits: Int

    init(_ palette: ColourPalette) {
      colours = palette.colours
      bits = Int.bitWidth - colours.count.leadingZeroBitCount
    }

    var table: [UInt8] {
      let table = colours.flatMap { [UInt8($0 >> 16), UInt8($0 >> 8 & 0xFF), UInt8($0 & 0xFF)] }
      return table + Array(repeating: 0, count: (3 << bits) - table.count)
    }
  }

  init(_ size: PixelSize) {
    self.size = size
    canvas = AnimationCanvas(size, grain: .pixel)
  }

  var headBytes: Int { head(pictureBytes: 0).count }

  func head(pictureBytes: Int) -> [UInt8] {
    var head = Self.signature
    head.append(littleEndian: size.width, bytes: 2)
    head.append(littleEndian: size.height, bytes: 2)
    // A palette of colours of 8 bits; background and shape of the pixels.
    head += [0xF0 | UInt8((shared?.palette.bits ?? 1) - 1), 0, 0]
    return head + (shared?.palette.table ?? Array(repeating: 0, count: 6)) + Self.loop + FilmMark.gifComment
  }

  func encode(_ picture: FrameBuffer) -> StoredPicture? {
    guard let change = canvas.draw(picture) else { return nil }
    counts.count(change)
    let colours = ColourPalette(counts, maximum: Self.maximumColours, meanError: Self.wantedError)
    let own = (palette: Palette(colours), mapper: PaletteMapper(colours))
    let ownError = own.mapper.meanError(of: counts)
    let isDithered = ownError > Self.ditheredError
    guard let shared else {
      shared = own
      return image(change, own.palette, own.mapper, isOwn: false, isDithered: isDithered)
    }
    let picture = image(change, own.palette, own.mapper, isOwn: true, isDithered: isDithered)
    let error = shared.mapper.meanError(of: counts)
    guard error <= max(Self.sharedError, Self.errorRatio * ownError) else { return picture }
    let plain = image(change, shared.palette, shared.mapper, isOwn: false, isDithered: isDithered)
    return plain.count <= picture.count ? plain : picture
  }

  func unchanged() -> StoredPicture {
    let palette = shared?.palette ?? Palette(ColourPalette(colours: [0]))
    let symbols = [UInt8(palette.colours.count)]
    return image(SheetArea(x: 0, y: 0, width: 1, height: 1), symbols, palette, isOwn: false, isWhole: false)
  }

  /// - Parameter isOwn: whether the palette is stored with the image; otherwise it is the shared one.
  private func image(
    _ change: AnimationCanvas.Change, _ palette: Palette, _ mapper: PaletteMapper, isOwn: Bool, isDithered: Bool
  ) -> StoredPicture {
    let symbols = change.symbols(mapper, transparent: UInt8(palette.colours.count), isDithered: isDithered)
    return image(change.area, symbols, palette, isOwn: isOwn, isWhole: change.isWhole)
  }

  private func image(
    _ area: SheetArea, _ symbols: [UInt8], _ palette: Palette, isOwn: Bool, isWhole: Bool
  ) -> StoredPicture {
    // The control extension: the picture stays when the next one comes.
    var bytes: [UInt8] = [0x21, 0xF9, 4, isWhole ? 4 : 5, 0, 0, isWhole ? 0 : UInt8(palette.colours.count), 0, 0x2C]
    for value in [area.x, area.y, area.width, area.height] { bytes.append(littleEndian: value, bytes: 2) }
    bytes.append(isOwn ? 0x80 | UInt8(palette.bits - 1) : 0)
    if isOwn { bytes += palette.table }
    return StoredPicture(bytes + compressor.encode(symbols, bits: max(2, palette.bits)), holdAt: 4, size: 2)
  }
}
