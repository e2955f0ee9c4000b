// The primary picture of a HEIF file: its tiles, its colours, and how it is cropped, turned and mirrored (ISO/IEC 23008-12, 6.5).

/// The reason why the picture of a HEIF file cannot be shown.
package struct HEIFFault: Error, Equatable {
  package let reason: String

  package static let invalid = HEIFFault(reason: "invalid data")
}

/// A picture as it is stored: coded as a whole, or in tiles of one size.
package struct HEIFPicture {
  package enum Coding: Sendable { case hevc, av1 }

  package struct Tile {
    package let coding: Coding
    /// The decoder's configuration: `hvcC`. AV1 needs none.
    package let configuration: ArraySlice<UInt8>
    let item: HEIFFile.Item
  }

  /// How YUV and RGB are coded, in the numbers of ITU-T H.273.
  package struct Coded: Equatable {
    package let primaries: Int
    package let transfer: Int
    package let matrix: Int
    package let isFullRange: Bool

    package init(primaries: Int, transfer: Int, matrix: Int, isFullRange: Bool) {
      (self.primaries, self.transfer, self.matrix, self.isFullRange) = (primaries, transfer, matrix, isFullRange)
    }
  }

  package struct Crop: Equatable {
    package let x: Int
    package let y: Int
    package let size: PixelSize
  }

  package enum Turn: Equatable {
    /// Anticlockwise.
    case quarters(Int)
    case leftAndRightExchanged
    case topAndBottomExchanged
  }

  /// The size before it is cropped and turned.
  package let size: PixelSize
  /// Row by row.
  package let tiles: [Tile]
  package let columns: Int
  package let tileSize: PixelSize
  /// nil where the file states nothing beside what the coded picture states.
  package let coded: Coded?
  /// An ICC profile.
  package let profile: ArraySlice<UInt8>?
  package let crop: Crop?
  /// The turns behind the crop, in order.
  package let turns: [Turn]
}

extension HEIFFile {
  /// Phones write up to 192; each takes a new decoder.
  private static let maximumTiles = 4_096
  /// Bytes that the tiles of any file may have together, although they share them: equal tiles may be stored once.
  private static let sharedBytes = 4 << 20

  /// The size of the primary picture as it is stored.
  package var size: PixelSize? { items[primary]?.size }

  /// - Throws: ``HEIFFault``.
  package func picture() throws(HEIFFault) -> HEIFPicture { try picture(of: primary) }

  /// The opacity of the primary picture, as the luma of a picture, and whether colours are multiplied by it; nil if all is opaque.
  ///
  /// - Throws: ``HEIFFault``.
  package func alpha() throws(HEIFFault) -> (picture: HEIFPicture, isPremultiplied: Bool)? {
    let kinds = ["urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"]
    let numbers = items.filter { _, item in
      guard item.references["auxl"]?.contains(primary) == true else { return false }
      // A full box with a text.
      let kind = item.first("auxC")?.dropFirst(4).prefix { $0 != 0 }
      return kind.map { kind in kinds.contains { $0.utf8.elementsEqual(kind) } } ?? false
    }
    guard let number = numbers.keys.min() else { return nil }
    return (try picture(of: number), items[primary]?.references["prem"]?.contains(number) == true)
  }

  /// Returns the coded bytes of a tile; nil where the file does not have all of them.
  package func data(of tile: HEIFPicture.Tile) -> ArraySlice<UInt8>? { data(of: tile.item) }

  private func picture(of number: Int) throws(HEIFFault) -> HEIFPicture {
    guard let item = items[number], let size = item.size else { throw .invalid }
    try item.requireKnownFeatures()
    let (crop, turns) = try item.transformations(of: size)
    let (parts, columns, tileSize) = try parts(of: item, number, size)
    let first = parts[0]
    return HEIFPicture(
      size: size, tiles: try parts.map { (part) throws(HEIFFault) in try part.tile() }, columns: columns,
      tileSize: tileSize, coded: item.coded ?? first.coded, profile: item.profile ?? first.profile, crop: crop,
      turns: turns)
  }

