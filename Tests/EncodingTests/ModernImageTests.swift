import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches

/// HEIC, AVIF, JPEG XL, GIF, BMP and TIFF: a damaged or unusual file is refused, and nothing of it is shown.
@Suite struct ModernImageTests {
  private let decoder = PictureDecoder(limits: Limits())
  private let scratch: ScratchDirectory

  init() throws {
    FFmpegLog.silence()
    scratch = try ScratchDirectory()
  }

  private func decoded(_ file: [UInt8]) throws -> DecodedPicture {
    try decoder.picture(from: [file], FrameComposition(content: .image(nil), masks: .none))
  }

  private func reason(_ file: [UInt8]) -> String? {
    do {
      _ = try decoded(file)
      return nil
    } catch {
      return (error as? RefusedPicture)?.refusal.text ?? "another error: \(error)"
    }
  }

  /// Returns a picture that Pillow writes with these options.
  private func saved(_ suffix: String, mode: String = "RGB", _ options: String = "") throws -> [UInt8] {
    let script = """
      import sys
      from PIL import Image
      image = Image.linear_gradient("L").resize((64, 48)).convert("\(mode)")
      image.save(sys.argv[1]\(options.isEmpty ? "" : ", " + options))
      """
    let path = scratch.path("picture.\(suffix)")
    try Tool.output(Tool.python, ["-c", script, path])
    return try Fixture(file: path).bytes()
  }

  @Test(arguments: [
    "usual.heic", "clear.heic", "phone.heic", "usual.avif", "clear.avif", "grid.avif", "lossy.jxl", "turned.jxl",
  ])
  func truncatedModernFileIsRefusedAtAnyLength(name: String) throws {
    let file = try Fixture("modern").bytes(name)
    for cut in stride(from: 1, to: file.count, by: max(1, file.count / 100)) {
      #expect(reason(Array(file.prefix(cut))) != nil, "cut at \(cut) of \(file.count)")
    }
    #expect(reason(file) == nil)
  }

  @Test(arguments: [
    ("bmp", ""), ("gif", ""), ("tif", "compression='raw'"), ("tif", "compression='tiff_lzw'"),
    ("tif", "compression='packbits'"), ("tif", "compression='tiff_adobe_deflate'"),
  ])
  func truncatedOldFileIsRefusedAtAnyLength(suffix: String, options: String) throws {
    let file = try saved(suffix, options)
    // The end of a GIF's last part, and its trailer, have no pixels; nor has the end of a TIFF's directory.
    for cut in stride(from: 3, to: file.count - 16, by: max(1, file.count / 100)) {
      #expect(reason(Array(file.prefix(cut))) != nil, "cut at \(cut) of \(file.count)")
    }
    #expect(reason(file) == nil)
  }

  /// A decoder of video takes the picture for whole: only its marks tell that a part is missing.
  @Test func pictureWithoutASliceIsRefused() throws {
    let file = try Fixture("modern-damaged").bytes("one-slice.heic")
    #expect(reason(file) == "incomplete")
  }

  /// The alpha may repeat the turn of its picture, and may have no other one.
  @Test func alphaOfAnotherShapeIsRefused() throws {
    var file = try Fixture("modern").bytes("turned-clear.avif")
    let plain = try decoded(file).picture.bytes
    let table = try #require(file.indices.first { file[$0...].starts(with: "ipma".utf8) })
    func place(of associations: [UInt8]) throws -> Int {
      try #require(file.indices.first { $0 > table && file[$0...].starts(with: associations) })
    }
    // The fifth property is the turn.
    let (ofPicture, ofAlpha) = (try place(of: [1, 2, 0x83, 4, 0x85]), try place(of: [1, 6, 0x87, 8]))
    file[ofAlpha + 1] = 0x85
    #expect(try decoded(file).picture.bytes == plain)
    file[ofPicture + 4] = 0
    #expect(reason(file) == "a picture whose transparency has another shape is not supported")
  }

  // MARK: - JPEG XL in boxes

  private static func number(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
  }

