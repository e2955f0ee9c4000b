import Foundation
import TestSupport
import Testing

/// The decoded picture equals the captured one in content, orientation and colours.
@Suite struct PictureTests {
  /// Compares the structural similarity of luma for each frame, as stock ffmpeg computes it.
  @Test(arguments: Fixture.all.filter { !["masks", "colour-bars"].contains($0.name) } + Fixture.corpus)
  func everyFrameMatchesItsCapture(fixture: Fixture) throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(fixture, into: scratch)
    for manifest in session.manifests {
      let packets = try Probe(session.video(manifest)).packets(of: 0).map(\.pts)
      let picked = try manifest.offsetsMs.map { try #require(packets.firstIndex(of: $0 * 90)) }
      let select = picked.map { "eq(n\\,\($0))" }.joined(separator: "+")
      let crop = "crop=\(manifest.width):\(manifest.height):0:0"
      var sources = Data()
      for frame in manifest.frames { sources.append(contentsOf: try fixture.bytes(frame.source)) }
      // The filter renumbers both streams, so ffmpeg compares the first frame with the first.
      let comparison = """
        [0:v]select='\(select)',scale=out_color_matrix=bt601:out_range=pc,format=yuvj420p,extractplanes=y,\(crop),settb=1,setpts=N[coded];\
        [1:v]extractplanes=y,settb=1,setpts=N[captured];[coded][captured]ssim=stats_file=-
        """
      let report = try Tool.run(
        "ffmpeg",
        [
          "-v", "error", "-i", session.video(manifest), "-f", "image2pipe", "-c:v", "mjpeg", "-i", "-",
          "-filter_complex", comparison, "-f", "null", "-",
        ], input: sources)
      #expect(report.status == 0, "\(report.errors)")
      let similarities = report.text.split(separator: "\n").compactMap { line in
        line.split(separator: " ").first { $0.hasPrefix("All:") }.flatMap { Double($0.dropFirst(4)) }
      }
      #expect(similarities.count == manifest.frames.count)
      for (frame, similarity) in zip(manifest.frames, similarities) {
        // Faint noise in flat areas is less than one level of the coded range.
        #expect(similarity >= 0.95, "\(frame.source): \(similarity)")
      }
    }
  }