  /// Returns the coded items of a picture, at least one, the number of columns, and the size of each.
  private func parts(
    of item: Item, _ number: Int, _ size: PixelSize
  ) throws(HEIFFault) -> ([Item], columns: Int, PixelSize) {
    guard item.type == "grid" else { return ([item], 1, size) }
    guard let grid = data(of: item).flatMap(Grid.init), grid.size == size,
      let numbers = item.references["dimg"], numbers.count == grid.rows * grid.columns
    else { throw .invalid }
    guard numbers.count <= Self.maximumTiles else {
      throw HEIFFault(reason: "a picture of \(numbers.count) tiles is not supported")
    }
    var parts: [Item] = []
    for number in numbers {
      guard let part = items[number], let partSize = part.size, partSize == parts.first?.size ?? partSize else {
        throw .invalid
      }
      try part.requireKnownFeatures()
      guard try part.transformations(of: partSize) == (nil, []) else {
        throw HEIFFault(reason: "tiles that are cropped or turned are not supported")
      }
      parts.append(part)
    }
    // Otherwise a decoder would read the same bytes thousands of times.
    let codedBytes = parts.reduce(0) { $0 + (byteCount(of: $1) ?? 0) }
    guard codedBytes <= max(byteCount, Self.sharedBytes) else { throw .invalid }
    // Each row and each column of tiles has a visible part.
    guard let tile = parts.first?.size, tile.width > 0, tile.height > 0,
      tile.width.covers(size.width, in: grid.columns), tile.height.covers(size.height, in: grid.rows)
    else { throw .invalid }
    return (parts, grid.columns, tile)
  }

  /// The body of a grid (ISO/IEC 23008-12, 6.6.2.3).
  private struct Grid {
    let rows: Int
    let columns: Int
    let size: PixelSize

    init?(_ data: ArraySlice<UInt8>) {
      var reader = NumberReader(data)
      guard reader.number(1) == 0, let flags = reader.number(1), let lastRow = reader.number(1),
        let lastColumn = reader.number(1), let width = reader.number(flags & 1 == 0 ? 2 : 4),
        let height = reader.number(flags & 1 == 0 ? 2 : 4)
      else { return nil }
      (rows, columns) = (lastRow + 1, lastColumn + 1)
      size = PixelSize(width: width, height: height)
    }
  }
}

extension Int {
  /// Whether so many tiles of this length cover a length, and none of them lies beyond it.
  fileprivate func covers(_ length: Int, in tiles: Int) -> Bool {
    self <= Int(Int32.max) && self * tiles >= length && self * (tiles - 1) < length
  }
}

extension HEIFFile.Item {
  /// Properties that this code applies, and those that tell about the picture without a change to it.
  private static let known: Set<String> = [
    "ispe", "pixi", "colr", "hvcC", "av1C", "irot", "imir", "clap", "auxC", "pasp", "clli", "mdcv", "cclv", "amve",
    "a1op", "lsel",
  ]

  fileprivate func first(_ type: String) -> ArraySlice<UInt8>? { properties.first { $0.box.type == type }?.box.body }

  fileprivate var size: PixelSize? {
    guard let body = first("ispe") else { return nil }
    var reader = NumberReader(body)
    guard reader.number(4) != nil, let width = reader.number(4), let height = reader.number(4) else { return nil }
    return PixelSize(width: width, height: height)
  }

  fileprivate func requireKnownFeatures() throws(HEIFFault) {
    // The first operating point, and all layers.
    let isWhole = (first("a1op")?.first ?? 0) == 0 && (first("lsel")?.prefix(2).bigEndian ?? 0xFFFF) == 0xFFFF
    guard isWhole, properties.allSatisfy({ !$0.isEssential || Self.known.contains($0.box.type) }) else {
      throw HEIFFault(reason: "a picture with features that are not supported")
    }
  }

