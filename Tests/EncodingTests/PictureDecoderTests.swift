import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches

@Suite struct PictureDecoderTests {
  private let decoder = PictureDecoder(limits: Limits())

  init() { FFmpegLog.silence() }

  /// The decoder refuses the whole file. It never fills the missing rows with grey.
  @Test func truncatedFileIsRefusedAtAnyLength() throws {
    for (file, end) in [
      (try Fixture("odd-size").bytes("1767859512340.jpg"), 12),
      (try Fixture("colour-bars").bytes("1767859512340.png"), 20),
    ] {
      for cut in stride(from: 1, to: file.count - end, by: max(1, file.count / 60)) {
        #expect(throws: RefusedPicture.self, "cut at \(cut) of \(file.count)") {
          try decoder.picture(from: Array(file.prefix(cut)), masks: .none)
        }
      }
      _ = try decoder.picture(from: file, masks: .none)
    }
  }

  /// libavcodec can decode an APNG frame as a difference from the previous one. No decoder may keep state between
  /// pictures.
  @Test(arguments: ["png", "jpg", "webp"])
  func pictureDoesNotDependOnThePreviousPicture(kind: String) throws {
    let files = try ["wide-colour/p3.\(kind)", "wide-colour/untagged.png", "wide-colour/srgb.png"].map {
      try Fixture($0).bytes()
    }
    for file in files + files.reversed() {
      let again = try decoder.picture(from: file, masks: .none)
      let alone = try PictureDecoder(limits: Limits()).picture(from: file, masks: .none)
      #expect(try again.bytes == alone.bytes)
    }
  }

  /// A small profile with programs can take minutes to evaluate.
  @Test func aProfileWithProgramsIsNotUsed() throws {
    var file = try Fixture("wide-colour").bytes("p3.webp")
    let tag = try #require(file.indices.dropLast(4).first { file[$0..<$0 + 4].elementsEqual("cprt".utf8) })
    file.replaceSubrange(tag..<tag + 4, with: "D2B0".utf8)
    let decoded = try decoder.picture(from: [file], FrameComposition(content: .image(nil), masks: .none))
    #expect(decoded.notes == ["shown as sRGB: its colour profile cannot be used (it has floating-point steps)"])
  }

  /// A JPEG without its last scans, but with an end marker.
  @Test func aJPEGWithoutAllItsScansIsRefused() throws {
    let baseline = try Fixture("odd-size").bytes("1767859512340.jpg")
    let scan = try #require(baseline.indices.dropLast().first { baseline[$0] == 0xFF && baseline[$0 + 1] == 0xDA })
    // First only the header, then the header with a scan of the first component.
    let header = Array(baseline[..<scan])
    let lumaOnly =
      header + [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0] + Array(repeating: 0x55, count: 4_000) + [0xFF, 0xD9]
    for file in [header + [0xFF, 0xD9], lumaOnly] {
      #expect(throws: RefusedPicture(reason: "incomplete")) { try decoder.picture(from: file, masks: .none) }
    }
  }

  /// libavcodec would decode it to grey, or with the tables of the previous file.
  @Test func aJPEGWithoutItsQuantisersIsRefused() throws {
    let file = try Fixture("odd-size").bytes("1767859512340.jpg")
    _ = try decoder.picture(from: file, masks: .none)
    let bare = file.indices.dropLast().filter { file[$0] == 0xFF && file[$0 + 1] == 0xDB }.reversed()
      .reduce(into: file) { bare, marker in
        bare.removeSubrange(marker..<marker + 2 + (Int(file[marker + 2]) << 8 | Int(file[marker + 3])))
      }
    #expect(throws: RefusedPicture(reason: "incomplete")) { try decoder.picture(from: bare, masks: .none) }
  }

  @Test(
    arguments: [
      (0xC9, 8, "a JPEG with arithmetic coding is not supported"), (0xC5, 8, "a hierarchical JPEG is not supported"),
      (0xC1, 12, "a JPEG of 12 bits a sample, not 8, is not supported"),
    ] as [(UInt8, UInt8, String)])
  func aJPEGOfAnUnsupportedProcessIsRefusedByItsName(process: UInt8, bits: UInt8, reason: String) throws {
    var file = try Fixture("odd-size").bytes("1767859512340.jpg")
    let frame = try #require(file.indices.dropLast().first { file[$0] == 0xFF && file[$0 + 1] == 0xC0 })
    file[frame + 1] = process
    file[frame + 4] = bits
    #expect(throws: RefusedPicture(reason: reason)) { try decoder.picture(from: file, masks: .none) }
  }

  /// libavcodec would decode it as YCbCr.
  @Test func aJPEGOfSubsampledRGBIsRefused() throws {
    let file = try Fixture("odd-size").bytes("1767859512340.jpg")
    let parts = try #require(JPEGFile(file))
    #expect(parts.segments.first?.marker == 0xE0)
    let rest = parts.segments.dropFirst().flatMap { file[$0.range] }
    func adobe(_ transform: UInt8) -> [UInt8] {
      [0xFF, 0xEE, 0, 14] + Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, transform]
    }
    let reason = "a JPEG of red, green and blue in different resolutions is not supported"
    #expect(throws: RefusedPicture(reason: reason)) {
      try decoder.picture(from: [0xFF, 0xD8] + adobe(0) + rest, masks: .none)
    }
    // JFIF, or another value in the Adobe marker, declares YCbCr.
    let defaultValue = try decoder.picture(from: file, masks: .none).bytes
    for start in [file[parts.segments[0].range] + adobe(0), adobe(1)[...]] {
      #expect(try decoder.picture(from: [0xFF, 0xD8] + start + rest, masks: .none).bytes == defaultValue)
    }
    // The component names declare RGB.
    var named = [0xFF, 0xD8] + rest
    let frame = try #require(named.indices.dropLast().first { named[$0] == 0xFF && named[$0 + 1] == 0xC0 })
    for (index, name) in "RGB".utf8.enumerated() { named[frame + 10 + 3 * index] = name }
    #expect(JPEGFile(named)?.reasonToRefuse == reason)
  }

  /// The smallest file: 16×16 pixels of one colour (RFC 9649, 3).
  @Test func losslessWebPOf28BytesIsAccepted() throws {
    let file =
      Array("RIFF".utf8) + [20, 0, 0, 0] + Array("WEBPVP8L".utf8) + [8, 0, 0, 0, 0x2F, 15, 0xC0, 3, 0, 0x88, 0x88, 8]
    #expect(file.count == 28)
    let picture = try decoder.picture(from: file, masks: .none)
    #expect((picture.width, picture.height) == (16, 16))
  }

  /// Photographs, one colour, odd sides, palettes of 2 to 64 colours, noise, and alpha of each kind.
  @Test(arguments: [
    "null", "scale=1:1", "scale=2:33", "scale=33:2", "format=gray,lutyuv=y='255*gt(val,128)'",
    "format=gray,lutyuv=y='bitand(val,192)'", "format=gray,lutyuv=y='bitand(val,240)'",
    "format=gray,lutyuv=y='bitand(val,252)'", "noise=alls=40:allf=t,crop=60:60",
    "format=rgba,colorchannelmixer=aa=0.4", "format=rgba,geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='mod(X+Y,256)'",
  ])
  func losslessWebPHasTheSamplesOfThePNG(filter: String) throws {
    let scratch = try ScratchDirectory()
    let efforts = [0, 3, 6]
    let pixels = filter.hasPrefix("format=rgba") ? "rgba" : "rgb24"
    var arguments = ["-v", "error", "-i", Fixture("odd-size").path + "/1767859512340.jpg"]
    arguments += ["-vf", filter + ",format=bgra", "-frames:v", "1", "-c:v", "png", "-pix_fmt", pixels]
    arguments += [scratch.path("0.png")]
    for effort in efforts {
      arguments += ["-vf", filter, "-frames:v", "1", "-c:v", "libwebp", "-lossless", "1", "-pix_fmt", "bgra"]
      arguments += ["-compression_level", "\(effort)", scratch.path("\(effort).webp")]
    }
    try Tool.output("ffmpeg", arguments)
    let png = try decoder.picture(from: Fixture(file: scratch.path("0.png")).bytes(), masks: .none)
    for effort in efforts {
      let file = try Fixture(file: scratch.path("\(effort).webp")).bytes()
      #expect(file[8..<16].elementsEqual("WEBPVP8L".utf8))
      #expect(try decoder.picture(from: file, masks: .none).bytes == png.bytes, "effort \(effort)")
      #expect(throws: RefusedPicture.self) { try decoder.picture(from: Array(file.dropLast(2)), masks: .none) }
    }
  }

  @Test func pngWithDamagedProfileIsDecodedAsSRGB() throws {
    let good = try Fixture("wide-colour").bytes("p3.png")
    let start = try #require(good.indices.first { good[$0...].starts(with: "iCCP".utf8) })
    let length = good[start - 4..<start].reduce(0) { $0 << 8 | Int($1) }
    for damage in [start + 10, start + length / 2, start + 4 + length] {
      var broken = good
      broken[damage] ^= 0xFF
      let decoded = try decoder.picture(from: [broken], FrameComposition(content: .image(nil), masks: .none), into: nil)
      #expect(decoded.notes == ["shown as sRGB: its colour profile cannot be used (damaged)"], "\(damage - start)")
      let bare = PNGChunks.essential(of: good, withoutProfile: "damaged").file
      #expect(try decoded.picture.bytes == decoder.picture(from: bare, masks: .none).bytes)
    }
  }

  /// The headers alone decide, before any layer is decoded.
  @Test func layersOfTooManyPixelsAreRefusedBeforeAnyIsDecoded() throws {
    func header(_ side: UInt8) -> [UInt8] {
      [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10, 0, 0, 0, 13] + Array("IHDR".utf8) + [0, 0, side, 0, 0, 0, side, 0]
    }
    let layer = Layer(raw: nil, x: 0, y: 0, size: nil, opacity: 1, masks: .none)
    // 24 × 256 pixels a side. The limit counts each layer twice: as stored and as composed. No data follows the
    // headers.
    let look = FrameComposition(content: .layers([layer, layer, layer], width: 100, height: 100), masks: .none)
    let refused = #expect(throws: RefusedPicture.self) {
      try decoder.picture(from: Array(repeating: header(24), count: 3), look, into: nil)
    }
    #expect(
      refused?.refusal.text
        == "layer 2: too many pixels in all layers; raise the limit with --limit pixels=56623104")
  }

  @Test func progressiveJPEGWithMissingCoefficientBitsIsIncomplete() throws {
    func parts(_ scans: [[UInt8]], quantiser: UInt8 = 0) throws -> JPEGFile {
      let quantisers = [0xFF, 0xDB, 0, 67, quantiser] + Array(repeating: 1 as UInt8, count: 64)
      let frame: [UInt8] = [0xFF, 0xC2, 0, 17, 8, 0, 16, 0, 16, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]
      var file: [UInt8] = [0xFF, 0xD8] + quantisers + frame
      for scan in scans { file += [0xFF, 0xDA, 0, UInt8(scan.count + 2)] + scan + [1, 2, 0xFF, 0, 0xFF, 0xD0, 3] }
      return try #require(JPEGFile(file + [0xFF, 0xD9]))
    }
    let dc: [UInt8] = [3, 1, 0, 2, 0, 3, 0, 0, 0, 0x01]
    let dcRefined: [UInt8] = [3, 1, 0, 2, 0, 3, 0, 0, 0, 0x10]
    let ac = (1...3).map { [1, UInt8($0), 0, 1, 63, 0] as [UInt8] }
    #expect(try JPEGScans.areComplete(parts([dc, dcRefined] + ac)))
    #expect(try !JPEGScans.areComplete(parts([dc, dcRefined] + ac, quantiser: 1)))
    #expect(try !JPEGScans.areComplete(parts([dc] + ac)))
    #expect(try !JPEGScans.areComplete(parts([dc, dcRefined] + ac.dropLast())))
    #expect(try !JPEGScans.areComplete(parts([dc, dcRefined, ac[0], ac[1], [1, 3, 0, 1, 62, 0]])))
    #expect(try !JPEGScans.areComplete(parts([])))
    #expect(try !JPEGScans.areComplete(#require(JPEGFile([0xFF, 0xD8, 0xFF]))))
  }

  @Test func picturesAreMeasuredBeforeTheyAreDecoded() throws {
    var header = try Fixture("colour-bars").bytes("1767859512340.png")
    header.replaceSubrange(16..<24, with: [0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60])
    #expect {
      try decoder.picture(from: header, masks: .none)
    } throws: {
      ($0 as? RefusedPicture)?.refusal.text.hasPrefix("60000×60000 pixels, more than the limit") == true
    }
  }

  @Test func oddSidesArePaddedAndTheDisplaySizeKept() throws {
    let picture = try decoder.picture(from: try Fixture("odd-size").bytes("1767859512340.jpg"), masks: .none)
    #expect((picture.width, picture.height) == (181, 321))
    #expect((picture.codedWidth, picture.codedHeight) == (182, 322))
  }

  /// A decoder that gets a buffer pads odd sides in it. The pixels equal those of a copy, and no old buffer bytes
  /// remain.
  @Test(arguments: [(181, 321), (181, 320), (180, 321), (180, 320), (17, 16), (16, 17), (1, 1), (128, 129), (129, 128)])
  func oddSidesArePaddedInTheTargetBuffer(width: Int, height: Int) throws {
    let pixels = "nullsrc=s=\(width)x\(height),geq=lum='mod(7*X+3*Y,256)':cb='128+mod(X,50)':cr='128-mod(Y,50)'"
    let file = Array(
      try Tool.output(
        "ffmpeg",
        ["-v", "error", "-f", "lavfi", "-i", pixels, "-frames:v", "1", "-pix_fmt", "yuvj420p", "-f", "mjpeg", "-"]))
    let mask = Mask(x: Double(width) - 2.5, y: Double(height) - 3, width: 9, height: 9)
    for masks in [Masks.none, .rectangles([mask])] {
      let look = FrameComposition(content: .image(nil), masks: masks)
      let copied = try decoder.picture(from: [file], look, into: nil).picture
      let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 1 << 20)
      defer { memory.deallocate() }
      memory.initialize(repeating: 0xAA)
      let space = SharedPictureBuffer(memory)
      let picture = try decoder.picture(from: [file], look, into: space).picture
      #expect(space.used > 0)
      #expect((picture.width, picture.height) == (width, height))
      #expect((picture.codedWidth, picture.codedHeight) == (width + width % 2, height + height % 2))
      #expect(try picture.bytes == copied.bytes)
      #expect(picture.lay(into: space).planes[0].stride % 128 == 0, "the picture was copied")
    }
  }
}

extension Picture {
  /// All pixels, plane by plane.
  var bytes: [UInt8] {
    get throws {
      try withFrame(pts: 0) { frame throws(FFmpegError) in
        let planes = [
          (frame.pointee.data.0, frame.pointee.linesize.0, 0), (frame.pointee.data.1, frame.pointee.linesize.1, 1),
          (frame.pointee.data.2, frame.pointee.linesize.2, 1),
        ]
        return planes.flatMap { data, stride, shift in
          (0..<codedHeight >> shift).flatMap { row in
            (0..<codedWidth >> shift).map { data![row * Int(stride) + $0] }
          }
        }
      }
    }
  }
}

extension PictureDecoder {
  /// Decodes the picture of one image file.
  func picture(from file: [UInt8], masks: Masks) throws -> Picture {
    try picture(from: [file], FrameComposition(content: .image(nil), masks: masks)).picture
  }
}
