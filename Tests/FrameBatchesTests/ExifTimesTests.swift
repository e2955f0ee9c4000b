import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

/// Capture times from EXIF: DateTimeOriginal, SubSecTimeOriginal, OffsetTimeOriginal.
@Suite struct ExifTimesTests: FrameTimesSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static let (time, fraction, zone) = (0x9003, 0x9291, 0x9011)

  /// Makes a batch of files with these texts of EXIF; nil for a file without EXIF.
  private func batch(_ files: [(name: String, texts: [(tag: Int, text: String)]?)]) throws -> String {
    let jpeg = try Fixture("single-frame").bytes("1767859512340.jpg")
    let name = "batch-\(UUID().uuidString)"
    let path = try scratch.directory(name)
    for file in files {
      let kind = file.name.hasSuffix(".png") ? "png" : file.name.hasSuffix(".webp") ? "webp" : "jpg"
      // Only the EXIF data are read: the files need not be pictures.
      let plain: [UInt8] =
        switch kind {
        case "png":
          [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8)
            + [UInt8](repeating: 0, count: 17)
        case "webp": Array("RIFF\0\0\0\0WEBP".utf8)
        default: jpeg
        }
      let bytes = file.texts.map {
        OrientedImage.file(plain, kind: kind, exif: OrientedImage.captureTIFF($0), storedSize: (16, 16))
      }
      try scratch.file("\(name)/\(file.name)", bytes ?? plain)
    }
    return path
  }

  @Test func timesWithFractionsAndZonesAreRead() throws {
    let path = try batch([
      ("IMG_3.jpg", [(Self.time, "2026:01:08 09:05:14"), (Self.fraction, "34 "), (Self.zone, "+01:00")]),
      ("IMG_1.jpg", [(Self.time, "2026:01:08 09:05:12"), (Self.zone, "+01:00")]),
      ("IMG_2.jpg", [(Self.time, "2026:01:08 08:05:13"), (Self.fraction, "5"), (Self.zone, "Z")]),
    ])
    #expect(
      try read(path, options(times: "exif")) == ["s": [1_767_859_512_000, 1_767_859_513_500, 1_767_859_514_340]])
  }

  @Test(arguments: ["jpg", "png", "webp"]) func eachKindOfImageIsRead(kind: String) throws {
    let path = try batch([("a.\(kind)", [(Self.time, "2026:01:08 09:05:12"), (Self.fraction, "250")])])
    let error = #expect(throws: BadBatch.self) { try read(path, options(times: "exif")) }
    #expect(error?.cause == "the EXIF data of a.\(kind) tell local time, not its zone")
    #expect(error?.advice.contains("--time-zone") == true)
    #expect(try read(path, options(times: "exif", timeZone: "Europe/Berlin")) == ["s": [1_767_859_512_250]])
  }

  /// The time lies in an item of the boxes; the texts have no zone.
  @Test func timeOfAHEICIsRead() throws {
    let path = try scratch.directory("photographs")
    try scratch.file("photographs/IMG_1.HEIC", try Fixture("modern").bytes("phone.heic"))
    try scratch.file("photographs/IMG_2.HEIC", try Fixture("modern").bytes("usual.heic"))
    let batch = try BatchSessions(reading: path, options: options(times: "exif", timeZone: "Europe/Berlin")).readers[0]
      .batch
    #expect(batch.frames.map(\.source) == ["IMG_1.HEIC"] && batch.frames.map(\.timeMs) == [1_767_859_512_000])
    #expect(batch.refused.map(\.reason) == ["no EXIF data"])
  }

  /// A TIFF has the directories itself.
  @Test func timeOfATIFFIsRead() throws {
    let path = try scratch.directory("scans")
    try scratch.file(
      "scans/a.tif", OrientedImage.captureTIFF([(Self.time, "2026:01:08 09:05:12"), (Self.zone, "+01:00")]))
    #expect(try read(path, options(times: "exif")) == ["s": [1_767_859_512_000]])
  }

  /// Most programs write the directory behind the pixels.
  @Test func timeBehindThePixelsOfATIFFIsRead() throws {
    let path = try scratch.directory("scans")
    var file = OrientedImage.captureTIFF([(Self.time, "2026:01:08 09:05:12"), (Self.zone, "+01:00")])
    let directory = file[8..<26]
    // 300 000 as four bytes.
    file.replaceSubrange(4..<8, with: [0, 4, 0x93, 0xE0])
    try scratch.file("scans/a.tif", file + [UInt8](repeating: 0, count: 300_000 - file.count) + directory)
    #expect(try read(path, options(times: "exif")) == ["s": [1_767_859_512_000]])
  }

  @Test func filesWithoutATimeAreRefusedAlone() throws {
    let good = [(tag: Self.time, text: "2026:01:08 08:05:12"), (tag: Self.zone, text: "Z")]
    let path = try batch([
      ("a.jpg", good), ("b.jpg", nil), ("c.jpg", [(Self.zone, "Z")]),
      ("d.jpg", [(Self.time, "0000:00:00 00:00:00"), good[1]]),
      ("e.jpg", [(Self.time, "    :  :     :  :  "), good[1]]),
      ("f.jpg", [(Self.time, "2026:02:30 08:05:12"), good[1]]),
    ])
    let found = try BatchSessions(reading: path, options: options(times: "exif")).readers[0].batch
    #expect(found.frames.map(\.source) == ["a.jpg"])
    let reasons = Dictionary(uniqueKeysWithValues: found.refused.map { ($0.source, $0.reason) })
    #expect(
      reasons == [
        "b.jpg": "no EXIF data", "c.jpg": "no capture time (DateTimeOriginal) in its EXIF data",
        "d.jpg": "its EXIF data tell a time that does not exist",
        "e.jpg": "no capture time (DateTimeOriginal) in its EXIF data",
        "f.jpg": "its EXIF data tell a time that does not exist",
      ])
  }

  /// Scanners and old cameras write only these.
  @Test func otherTagsAreReadWithAWarningIfTheTimeOfTheCaptureIsMissing() throws {
    let path = try batch([
      ("a.jpg", [(Self.time, "2026:01:08 08:05:12"), (0x9004, "2026:01:08 08:05:50"), (Self.zone, "Z")]),
      ("b.jpg", [(0x9004, "2026:01:08 08:05:13"), (0x9012, "Z"), (0x9292, "5")]),
    ])
    // DateTime lies in the first directory.
    try scratch.file(
      lastComponent(of: path) + "/c.tif",
      [0x49, 0x49, 42, 0, 8, 0, 0, 0, 1, 0, 0x32, 1, 2, 0, 20, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0]
        + Array("2026:01:08 08:05:14\0".utf8))
    let found = try BatchSessions(reading: path, options: options(times: "exif", timeZone: "UTC")).readers[0].batch
    #expect(found.frames.map { $0.timeMs - 1_767_859_512_000 } == [0, 1_500, 2_000])
    #expect(found.frames.map { $0.note == nil } == [true, false, false])
    #expect(
      found.warnings.first?.hasPrefix(
        "2 of 3 files have no DateTimeOriginal in their EXIF data; read instead: 1 DateTime, 1 DateTimeDigitized")
        == true)
  }

  /// A burst: cameras without fractions number its pictures.
  @Test func picturesOfOneSecondAreInTheOrderOfTheirNumbers() throws {
    let texts = [(tag: Self.time, text: "2026:01:08 08:05:12"), (tag: Self.zone, text: "Z")]
    let path = try batch([("DSC_0001.JPG", texts), ("DSC_9999.JPG", texts), ("DSC_9998.JPG", texts)])
    let frames = try BatchSessions(reading: path, options: options(times: "exif")).readers[0].batch.frames
    #expect(frames.map(\.source) == ["DSC_9998.JPG", "DSC_9999.JPG", "DSC_0001.JPG"])
    #expect(frames.map { $0.timeMs - 1_767_859_512_000 } == [0, 333, 666])
  }

  @Test func brokenDataNeverTrap() throws {
    var random = Random(seed: 45)
    let tiff = OrientedImage.captureTIFF([
      (Self.time, "2026:01:08 09:05:12"), (Self.fraction, "1"), (Self.zone, "+01:00"),
    ])
    let jpeg = try Fixture("single-frame").bytes("1767859512340.jpg")
    for _ in 0..<5_000 {
      var broken = tiff
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        broken[Int.random(in: broken.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      if Bool.random(using: &random) { broken = Array(broken.prefix(Int.random(in: 0...broken.count, using: &random))) }
      let file = OrientedImage.file(jpeg, kind: "jpg", exif: broken, storedSize: (16, 16))
      let exif = ExifData(of: file, kind: .jpeg, jpeg: JPEGFile(file))
      for tag in [Self.time, Self.fraction, Self.zone] { _ = exif?.text(tag, in: .capture) }
      _ = exif?.short(0x0112, in: .image)
    }
  }
}