  fileprivate func tile() throws(HEIFFault) -> HEIFPicture.Tile {
    switch type {
    case "hvc1":
      guard let configuration = first("hvcC") else { throw .invalid }
      return HEIFPicture.Tile(coding: .hevc, configuration: configuration, item: self)
    case "av01": return HEIFPicture.Tile(coding: .av1, configuration: [], item: self)
    default: throw HEIFFault(reason: "a picture that is coded neither as HEVC nor as AV1 is not supported")
    }
  }

  /// The first `colr` of numbers.
  fileprivate var coded: HEIFPicture.Coded? {
    for property in properties where property.box.type == "colr" {
      var reader = NumberReader(property.box.body)
      guard reader.bytes(4).map({ $0.elementsEqual("nclx".utf8) }) == true else { continue }
      guard let primaries = reader.number(2), let transfer = reader.number(2), let matrix = reader.number(2),
        let range = reader.number(1)
      else { continue }
      return HEIFPicture.Coded(
        primaries: primaries, transfer: transfer, matrix: matrix, isFullRange: range & 0x80 != 0)
    }
    return nil
  }

  /// The first `colr` with an ICC profile.
  fileprivate var profile: ArraySlice<UInt8>? {
    let bodies = properties.filter { $0.box.type == "colr" }.map(\.box.body)
    return bodies.first { $0.starts(with: "prof".utf8) || $0.starts(with: "rICC".utf8) }?.dropFirst(4)
  }

  /// Returns how the picture is cropped and then turned. A crop comes first in every file (ISO/IEC 23000-22, 7.3.6.7).
  fileprivate func transformations(of size: PixelSize) throws(HEIFFault) -> (HEIFPicture.Crop?, [HEIFPicture.Turn]) {
    var crop: HEIFPicture.Crop?
    var turns: [HEIFPicture.Turn] = []
    for property in properties {
      let body = property.box.body
      switch property.box.type {
      case "clap":
        guard crop == nil, turns.isEmpty, let new = HEIFPicture.Crop(body, of: size) else { throw .invalid }
        crop = new
      case "irot":
        guard let angle = body.first else { throw .invalid }
        turns.append(.quarters(Int(angle & 3)))
      case "imir":
        guard let axis = body.first else { throw .invalid }
        turns.append(axis & 1 == 0 ? .topAndBottomExchanged : .leftAndRightExchanged)
      default: break
      }
      guard turns.count <= 8 else { throw .invalid }
    }
    return (crop, turns)
  }
}

extension HEIFPicture.Crop {
  /// Reads a `clap`: fractions of the width, the height, and the distances of the centres (ISO/IEC 14496-12, 12.1.4.2).
  ///
  /// - Returns: nil unless it is whole pixels inside the picture.
  fileprivate init?(_ clap: ArraySlice<UInt8>, of picture: PixelSize) {
    var reader = NumberReader(clap)
    var numbers: [Int] = []
    for _ in 0..<8 {
      guard let number = reader.number(4) else { return nil }
      numbers.append(number)
    }
    func place(_ number: Int, _ denominator: Int, _ offset: Int, _ under: Int, in length: Int) -> Range<Int>? {
      guard denominator > 0, number % denominator == 0, under > 0 else { return nil }
      let size = number / denominator
      let doubled = 2 * Int(Int32(truncatingIfNeeded: offset))
      guard size > 0, size <= length, doubled % under == 0, (length - size + doubled / under) % 2 == 0 else {
        return nil
      }
      let start = (length - size + doubled / under) / 2
      return start >= 0 && start + size <= length ? start..<start + size : nil
    }
    guard let across = place(numbers[0], numbers[1], numbers[4], numbers[5], in: picture.width),
      let down = place(numbers[2], numbers[3], numbers[6], numbers[7], in: picture.height)
    else { return nil }
    (x, y) = (across.lowerBound, down.lowerBound)
    size = PixelSize(width: across.count, height: down.count)
  }
}
