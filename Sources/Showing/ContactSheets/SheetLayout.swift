import Encoding
import FrameBatches
import Sessions

/// The places of everything on a contact sheet, in pixels. Pure.
struct SheetLayout: Equatable {
  static let margin = 20
  /// Between tiles.
  static let gutter = 16
  /// Between a tile and its label.
  static let labelGap = 8
  /// Image viewers open images of this size, and it fits into memory.
  private static let maximumSide = 16_384
  private static let maximumPixels = 40_000_000

  let columns: Int
  private let rows: Int
  let tile: PixelSize
  /// The size of a pixel of the font.
  let scale: Int
  let header: [String]
  /// From one tile to the tile below.
  private let rowHeight: Int

  /// - Parameters:
  ///   - pictures: the sizes of the pictures on the sheet.
  ///   - wantedColumns: nil for a sheet with the proportions of a screen.
  ///   - header: lines of text, which are broken if they are too long.
  init(tiles: Int, pictures: [PixelSize], width: Int, columns wantedColumns: Int?, header: [String]) {
    let box = Self.box(width)
    let height = pictures.map { $0.fitted(into: box).height }.max() ?? width
    // The text of a gap needs some height.
    tile = PixelSize(width: width, height: max(height, width / 2))
    scale = Self.scale(width)
    let lines = Self.label(of: 0, from: 0, width: width).count
    rowHeight = tile.height + Self.labelGap + lines * scale * BitmapFont.lineHeight + Self.gutter
    let across = width + Self.gutter
    columns = wantedColumns ?? Self.columns(tiles, across: across, down: rowHeight)
    rows = (tiles + columns - 1) / columns
    let letters = (columns * across - Self.gutter) / (BitmapFont.advance * scale)
    self.header = header.flatMap { SheetText.wrap($0, columns: letters) }
  }

  /// The maximum size of a picture.
  static func box(_ width: Int) -> PixelSize { PixelSize(width: width, height: width * 9 / 4) }

  /// Returns the lines under a tile.
  static func label(of ms: Int64, from startMs: Int64, width: Int) -> [String] {
    let letters = width / (BitmapFont.advance * scale(width))
    return [SheetText.instant(ms), "+" + CueTime.clock(ms - startMs)].flatMap { SheetText.wrap($0, columns: letters) }
  }

  var width: Int { 2 * Self.margin + columns * (tile.width + Self.gutter) - Self.gutter }

  var height: Int { tilesTop + rows * rowHeight - Self.gutter + Self.margin }

  /// nil for a sheet that is not too large.
  var whyTooLarge: String? {
    guard max(width, height) > Self.maximumSide || width * height > Self.maximumPixels else { return nil }
    return
      "it would have \(width)×\(height) pixels, more than \(Self.maximumSide) a side or \(Self.maximumPixels) in all"
  }

  var lineHeight: Int { BitmapFont.lineHeight * scale }

  func tileArea(_ index: Int) -> SheetArea {
    SheetArea(
      x: Self.margin + index % columns * (tile.width + Self.gutter), y: tilesTop + index / columns * rowHeight,
      width: tile.width, height: tile.height)
  }

  private var tilesTop: Int { Self.margin + header.count * lineHeight + Self.gutter }

  /// Small pictures have small letters.
  private static func scale(_ width: Int) -> Int { width >= 13 * BitmapFont.advance * 2 ? 2 : 1 }

  /// Proportions of about 16 to 10, with full rows.
  private static func columns(_ tiles: Int, across: Int, down: Int) -> Int {
    let tiles = max(1, tiles)
    func rows(_ columns: Int) -> Int { (tiles + columns - 1) / columns }
    let fits = (1...tiles).first { columns in 5 * columns * across >= 8 * rows(columns) * down } ?? 1
    let enough = rows(min(tiles, max(4, fits)))
    return (tiles + enough - 1) / enough
  }
}
