import Foundation
import TestSupport
import Testing

/// A picture that cannot be taken is refused with a remedy, and the remedy works as it is printed.
@Suite struct PictureRemedyTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func encode(_ options: String...) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, ["encode", "in", "--output", "out"] + options, in: scratch.url)
  }

  /// Returns the options of a message that ends in `raise the limit with …`.
  private func limits(in message: String) throws -> [String] {
    let advice = try #require(message.split(separator: "raise the limit with ").dropFirst().last)
    return try #require(advice.split(separator: "\n").first).split(separator: " ").map(String.init)
  }

  /// Makes pictures with a given source of libavfilter.
  private func frame(_ name: String, _ source: String) throws {
    _ = try scratch.directory("in")
    try Tool.output(
      "ffmpeg",
      ["-v", "error", "-f", "lavfi", "-i", source, "-frames:v", "1", scratch.path("in/" + name)])
  }

  /// Two wide screens, a whole page, and a picture of more pixels than the usual limit, which all commands read.
  @Test(arguments: [(10_240, 64), (64, 15_000), (16_384, 16), (6_656, 6_656)])
  func pictureBeyondALimitIsTakenWithTheLimitOfTheMessage(width: Int, height: Int) throws {
    try frame("1767859512000.png", "color=c=0x4080C0:s=\(width)x\(height)")
    let refused = try encode()
    #expect(refused.status == 65, "\(refused.errors)")
    #expect(refused.errors.contains("\(width)×\(height) pixels, more than the limit"), "\(refused.errors)")
    #expect(!refused.errors.contains("whole images"), "\(refused.errors)")
    let options = try limits(in: refused.errors)
    let taken = try Tool.run(EncoderWorker.path, ["encode", "in", "--output", "out"] + options, in: scratch.url)
    #expect(taken.status == 0, "\(options): \(taken.errors)")
    for command in [
      ["verify", "out/in"], ["pictures", "out/in", "--at", "+0s", "--to", "f.png"],
      ["pictures", "--sheet", "out/in", "--to", "s.png"],
      ["stitch", "out/in", "--to", "f.mp4"],
    ] {
      let result = try Tool.run(EncoderWorker.path, command, in: scratch.url)
      #expect(result.status == 0, "\(command): \(result.errors)")
    }
    let again = try Tool.run(
      EncoderWorker.path, ["reencode", "out/in", "--output", "again", "--quality", "small"], in: scratch.url)
    if width * height > 40_000_000 {
      #expect(again.status == 65 && again.errors.contains("more than the limit of 40000000 in all"), "\(again.errors)")
    } else {
      #expect(again.status == 0, "\(again.errors)")
    }
  }

  @Test func pictureBeyondEveryLimitIsToBeScaled() throws {
    try frame("1767859512000.png", "color=s=16400x16")
    #expect(try encode().errors.contains("scale it to at most 16384 a side"))
  }

  @Test func fileBeyondALimitIsTakenWithTheLimitOfTheMessage() throws {
    try frame("1767859512000.png", "testsrc2=s=320x240")
    try frame("1767859513000.png", "testsrc2=s=640x480")
    for limit in ["file-bytes=100", "frame-bytes=100", "side=100", "pixels=1000"] {
      let refused = try encode("--limit", limit)
      #expect(refused.status == 65, "\(limit): \(refused.errors)")
      let options = try limits(in: refused.errors)
      let taken = try Tool.run(
        EncoderWorker.path, ["encode", "in", "--output", "out", "--limit", limit] + options, in: scratch.url)
      #expect(taken.status == 0 && taken.text.contains("2 frames"), "\(options): \(taken.text) \(taken.errors)")
      try FileManager.default.removeItem(atPath: scratch.path("out"))
    }
  }

  @Test func pictureOfOnePixelIsShown() throws {
    _ = try scratch.directory("in")
    try scratch.file(
      "in/1767859512000.png", PNGImage.file(width: 1, height: 1, depth: 8, kind: 2, samples: [255, 255, 255]))
    #expect(try encode().status == 0)
    let manifest = try PublishedSession(scratch.path("out/in")).manifests[0]
    #expect((manifest.width, manifest.height, manifest.codedWidth, manifest.codedHeight) == (1, 1, 2, 2))
  }

  /// The command of the message is run by a shell in the directory of the frames.
  @Test(arguments: ["jp2", "ppm", "pgm"])
  func otherFormatIsNamedWithACommandThatConvertsIt(suffix: String) throws {
    for second in 2...3 { try frame("176785951\(second)000.\(suffix)", "testsrc2=s=64x48") }
    let name = ["jp2": "JPEG 2000"][suffix] ?? suffix.uppercased()
    let refused = try encode()
    #expect(refused.status == 65)
    for part in [
      "none of its 2 frames can be decoded: 2 \(name)", "a \(name) image is not supported", "for f in *.\(suffix)",
    ] {
      #expect(refused.errors.contains(part), "\(part): \(refused.errors)")
    }
    let loop = try #require(refused.errors.split(separator: "PNG or WebP: ").last?.split(separator: "\n").first)
    let folder = URL(fileURLWithPath: scratch.path("in"))
    #expect(try Tool.run("sh", ["-c", String(loop)], in: folder).status == 0, "\(loop)")
    let taken = try EncoderWorker.run("encode", scratch.path("in/png"), "--output", scratch.path("out"))
    #expect(taken.status == 0 && taken.text.contains("2 frames"), "\(taken.errors)")
    // Beside a good frame, the manifest has the reason and the command.
    try FileManager.default.copyItem(
      atPath: scratch.path("in/png/1767859512000.png"), toPath: scratch.path("in/1767859514000.png"))
    let kept = try EncoderWorker.run("encode", scratch.path("in"), "--output", scratch.path("out"), "--accept")
    #expect(kept.status == 0, "\(kept.errors)")
    let reasons = try PublishedSession(scratch.path("out/in")).manifests[0].refused.map(\.reason).filter {
      $0.hasPrefix("decode ")
    }
    #expect(
      reasons.count == 2 && reasons.allSatisfy { $0.contains("convert it: ffmpeg -i FILE.\(suffix)") }, "\(reasons)")
  }

  @Test func folderOfAnUnknownFormatIsNamedWithItsFormatAndCount() throws {
    _ = try scratch.directory("in")
    let drawing = Array("8BPS".utf8) + [UInt8](repeating: 0, count: 60)
    try scratch.file("in/.hidden", [1])
    for number in 1...3 { try scratch.file("in/IMG_\(number).PSD", drawing) }
    let refused = try encode()
    for part in ["'IMG_1.PSD' is a PSD image (3 files end in .psd)", "for f in *.PSD; do ffmpeg"] {
      #expect(refused.errors.contains(part), "\(part): \(refused.errors)")
    }
    let single = try Tool.run(EncoderWorker.path, ["encode", "in/IMG_1.PSD", "--output", "out"], in: scratch.url)
    #expect(single.status == 65 && single.errors.contains("the file is a PSD image"), "\(single.errors)")
  }

  /// A share of a NAS, with what synchronisation and upload programs leave there.
  @Test func filesOfOtherProgramsInAFolderAreNotShown() throws {
    let good = try Fixture("exact-1fps").bytes("0000.jpg")
    _ = try scratch.directory("in/@eaDir/1767859512000.jpg")
    for second in 2...4 { try scratch.file("in/176785951\(second)000.jpg", good) }
    try scratch.file("in/@eaDir/1767859512000.jpg/SYNOPHOTO_THUMB_S.jpg", good)
    try scratch.file("in/1767859515000.jpg", Array(good.prefix(good.count / 2)))
    for name in [
      "Thumbs.db", "desktop.ini", ".DS_Store", "@eaDir/x@SynoEAStream", "1767859512000.json", "1767859512000.xml",
      ".1767859516000.jpg.Ab3dEf", "1767859517000.jpg.part", "1767859518000.jpg.filepart", "._1767859512000.jpg",
    ] {
      try scratch.file("in/" + name, good)
    }
    #expect(try encode().status == 0)
    let session = try PublishedSession(scratch.path("out/in"))
    #expect(
      session.manifests.flatMap(\.frames).map(\.source) == [
        "1767859512000.jpg", "1767859513000.jpg", "1767859514000.jpg",
      ])
    #expect(session.manifests[0].refused.count == 9, "\(session.manifests[0].refused)")
  }
}