  private static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
    number(UInt32(8 + body.count)) + Array(type.utf8) + body
  }

  /// Returns a JPEG XL in boxes, with its picture in parts of these numbers.
  private func jpegXL(_ numbers: [UInt32], behind more: [UInt8] = []) throws -> [UInt8] {
    let codestream = try Fixture("modern").bytes("lossy.jxl")
    let length = codestream.count / numbers.count + 1
    let parts = zip(numbers, stride(from: 0, to: codestream.count, by: length)).flatMap { number, start in
      Self.box("jxlp", Self.number(number) + codestream.dropFirst(start).prefix(length))
    }
    let head = Self.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + Self.box("ftyp", Array("jxl \0\0\0\0jxl ".utf8))
    return head + parts + more
  }

  @Test func partsOfAJPEGXLAreJoined() throws {
    let plain = try decoded(Fixture("modern").bytes("lossy.jxl")).picture.bytes
    for numbers: [UInt32] in [[0x8000_0000], [0, 0x8000_0001], [0, 1, 2, 0x8000_0003]] {
      #expect(try decoded(jpegXL(numbers)).picture.bytes == plain)
    }
    for numbers: [UInt32] in [[0, 1], [0x8000_0001, 0], [0, 2, 0x8000_0001], [1, 0x8000_0002]] {
      #expect(reason(try jpegXL(numbers)) == "invalid data", "\(numbers)")
    }
  }

  /// libavcodec would try to read the rest of the box for ever.
  @Test func boxThatBreaksOffBehindAPartOfAJPEGXLIsNotWaitedFor() throws {
    #expect(reason(Array(try jpegXL([0, 0x8000_0001]).dropLast(400)) + [0, 0, 0, 16, 0x6A]) == "invalid data")
    #expect(reason(try jpegXL([0, 1], behind: [0, 0, 0, 16, 0x6A])) == "invalid data")
    #expect(reason(try jpegXL([0, 0x8000_0001], behind: [0, 0, 0, 16, 0x6A])) == nil)
  }

  @Test func highDynamicRangeIsReportedAsOfAPNG() throws {
    let picture = try decoded(Fixture("modern").bytes("pq.avif"))
    #expect(picture.notes == ["shown without its high dynamic range (PQ): light above 203 cd/m² is white"])
  }

  private func changed(_ name: String, _ old: String, _ new: [UInt8]) throws -> [UInt8] {
    var file = try Fixture("modern").bytes(name)
    let place = try #require(file.indices.first { file[$0...].starts(with: old.utf8) })
    file.replaceSubrange(place..<place + new.count, with: new)
    return file
  }

  @Test func fileWithAnUnknownEssentialPropertyIsRefused() throws {
    let file = try changed("turned.avif", "irot", Array("iscl".utf8))
    #expect(reason(file) == "a picture with features that are not supported")
  }

  @Test func fileOfAnotherCodingIsRefused() throws {
    let file = try changed("usual.avif", "av01", Array("jpeg".utf8))
    // The brand comes first, then the item.
    #expect(reason(file) == nil || reason(file)?.contains("neither as HEVC nor as AV1") == true)
    let item = try Fixture("modern").bytes("usual.avif")
    let types = item.indices.filter { item[$0...].starts(with: "av01".utf8) }
    let others = types.reduce(into: item) { $0.replaceSubrange($1..<$1 + 4, with: "jpeg".utf8) }
    #expect(reason(others) == "a picture that is coded neither as HEVC nor as AV1 is not supported")
  }

  /// The size in the tables decides before a decoder sees the picture.
  @Test func modernPicturesAreMeasuredBeforeTheyAreDecoded() throws {
    for name in ["usual.heic", "usual.avif"] {
      var file = try changed(name, "ispe", Array("ispe".utf8) + [0, 0, 0, 0, 0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60])
      #expect(reason(file)?.hasPrefix("60000×60000 pixels, more than the limit") == true)
      file = try changed(
        name, "ispe", Array("ispe".utf8) + [0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
      #expect(reason(file)?.contains("pixels, more than the limit") == true)
      file = try changed(name, "ispe", Array("ispe".utf8) + [0, 0, 0, 0, 0, 0, 0, 80, 0, 0, 0, 64])
      #expect(reason(file) == "two sizes or kinds of pictures in one file" || reason(file) == "invalid data")
    }
  }

  /// The coded picture may be far larger than the tables say: the decoder gets no more memory than the tables need.
  @Test func codedPictureLargerThanItsTablesIsRefused() throws {
    let file = try changed("grid.avif", "ispe", Array("ispe".utf8) + [0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 16])
    #expect(reason(file) != nil)
  }

  @Test func overwrittenHEICIsRefusedOrShownWhole() throws {
    var random = Random(seed: 44)
    let file = try Fixture("modern").bytes("usual.heic")
    var refused = 0
    for _ in 0..<Extent.of(200, full: 5_000) {
      var broken = file
      for _ in 0..<8 {
        broken[Int.random(in: file.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      let found = reason(broken)
      #expect(found?.hasPrefix("another error") != true, "\(found ?? "")")
      refused += found == nil ? 0 : 1
    }
    #expect(refused > 50)
  }

  @Test func gifWhoseFirstPictureDoesNotFillItIsRefused() throws {
    var file = try saved("gif")
    let part = "a GIF whose first picture does not fill it is not supported"
    let descriptor = try #require(
      file.indices.first { file[$0] == 0x2C && file[($0 + 1)...].starts(with: [0, 0, 0, 0, 64, 0, 48, 0]) })
    file[descriptor + 1] = 1
    #expect(reason(file) == part)
    file[descriptor + 1] = 0
    file[descriptor + 7] = 40
    #expect(reason(file) == part)
  }

  /// All parts are there, and the codes in them end too early.
  @Test func gifWithTooFewCodesIsRefused() throws {
    // 8×8 pixels of two colours: a clear code, and then a code for each of two pixels.
    let head =
      Array("GIF89a".utf8) + [8, 0, 8, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255, 0x2C, 0, 0, 0, 0, 8, 0, 8, 0, 0, 2]
    /// Packs codes of three bits, the lowest bit first.
    func packed(_ codes: [Int]) -> [UInt8] {
      var bits = codes.flatMap { code in (0..<3).map { code >> $0 & 1 } }
      while bits.count % 8 != 0 { bits.append(0) }
      return stride(from: 0, to: bits.count, by: 8).map { start in
        UInt8((0..<8).reduce(0) { $0 | bits[start + $1] << $1 })
      }
    }
    // A clear code before each pair keeps the codes at three bits.
    let all = packed((0..<32).flatMap { _ in [4, 0, 1] } + [5])
    let few = packed((0..<31).flatMap { _ in [4, 0, 1] } + [5])
    #expect(reason(head + [UInt8(all.count)] + all + [0, 0x3B]) == nil)
    #expect(reason(head + [UInt8(few.count)] + few + [0, 0x3B]) == "invalid data")
  }

  @Test func firstPictureOfAnAnimatedGIFNeedsNothingBehindIt() throws {
    let file = try saved("gif", "save_all=True, append_images=[Image.new('RGB', (64, 48), 'red')]")
    let first = try GIFBlocks.first(of: file)
    #expect(first.count < file.count)
    let pictures = try [file, first, Array(file.prefix(first.count + 20))].map { try decoded($0).picture.bytes }
    #expect(pictures[0] == pictures[1] && pictures[0] == pictures[2])
  }

  @Test(arguments: [
    ("tif", "compression='jpeg'", "a TIFF of a rare kind (compression 7, colours"),
    ("tif", "tiffinfo={266: 2}", "a TIFF of a rare kind (compression 1, colours 2) is not supported"),
  ])
  func rareKindIsRefusedByItsName(suffix: String, options: String, expected: String) throws {
    // Versions of Pillow write other colours into a JPEG.
    #expect(reason(try saved(suffix, options))?.hasPrefix(expected) == true)
  }

  @Test func otherRareKindsAreRefusedByTheirNames() throws {
    #expect(reason([0x49, 0x49, 43, 0, 8, 0, 0, 0]) == "a BigTIFF is not supported")
    var bitmap = try saved("bmp", mode: "L")
    // Runs of pixels.
    bitmap[30] = 1
    #expect(reason(bitmap) == "a compressed BMP is not supported")
  }

  /// Rows of 63 pixels take as many bytes as rows of 64. libavcodec takes what is left for rows without padding.
  @Test func bmpWithoutAllItsPaddingIsRefused() throws {
    var bitmap = try saved("bmp")
    bitmap[18] = 63
    #expect(reason(bitmap) == nil)
    #expect(reason(Array(bitmap.dropLast(48))) == "invalid data")
  }

  /// libavcodec refuses tags that it does not know, and applies tags of raw photographs.
  @Test func otherTagsOfATIFFChangeNothing() throws {
    let plain = try saved("tif")
    let tagged = try saved("tif", "tiffinfo={50706: bytes([1, 4, 0, 0]), 65000: 'x', 330: 8, 34853: 8}")
    #expect(plain.count < tagged.count)
    #expect(try decoded(plain).picture.bytes == decoded(tagged).picture.bytes)
  }
}