  @Test func everyFixtureFrameShowsItsNumber() throws {
    for (fixture, numbers) in [
      ("exact-1fps", Array(0..<12)), ("rotation", Array(0..<8)), ("corrupt-frames", [0, 2, 4]),
      ("on-change", [0, 1, 2, 3]),
    ] {
      let scratch = try ScratchDirectory()
      let session = try EncoderWorker.encode(Fixture(fixture), into: scratch)
      var shown: [Int] = []
      for (manifest, pictures) in zip(session.manifests, try session.pictures()) {
        let packets = try Probe(session.video(manifest)).packets(of: 0).map(\.pts)
        #expect(pictures.count == packets.count)
        for (frame, offset) in zip(manifest.frames, manifest.offsetsMs) where frame.status == "captured" {
          shown.append(pictures[try #require(packets.firstIndex(of: offset * 90))].number)
        }
      }
      #expect(shown == numbers, "\(fixture)")
    }
  }

  @Test func coloursMatchTheCapture() throws {
    let scratch = try ScratchDirectory()
    let fixture = Fixture("colour-bars")
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let truth = try Pixels.decode(fixture.path + "/1767859512340.png", width: 256, height: 192)[0]
    let palette = try Pixels.decode(fixture.path + "/1767859516340.png", width: 256, height: 192)[0]
    let grey = try Pixels.decode(fixture.path + "/1767859517340.png", width: 256, height: 192)[0]
    var differences: [Double] = []
    for (manifest, pictures) in zip(session.manifests, try session.pictures()) {
      for (frame, picture) in zip(manifest.frames, pictures) {
        let wanted =
          switch frame.source.prefix(13) {
          case "1767859516340": palette
          case "1767859517340", "1767859518340": grey
          default: truth
          }
        differences.append(picture.difference(to: wanted))
      }
    }
    #expect(differences.count == 7)
    for difference in differences { #expect(difference <= 2, "\(differences)") }
  }

  @Test(arguments: [Fixture("odd-size")] + Fixture.corpus.filter { $0.name == "s07" })
  func oddSideIsCodedAsEvenWithARepeatedEdge(fixture: Fixture) throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let manifest = session.manifests[0]
    #expect(manifest.width % 2 == 1 && manifest.height % 2 == 1)
    if fixture.name == "s07" {
      #expect((manifest.width, manifest.height) == (491, 1_065))
      #expect((manifest.codedWidth, manifest.codedHeight) == (492, 1_066))
    }
    let picture = try Pixels.decode(
      session.video(manifest), width: manifest.codedWidth, height: manifest.codedHeight)[0]
    func mean(_ differences: [Int]) -> Double { Double(differences.reduce(0, +)) / Double(differences.count) }
    let column = (0..<manifest.height).map { y in
      abs(Int(picture[manifest.width, y][1]) - Int(picture[manifest.width - 1, y][1]))
    }
    let row = (0..<manifest.width).map { x in
      abs(Int(picture[x, manifest.height][1]) - Int(picture[x, manifest.height - 1][1]))
    }
    #expect(mean(column) < 6)
    #expect(mean(row) < 6)
  }

  @Test func rotationYieldsUnstretchedSegmentsOfBothSizes() throws {
    for fixture in [Fixture("rotation")] + Fixture.corpus.filter({ $0.name == "s08" }) {
      let scratch = try ScratchDirectory()
      let session = try EncoderWorker.encode(fixture, into: scratch)
      let sizes = Set(session.manifests.map { [$0.width, $0.height] })
      #expect(sizes.count == 2, "\(fixture)")
      #expect(Set(sizes.map { $0.sorted() }).count == 1, "\(fixture)")
    }
  }

  @Test func onlyMaskedPixelsAreBlack() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(Fixture("masks"), into: scratch)
    let manifest = session.manifests[0]
    #expect(manifest.frames.map { $0.note } == [nil, "blacked out: mask 0 is not a finite rectangle", nil])
    let pictures = try Pixels.decode(session.video(manifest), width: 180, height: 320)
    // The mask covers x 20 to 120.2 and y 200.5 to 240.5, rounded outwards to whole pixels. The codec causes slight
    // ringing at its edge.
    for y in 200..<241 { for x in 20..<121 { #expect(pictures[0][x, y].allSatisfy { $0 <= 40 }) } }
    for y in 204..<237 { for x in 24..<117 { #expect(pictures[0][x, y].allSatisfy { $0 <= 8 }) } }
    #expect(pictures[1].bytes.allSatisfy { $0 <= 8 })
    let source = try Pixels.decode(Fixture("masks").path + "/0000.jpg", width: 180, height: 320)[0]
    for y in stride(from: 0, to: 320, by: 4) {
      for x in stride(from: 0, to: 180, by: 4) where !(12..<129).contains(x) || !(192..<249).contains(y) {
        #expect(zip(pictures[0][x, y], source[x, y]).allSatisfy { abs(Int($0) - Int($1)) < 60 })
      }
    }
    #expect(pictures[2].number == 2)
  }

  /// Transparent pixels show the background: black, or a colour.
  @Test(
    arguments: [(nil, [128, 0, 0], [0, 0, 0]), ("#204060", [144, 32, 48], [32, 64, 96])] as [(String?, [Int], [Int])])
  func transparentPixelsShowTheBackground(background: String?, half: [Int], clear: [Int]) throws {
    let scratch = try ScratchDirectory()
    _ = try scratch.directory("batch")
    // The left half is half-transparent red; the right half is fully transparent.
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "color=red@0.5:64x64,format=rgba", "-f", "lavfi", "-i",
        "color=red@0:64x64,format=rgba",
        "-filter_complex", "hstack", "-frames:v", "1", scratch.path("batch/1767859512340.png"),
      ])
    let options = background.map { ["--background", $0] } ?? []
    let result = try Tool.run(
      EncoderWorker.path,
      ["encode", scratch.path("batch"), "--output", scratch.path("output"), "--quality", "sharp"] + options)
    try #require(result.status == 0, "\(result.errors)")
    let picture = try Pixels.decode(
      scratch.path("output/batch/segment-1767859512340.mp4"), width: 128, height: 64)[0]
    for (x, wanted) in [(24, half), (104, clear)] {
      #expect(zip(picture[x, 32], wanted).allSatisfy { abs(Int($0) - $1) <= 6 }, "\(x): \(picture[x, 32])")
    }
    #expect(try EncoderWorker.run("encode", scratch.path("batch"), "--output", "x", "--background", "red").status == 64)
  }

  /// Greys of 1, 2 and 4 bits: squares of 4 × 4 pixels, black first. The white squares are transparent; in the last
  /// file the black ones are. The transparent value is 255, of which a sample has only the low bits, then 15 and 0
  /// (ISO/IEC 15948, 11.3.2.1).
  @Test(
    arguments: [
      (
        1, [0, 255, 91, 145, 34, 181], [55, 136, 194, 204],
        [99, 224, 231, 103, 128, 163, 15, 31, 16, 8, 135, 56, 0, 42, 95, 15, 241], [137, 61, 27, 128], false
      ),
      (
        2, [0, 255, 91, 145, 34, 181], [112, 40, 184, 28],
        [99, 96, 248, 15, 132, 104, 4, 22, 33, 12, 62, 14, 117, 0, 251, 140, 31, 225], [183, 91, 61, 47], false
      ),
      (
        4, [0, 15, 230, 44, 208, 169], [255, 104, 77, 188],
        [99, 96, 96, 248, 255, 31, 130, 113, 51, 8, 171, 96, 192, 47, 73, 188, 57, 0, 239, 143, 63, 193],
        [77, 62, 158, 9], false
      ),
      (
        1, [0, 0, 118, 147, 205, 56], [55, 136, 194, 204],
        [99, 224, 231, 103, 128, 163, 15, 31, 16, 8, 135, 56, 0, 42, 95, 15, 241], [137, 61, 27, 128], true
      ),
    ] as [(UInt8, [UInt8], [UInt8], [UInt8], [UInt8], Bool)])
  func transparentGreyShowsTheBackground(
    depth: UInt8, key: [UInt8], headSum: [UInt8], pixels: [UInt8], pixelSum: [UInt8], isBlack: Bool
  ) throws {
    let scratch = try ScratchDirectory()
    _ = try scratch.directory("batch")
    let head: [UInt8] = [0, 0, 0, 16, 0, 0, 0, 16, depth, 0, 0, 0, 0] + headSum
    let data = [120, 156] + pixels
    let file =
      [137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13] + Array("IHDR".utf8) + head + [0, 0, 0, 2] + Array("tRNS".utf8)
      + key
      + [0, 0, 0, UInt8(data.count)] + Array("IDAT".utf8) + data + pixelSum + [0, 0, 0, 0] + Array("IEND".utf8)
      + [174, 66, 96, 130]
    try scratch.file("batch/1767859512340.png", file)
    let result = try EncoderWorker.run(
      "encode", scratch.path("batch"), "--output", scratch.path("output"), "--quality", "sharp", "--background",
      "808080")
    try #require(result.status == 0, "\(result.errors)")
    let picture = try Pixels.decode(
      scratch.path("output/batch/segment-1767859512340.mp4"), width: 16, height: 16)[0]
    for (x, wanted) in [(2, isBlack ? 128 : 0), (6, isBlack ? 255 : 128)] {
      #expect(picture[x, 2].allSatisfy { abs(Int($0) - wanted) <= 12 }, "\(x): \(picture[x, 2])")
    }
  }
}
