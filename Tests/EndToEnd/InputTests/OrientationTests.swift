import Foundation
import TestSupport
import Testing

/// Pictures are shown upright, whatever their stored orientation.
@Suite struct OrientationTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test(arguments: ["jpg", "png", "webp"])
  func picturesAreShownUpright(kind: String) throws {
    let upright = Fixture("exact-1fps").path + "/0006.jpg"
    _ = try scratch.directory("batch")
    // Masks use the coordinates of the upright picture: this one covers the title bar's right half.
    let mask = #"{"x":90,"y":0,"width":90,"height":40}"#
    var frames: [String] = []
    for (index, file) in try OrientedImage.stored(Array(repeating: upright, count: 8), kind: kind).enumerated() {
      let (name, timeMs) = ("\(index + 1).\(kind)", 1_767_859_512_340 + index * 1_000)
      try scratch.file(
        "batch/" + name, OrientedImage.file(file, kind: kind, tag: index + 1, width: 180, height: 320))
      frames.append(#"{"file":"\#(name)","timeMs":\#(timeMs),"masks":[\#(mask)]}"#)
    }
    try scratch.file(
      "batch/batch.json", Array(#"{"version":1,"frames":[\#(frames.joined(separator: ","))]}"#.utf8))
    let result = try EncoderWorker.run("encode", scratch.path("batch"), "--output", scratch.path("output"))
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("output/batch"))
    #expect(session.manifests.allSatisfy { ($0.width, $0.height) == (180, 320) })
    let pictures = try session.pictures().flatMap { $0 }
    try #require(pictures.count == 8)
    for (index, picture) in pictures.enumerated() {
      let what = "\(kind), orientation \(index + 1)"
      #expect(picture.number == 6, "\(what)")
      #expect(picture[100, 20].allSatisfy { $0 < 20 } && picture[170, 5].allSatisfy { $0 < 20 }, "\(what)")
      #expect(zip(picture[4, 4], [38, 78, 140]).allSatisfy { abs(Int($0) - $1) < 12 }, "\(what): \(picture[4, 4])")
      #expect(picture[170, 310].allSatisfy { $0 > 225 }, "\(what)")
    }
  }

  /// The worker ignores broken EXIF data.
  @Test func brokenEXIFIsIgnored() throws {
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
