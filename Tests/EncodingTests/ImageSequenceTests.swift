import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// The pictures of a file that has several, drawn one over the other as Pillow draws them.
@Suite struct ImageSequenceTests {
  private let scratch: ScratchDirectory

  init() throws {
    FFmpegLog.silence()
    scratch = try ScratchDirectory()
  }

  private static func pixels(
    _ file: [UInt8], _ content: FrameComposition.Content = .image(nil),
    by decoder: PictureDecoder = PictureDecoder(limits: Limits())
  ) throws -> [UInt8] {
    try decoder.picture(from: [file], FrameComposition(content: content, masks: .none)).picture.bytes
  }

  /// Writes an animation of parts with transparency, and a PNG of each picture as Pillow shows it.
  private static let script = """
    import os, random, sys
    from PIL import Image, ImageDraw, ImageSequence
    path, mode, options = sys.argv[1:]
    draw = random.Random(os.path.basename(path) + options)
    pictures = []
    for number in range(8):
        clear = mode != "RGB" and number % 3 != 0
        picture = Image.new(mode, (40, 30), (200, 30, 9, 0)[:len(mode)] if clear else (9, 80 + number, 200, 255)[:len(mode)])
        for box in range(3):
            x, y = draw.randrange(30), draw.randrange(20)
            colour = (draw.randrange(256), draw.randrange(256), draw.randrange(256), draw.choice([0, 255]) if "png" in path else 255)
            ImageDraw.Draw(picture).rectangle((x, y, x + draw.randrange(12), y + draw.randrange(12)), fill=colour[:len(mode)])
        pictures.append(picture)
    pictures[0].save(path, save_all=True, append_images=pictures[1:], **eval("dict(" + options + ")"))
    for number, picture in enumerate(ImageSequence.Iterator(Image.open(path))):
        picture.convert("RGBA").save(f"{path}.{number}.png")
    """

  @Test(arguments: [
    ("a.gif", "RGB", "duration=50"), ("b.gif", "RGBA", "disposal=1"),
    ("a.png", "RGB", "duration=50"), ("b.png", "RGBA", "blend=1"), ("c.png", "RGBA", "disposal=1,blend=1"),
    ("d.png", "RGBA", "disposal=2,blend=1"), ("e.png", "RGBA", "disposal=[0,1,2,0,2,2,1,0],blend=[0,1,1,0,1,1,0,1]"),
    ("a.webp", "RGB", "lossless=True"), ("b.webp", "RGBA", "lossless=True"), ("a.tif", "RGB", "compression='tiff_lzw'"),
  ])
  func eachPictureIsThatOfPillow(name: String, mode: String, options: String) throws {
    let path = scratch.path(name)
    try Tool.output(Tool.python, ["-c", Self.script, path, mode, options])
    let file = try Fixture(file: path).bytes()
    let truths = try TestSupport.names(in: scratch.path).filter { $0.hasPrefix(name + ".") }.sorted()
    let sequence = try #require(ImageKind(of: file).flatMap { ImageSequence(of: file, $0) })
    #expect(sequence.isWhole && sequence.pictures.count == truths.count && truths.count > 4)
    let decoder = PictureDecoder(limits: Limits())
    for (index, truth) in truths.enumerated() {
      let shown = try Self.pixels(file, .picture(index), by: decoder)
      #expect(try shown == Self.pixels(Fixture(file: scratch.path(truth)).bytes()), "\(truth)")
      // Another process may have decoded the pictures before.
      #expect(try shown == Self.pixels(file, .picture(index)), "\(truth)")
    }
    // A picture that comes again, and one that the file does not have.
    #expect(try Self.pixels(file, .picture(1), by: decoder) == Self.pixels(file, .picture(1)))
    #expect(throws: RefusedPicture.self) { try Self.pixels(file, .picture(truths.count), by: decoder) }
    #expect(throws: RefusedPicture.self) { try Self.pixels(file, .picture(-1), by: decoder) }
  }

  /// Pillow mixes alpha in another way than the specification says.
  @Test func halfTransparentPixelIsMixedWithThePictureBehindIt() throws {
    func control(_ number: Int, blends: UInt8) -> (String, [UInt8]) {
      let size = PNGImage.number(1, 4) + PNGImage.number(1, 4)
      return ("fcTL", PNGImage.number(number, 4) + size + [UInt8](repeating: 0, count: 8) + [0, 1, 0, 2, 0, blends])
    }
    func png(_ samples: [Int], _ chunks: [(String, [UInt8])] = []) -> [UInt8] {
      PNGImage.file(width: 1, height: 1, depth: 8, kind: 6, samples: samples, chunks: chunks)
    }
    let second = PNGImage.number(2, 4) + PNGImage.stored([0, 200, 0, 0, 128])
    let first = png(
      [0, 0, 200, 255], [("acTL", PNGImage.number(2, 4) + PNGImage.number(0, 4)), control(0, blends: 0)])
    let (name, body) = control(1, blends: 1)
    let file = first.dropLast(12) + PNGImage.chunk(name, body) + PNGImage.chunk("fdAT", second) + first.suffix(12)
    #expect(ImageSequence(of: Array(file), .png)?.offsetsMs.end == 1_000)
    #expect(try Self.pixels(Array(file), .picture(1)) == Self.pixels(png([100, 0, 100, 255])))
  }

