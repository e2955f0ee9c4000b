import Encoding
import FrameBatches

/// Where everything on a contact sheet is, in pixels. Pure.
struct SheetLayout: Equatable {
  /// Around the sheet, and between tiles.
  static let margin = 20
  static let gutter = 16
  /// Between a tile and what stands under it.
  static let labelGap = 8
  /// A side, in pixels, and all of it: what image viewers open, and what fits into memory.
  static let maximumSide = 16_384
  static let maximumPixels = 40_000_000

  package let columns: Int
  package let rows: Int
  /// The place of a picture.
  package let tile: PixelSize
  /// How many pixels a pixel of the font takes.
  let scale: Int
  package let header: [String]
  /// Under each tile.
  package let lines: Int

  /// - Parameters:
  ///   - pictures: the sizes of those that are shown.
  ///   - wantedColumns: nil for as many as make a sheet like a screen.
  ///   - header: lines of text, broken where they are too long.
  init(tiles: Int, pictures: [PixelSize], width: Int, columns wantedColumns: Int?, header: [String]) {
    let box = Self.box(width)
    let height = pictures.map { $0.fitted(into: box).height }.max() ?? width
    // A gap says what it is, even between pictures that are low.
    tile = PixelSize(width: width, height: max(height, width / 2))
    scale = Self.scale(width)
    lines = Self.label(of: 0, from: 0, width: width).count
    let cell = (
      across: width + Self.gutter,
      down: tile.height + Self.labelGap + lines * scale * BitmapFont.lineHeight + Self.gutter
    )
    columns = wantedColumns ?? Self.columns(tiles, across: cell.across, down: cell.down)
    rows = (tiles + columns - 1) / columns
    let letters = (columns * cell.across - Self.gutter) / (BitmapFont.advance * scale)
    self.header = header.flatMap { SheetText.wrap($0, columns: letters) }
  }

  /// How large a picture may be.
  static func box(_ width: Int) -> PixelSize { PixelSize(width: width, height: width * 9 / 4) }

  /// The text under a tile.
  package static func label(of ms: Int64, from startMs: Int64, width: Int) -> [String] {
    let letters = width / (BitmapFont.advance * scale(width))
    return [SheetText.instant(ms), SheetText.offset(ms - startMs)].flatMap { SheetText.wrap($0, columns: letters) }
  }

  package var width: Int { 2 * Self.margin + columns * (tile.width + Self.gutter) - Self.gutter }

  package var height: Int { tilesTop + rows * rowHeight - Self.gutter + Self.margin }

  /// In words; nil when it is not.
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

  private var rowHeight: Int { tile.height + Self.labelGap + lines * lineHeight + Self.gutter }

  /// Small pictures have small letters.
  private static func scale(_ width: Int) -> Int { width >= 13 * BitmapFont.advance * 2 ? 2 : 1 }

  /// Some 16 to 10, and rows as full as they can be.
  private static func columns(_ tiles: Int, across: Int, down: Int) -> Int {
    let most = max(1, tiles)
    func rows(_ columns: Int) -> Int { (most + columns - 1) / columns }
    let fits = (1...most).first { columns in 5 * columns * across >= 8 * rows(columns) * down } ?? 1
    let enough = rows(min(most, max(4, fits)))
    return (most + enough - 1) / enough
  }
}
