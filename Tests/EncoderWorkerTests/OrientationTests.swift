import Foundation
import TestSupport
import Testing

/// Pictures come out as they are to be shown, whatever way they are stored.
@Suite struct OrientationTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// For each of EXIF's values, how stock ffmpeg makes the stored picture of the upright one.
  static let storing = [
    "null", "hflip", "hflip,vflip", "vflip", "transpose=0", "transpose=2", "transpose=3", "transpose=1",
  ]

  @Test(arguments: ["jpg", "png", "webp"], 1...8)
  func picturesAreShownUpright(kind: String, tag: Int) throws {
    let upright = Fixture("exact-1fps").path + "/0006.jpg"
    let stored = scratch.path("stored." + kind)
    let options = kind == "jpg" ? ["-q:v", "1"] : kind == "webp" ? ["-lossless", "0", "-quality", "100"] : []
    try Tool.output(
      "ffmpeg",
      ["-v", "error", "-y", "-i", upright, "-vf", Self.storing[tag - 1], "-map_metadata", "-1"] + options + [stored])
    let file = Array(try Data(contentsOf: URL(fileURLWithPath: stored)))
    _ = try scratch.directory("batch")
    try scratch.file(
      "batch/1767859512340.\(kind)", OrientedImage.file(file, kind: kind, tag: tag, width: 180, height: 320))
    // A mask is said of the picture as it is shown: over the title bar's right half.
    let mask = #"{"x":90,"y":0,"width":90,"height":40}"#
    try scratch.file(
      "batch/batch.json",
      Array(
        #"{"version":1,"frames":[{"file":"1767859512340.\#(kind)","masks":[\#(mask)]}]}"#.utf8))
    let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output"))
    try #require(result.status == 0, "\(result.errors)")
    let manifest = try PublishedSession(scratch.path("output/batch")).manifests[0]
    #expect((manifest.width, manifest.height) == (180, 320))
    let picture = try Pixels.decode(
      scratch.path("output/batch/segment-1767859512340.mp4"), width: 180, height: 320)[0]
    #expect(picture.number == 6)
    #expect(picture[100, 20].allSatisfy { $0 < 20 } && picture[170, 5].allSatisfy { $0 < 20 })
    #expect(zip(picture[4, 4], [38, 78, 140]).allSatisfy { abs(Int($0) - $1) < 12 }, "\(picture[4, 4])")
    #expect(picture[170, 310].allSatisfy { $0 > 225 })
  }

  /// What is broken in EXIF says nothing, and stops nothing.
  @Test func brokenEXIFSaysNothing() throws {
    let file = try Fixture("exact-1fps").bytes("0003.jpg")
    let good = OrientedImage.file(file, kind: "jpg", tag: 6, width: 180, height: 320)
    _ = try scratch.directory("walk")
    for (number, cut) in [2, 12, 20, 26, 30].enumerated() {
      var bytes = good
      bytes[6 + cut] = 0xFF
      try scratch.file("walk/\(1_767_859_512_340 + number * 1_000).jpg", bytes)
    }
    #expect(try EncoderWorker.run("encode", scratch.path("walk"), "--output", scratch.path("output")).status == 0)
    let session = try PublishedSession(scratch.path("output/walk"))
    #expect(session.captured.count == 5)
  }
}