  /// A GIF of 2×2 pixels whose pictures have one colour each.
  ///
  /// - Parameters:
  ///   - hundredths: the duration of each picture.
  ///   - broken: a picture without its pixels.
  ///   - flags: of each picture's control block.
  static func gif(hundredths: [Int], broken: Int? = nil, flags: UInt8 = 0) -> [UInt8] {
    var file = Array("GIF89a".utf8) + [2, 0, 2, 0, 0x81, 0, 0] + [0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 255]
    for (index, duration) in hundredths.enumerated() {
      file += [0x21, 0xF9, 4, flags, UInt8(duration & 255), UInt8(duration >> 8), 0, 0]
      file += [0x2C, 0, 0, 0, 0, 2, 0, 2, 0, 0, 2]
      // Codes of three bits: clear, two pixels, clear, two pixels, end.
      let codes = [4, index % 4, index % 4, 4, index % 4, index % 4, 5]
      let bits = codes.enumerated().reduce(0) { $0 | $1.element << (3 * $1.offset) }
      file += index == broken ? [1, 4, 0] : [3, UInt8(bits & 255), UInt8(bits >> 8 & 255), UInt8(bits >> 16), 0]
    }
    return file + [0x3B]
  }

  @Test func brokenPictureIsRefusedAndThoseBehindItAreShown() throws {
    let (file, good) = (Self.gif(hundredths: [5, 5, 5], broken: 1), Self.gif(hundredths: [5, 5, 5]))
    let decoder = PictureDecoder(limits: Limits())
    #expect(throws: RefusedPicture.self) { try Self.pixels(file, .picture(1), by: decoder) }
    for index in [0, 2] {
      #expect(try Self.pixels(file, .picture(index), by: decoder) == Self.pixels(good, .picture(index)))
    }
  }

  @Test func canvasBeyondTheLimitsIsRefused() {
    var limits = Limits()
    limits.side = 1
    #expect(throws: RefusedPicture.self) {
      try Self.pixels(Self.gif(hundredths: [5, 5]), .picture(0), by: PictureDecoder(limits: limits))
    }
  }

  /// Browsers show pictures of at most 10 ms for 100 ms.
  @Test func durationsAreThoseOfBrowsers() throws {
    let sequence = try #require(ImageSequence(of: Self.gif(hundredths: [0, 1, 2, 300]), .gif))
    #expect(sequence.offsetsMs.starts == [0, 100, 200, 220] && sequence.offsetsMs.end == 3_220)
  }

  /// Pillow and FFmpeg fill what such a picture leaves behind with a colour, where browsers show nothing.
  @Test(
    arguments: [
      (0, .keep, false), (4, .keep, false), (8, .clear, false), (13, .restore, true),
    ] as [(UInt8, ImageSequence.Disposal, Bool)])
  func controlBlockOfAGIFTellsItsDisposal(flags: UInt8, disposal: ImageSequence.Disposal, blends: Bool) throws {
    let sequence = try #require(ImageSequence(of: Self.gif(hundredths: [5, 5], flags: flags), .gif))
    #expect(sequence.pictures.allSatisfy { $0.disposal == disposal && $0.blends == blends })
  }

  @Test func fileOfOnePictureIsNoSequence() throws {
    #expect(ImageSequence(of: Self.gif(hundredths: [5]), .gif) == nil)
    #expect(try ImageSequence(of: Fixture("wide-colour").bytes("p3.png"), .png) == nil)
    #expect(ImageSequence(of: [], .gif) == nil && ImageSequence(of: Array("GIF89a".utf8), .gif) == nil)
  }

  @Test func fileThatBreaksOffHasThePicturesBeforeThatPlace() throws {
    let file = Self.gif(hundredths: [5, 5, 5])
    let sequence = try #require(ImageSequence(of: Array(file.dropLast(3)), .gif))
    #expect(sequence.pictures.count == 2 && !sequence.isWhole)
  }

  /// The first picture stands for the file among other pictures: the manifest and the receipt say so.
  @Test func firstPictureOfSeveralHasANoteAndIsCounted() throws {
    let look = FrameComposition(content: .image(nil), masks: .none)
    let decoded = try PictureDecoder(limits: Limits()).picture(from: [Self.gif(hundredths: [5, 5, 5])], look)
    #expect(decoded.notes == ["shown by the first of its 3 pictures"])
    #expect(decoded.facts.several == 1 && decoded.facts.leftOut == 2)
    var sum = decoded.facts
    sum.add(decoded.facts)
    #expect(sum.warnings.count == 1 && sum.warnings[0].hasPrefix("2 files have several pictures"))
    #expect(sum.warnings[0].contains("4 are left out; to show all, give such a file to film or encode alone"))
    #expect(PictureFacts().warnings == [])
  }

  /// Files of image sequences begin with a still picture; their track has a table of sizes.
  @Test func picturesInTheTrackOfAHEIFAreCounted() {
    func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
      PNGImage.number(body.count + 8, 4) + Array(type.utf8) + body
    }
    let sizes = box("stsz", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6])
    let movie = box("moov", box("trak", box("mdia", box("minf", box("stbl", sizes)))))
    let start = box("ftyp", Array("avis\0\0\0\0avif".utf8))
    #expect(ImageSequence.count(in: start + movie, .avif) == 6)
    #expect(
      ImageSequence.count(in: start, .avif) == 1 && ImageSequence.count(in: start + movie.dropLast(5), .avif) == 1)
  }
}
