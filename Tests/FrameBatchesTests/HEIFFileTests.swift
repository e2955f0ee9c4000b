import TestSupport
import Testing

@testable import FrameBatches

/// The tables of HEIF files, and files that lie about them.
@Suite struct HEIFFileTests {
  private static func number(_ value: Int, _ bytes: Int) -> [UInt8] {
    (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * (bytes - 1 - $0))) }
  }

  private static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
    number(8 + body.count, 4) + Array(type.utf8) + body
  }

  private static func full(_ type: String, _ body: [UInt8], version: Int = 0) -> [UInt8] {
    box(type, [UInt8(version), 0, 0, 0] + body)
  }

  private static let size = full("ispe", number(64, 4) + number(48, 4))

  /// Returns a file with one item, of which some tables are replaced.
  private static func file(
    type: String = "hvc1", iloc: [UInt8]? = nil, iref: [UInt8] = [], properties: [[UInt8]] = [size],
    associations: [UInt8] = [1]
  ) -> [UInt8] {
    let places = full(
      "iloc", [0x44, 0] + number(1, 2) + number(1, 2) + number(0, 2) + number(1, 2) + number(0, 4) + number(9, 4))
    let entry = full("infe", number(1, 2) + number(0, 2) + Array(type.utf8) + [0], version: 2)
    let owned = number(1, 4) + number(1, 2) + [UInt8(associations.count)] + associations
    let meta =
      full("pitm", number(1, 2)) + full("iinf", number(1, 2) + entry) + (iloc ?? places) + iref
      + box("iprp", box("ipco", properties.flatMap { $0 }) + full("ipma", owned))
    return box("ftyp", Array("heic\0\0\0\0mif1".utf8)) + full("meta", meta)
  }

  private static func picture(_ file: [UInt8]) throws(HEIFFault) -> HEIFPicture {
    guard let file = HEIFFile(file) else { throw .invalid }
    return try file.picture()
  }

  @Test func theItemOfAPictureIsRead() throws {
    let file = Self.file(properties: [Self.size, Self.box("hvcC", [1, 2])], associations: [1, 0x82])
    let picture = try Self.picture(file)
    #expect(picture.size == PixelSize(width: 64, height: 48) && picture.tiles.count == 1 && picture.turns.isEmpty)
    #expect(picture.tiles[0].configuration.elementsEqual([1, 2]))
    #expect(HEIFFile(file)?.data(of: picture.tiles[0])?.count == 9)
  }

  /// Counts that no file has room for, and places behind its end.
  @Test func tablesThatLieAreRefused() throws {
    let lies: [[UInt8]] = [
      // 65 535 items, and as many extents of no bytes.
      Self.full("iloc", [0, 0] + Self.number(65_535, 2) + [UInt8](repeating: 0xFF, count: 400_000)),
      Self.full("iloc", [0x44, 0] + Self.number(65_535, 2)),
      Self.full("iloc", [0x33, 0] + Self.number(1, 2) + [UInt8](repeating: 0, count: 64)),
      Self.full(
        "iloc", [0x88, 0] + Self.number(1, 2) + Self.number(1, 2) + [0, 0, 0, 1] + [UInt8](repeating: 0xFF, count: 16)),
      Self.full("iloc", [], version: 9),
      // More extents than any picture has.
      Self.full("iloc", [0x44, 0] + Self.number(1, 2) + [0, 1, 0, 0, 0, 65] + [UInt8](repeating: 1, count: 65 * 8)),
    ]
    for lie in lies { #expect(HEIFFile(Self.file(iloc: lie)) == nil) }
    #expect(HEIFFile(Self.file(associations: [7])) == nil)
    #expect(HEIFFile(Self.file(associations: [UInt8](repeating: 1, count: 64))) != nil)
    #expect(HEIFFile(Self.file(associations: [UInt8](repeating: 1, count: 65))) == nil)
    #expect(
      HEIFFile(Self.file(iref: Self.full("iref", Self.box("dimg", Self.number(1, 2) + Self.number(9, 2))))) == nil)
    #expect(HEIFFile(Array(Self.file().dropLast())) == nil)
    let beyond = Self.full(
      "iloc",
      [0x44, 0] + Self.number(1, 2) + Self.number(1, 2) + [0, 0, 0, 1] + Self.number(1, 4) + Self.number(1 << 20, 4))
    let file = try #require(
      HEIFFile(Self.file(iloc: beyond, properties: [Self.size, Self.box("hvcC", [1])], associations: [1, 2])))
    #expect(file.data(of: try file.picture().tiles[0]) == nil)
  }

  @Test func aGridOfItselfOrOfNothingIsRefused() throws {
    let body = [0, 0, 0, 0] + Self.number(64, 2) + Self.number(48, 2)
    var grid = Self.file(
      type: "grid", iref: Self.full("iref", Self.box("dimg", Self.number(1, 2) + Self.number(1, 2) + Self.number(1, 2)))
    )
    // The body of the grid at the start of the file, where the item lies, would be no valid file; so it lies at the end.
    let place = try #require(grid.indices.first { grid[$0...].starts(with: "iloc".utf8) }) + 18
    grid.replaceSubrange(place..<place + 8, with: Self.number(grid.count, 4) + Self.number(body.count, 4))
    #expect(throws: HEIFFault(reason: "a picture that is coded neither as HEVC nor as AV1 is not supported")) {
      try Self.picture(grid + body)
    }
    #expect(throws: HEIFFault.invalid) { try Self.picture(Self.file(type: "grid")) }
  }

  /// Returns a file with a grid of tiles of 64×64 pixels, which are all the same item.
  private static func grid(columns: Int, rows: Int, tileBytes: Int) -> [UInt8] {
    let (width, height, count) = (64 * columns, 64 * rows, columns * rows)
    let body: [UInt8] = [0, 0, UInt8(rows - 1), UInt8(columns - 1)] + number(width, 2) + number(height, 2)
    func entry(_ item: Int, _ type: String) -> [UInt8] {
      full("infe", number(item, 2) + [0, 0] + Array(type.utf8) + [0], version: 2)
    }
    func place(_ item: Int, method: Int, _ length: Int) -> [UInt8] {
      number(item, 2) + number(method, 2) + [0, 0, 0, 1] + number(0, 4) + number(length, 4)
    }
    let places = place(1, method: 1, body.count) + place(2, method: 0, tileBytes)
    let tiles = (0..<count).flatMap { _ in number(2, 2) }
    let sizes = full("ispe", number(width, 4) + number(height, 4)) + full("ispe", number(64, 4) + number(64, 4))
    let associations: [UInt8] = [0, 0, 0, 2, 0, 1, 1, 1, 0, 2, 2, 2, 0x83]
    var meta = full("pitm", number(1, 2)) + full("iinf", number(2, 2) + entry(1, "grid") + entry(2, "hvc1"))
    meta += full("iloc", [0x44, 0] + number(2, 2) + places, version: 1)
    meta += full("iref", box("dimg", number(1, 2) + number(count, 2) + tiles))
    meta += box("iprp", box("ipco", sizes + box("hvcC", [1])) + full("ipma", associations)) + box("idat", body)
    let start = box("ftyp", Array("heic\0\0\0\0mif1".utf8)) + full("meta", meta)
    return start + box("mdat", [UInt8](repeating: 0, count: tileBytes))
  }

  /// Tiles may be stored once; but a small file must not be decoded thousands of times.
  @Test func tilesShareFewBytesOnly() throws {
    let file = Self.grid(columns: 8, rows: 8, tileBytes: 1_000)
    let picture = try Self.picture(file)
    #expect(picture.size == PixelSize(width: 512, height: 512) && picture.tiles.count == 64)
    #expect(HEIFFile(file)?.data(of: picture.tiles[63])?.count == 1_000)
    #expect(throws: HEIFFault.invalid) { try Self.picture(Self.grid(columns: 8, rows: 8, tileBytes: 100_000)) }
    #expect(throws: HEIFFault(reason: "a picture of 4352 tiles is not supported")) {
      try Self.picture(Self.grid(columns: 256, rows: 17, tileBytes: 10))
    }
  }

  @Test(
    arguments: [
      ([63, 1, 47, 1, -1, 2, -1, 2], HEIFPicture.Crop(x: 0, y: 0, size: PixelSize(width: 63, height: 47))),
      ([32, 1, 16, 1, 0, 1, 0, 1], HEIFPicture.Crop(x: 16, y: 16, size: PixelSize(width: 32, height: 16))),
      ([32, 1, 16, 1, 16, 1, 32, 2], HEIFPicture.Crop(x: 32, y: 32, size: PixelSize(width: 32, height: 16))),
      // Beyond the picture, half a pixel, nothing, fractions of nothing.
      ([32, 1, 16, 1, 17, 1, 0, 1], nil), ([63, 1, 47, 1, 0, 1, 0, 1], nil), ([0, 1, 16, 1, 0, 1, 0, 1], nil),
      ([32, 0, 16, 1, 0, 1, 0, 1], nil), ([32, 1, 16, 1, 0, 0, 0, 1], nil), ([65, 1, 16, 1, 0, 1, 0, 1], nil),
      ([32, 1, 16, 1, Int(Int32.min), 1, 0, 1], nil),
    ] as [([Int], HEIFPicture.Crop?)])
  func aCropIsWholePixelsInThePicture(numbers: [Int], crop: HEIFPicture.Crop?) throws {
    let clap = Self.box("clap", numbers.flatMap { Self.number($0, 4) })
    let file = Self.file(properties: [Self.size, Self.box("hvcC", [1]), clap], associations: [1, 2, 0x83])
    if let crop {
      #expect(try Self.picture(file).crop == crop)
    } else {
      #expect(throws: HEIFFault.invalid) { try Self.picture(file) }
    }
  }

  /// The tables of every fixture, changed at random, are read without a trap and in bounded time.
  @Test func changedTablesNeverTrap() throws {
    var random = Random(seed: 44)
    for name in ["phone.heic", "clear.heic", "grid.avif", "premultiplied.avif", "cropped.avif"] {
      let good = try Fixture("modern").bytes(name)
      for _ in 0..<Extent.of(2_000, full: 50_000) {
        var file = good
        for _ in 0..<Int.random(in: 1...6, using: &random) {
          // Most of the bytes in front are tables.
          let place = Int.random(in: 0..<min(good.count, 900), using: &random)
          let limits: [UInt8] = [0, 1, 0x7F, 0x80, 0xFF]
          file[place] = limits.randomElement(using: &random) ?? 0
          if Bool.random(using: &random) { file[place] = UInt8.random(in: 0...255, using: &random) }
        }
        if Int.random(in: 0..<8, using: &random) == 0 {
          file = Array(file.prefix(Int.random(in: 0...file.count, using: &random)))
        }
        guard let heif = HEIFFile(file) else { continue }
        _ = heif.exif
        guard let picture = try? heif.picture() else { continue }
        _ = try? heif.alpha()
        for tile in picture.tiles { _ = heif.data(of: tile) }
      }
    }
  }
}
