import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

@Suite struct VideoFormatTests {
  private static let packets = [UInt8](repeating: 0, count: 187)

  @Test(
    arguments: [
      ([0, 0, 0, 24] + Array("ftypisom".utf8), .mp4), ([0, 0, 0, 20] + Array("ftypqt  ".utf8), .quickTime),
      ([0, 0, 0, 8] + Array("wide".utf8), .quickTime),
      ([0x1A, 0x45, 0xDF, 0xA3, 0x9F, 0x42, 0x82, 0x84] + Array("webm".utf8), .webM),
      ([0x1A, 0x45, 0xDF, 0xA3, 0xA3, 0x42, 0x82, 0x88] + Array("matroska".utf8), .matroska),
      (Array("RIFF\0\0\0\0AVI LIST".utf8), .avi), (Array("FLV\u{1}".utf8), .flash), (Array("OggS".utf8), .ogg),
      ([0x47] + packets + [0x47] + packets + [0x47] + packets, .transportStream),
      ([0, 0, 1, 0xBA, 0x44], .programStream),
      ([0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11], .windowsMedia), ([0, 0, 0, 1, 0x67, 0x64], .rawH264),
      (Array("DKIF".utf8), .ivf), (Array("YUV4MPEG2 W320".utf8), .yuv4MPEG),
    ] as [([UInt8], VideoFormat)])
  func formatIsKnownByItsFirstBytes(start: [UInt8], format: VideoFormat) {
    guard case .video(let found)? = FileKind(of: start) else {
      Issue.record("\(format): no video")
      return
    }
    #expect(found == format)
  }

  @Test(arguments: ["ftypheic", "ftypavif"]) func picturesInBoxesAreNoVideos(brand: String) {
    guard case .image? = FileKind(of: [0, 0, 0, 24] + Array(brand.utf8)) else {
      Issue.record("\(brand): no image")
      return
    }
  }

  /// The words are those that a shell reads as the paths.
  @Test func commandsNameTheFileAsTheUserDid() {
    #expect(
      VideoFormat.webM.advice(for: "my videos/a.b.webm").hasSuffix(
        " ffmpeg -i 'my videos/a.b.webm' -vf 'pad=ceil(iw/2)*2:ceil(ih/2)*2' -c:v libx264 -pix_fmt yuv420p 'my videos/a.b.mp4'"
      ))
    #expect(VideoFormat.avi.advice(for: "-x.avi").hasSuffix(" ./-x.mp4"))
    #expect(VideoFormat.conversion(of: "a.mp4").hasSuffix(" a-h264.mp4"))
    #expect(
      VideoFormat.mp4.advice(joining: ["/a.mp4", "b c.mp4"]).hasSuffix(
        #" <(printf "file '%s'\n" /a.mp4 "$PWD"/'b c.mp4') -c copy joined.mp4"#))
  }

  @Test func folderOfVideosLeadsToOneVideoOrIsABatch() throws {
    let scratch = try ScratchDirectory()
    func advice(_ names: [String], _ start: [UInt8]) throws -> (cause: String, advice: String) {
      let folder = try scratch.directory("videos")
      for name in names { try scratch.file("videos/" + name, start) }
      let bad = #expect(throws: BadBatch.self) { try BatchReader(reading: folder) }
      try FileManager.default.removeItem(atPath: folder)
      return (bad?.cause ?? "", bad?.advice.replacing(folder.shellWord, with: "/videos") ?? "")
    }
    let mp4 = [0, 0, 0, 24] + Array("ftypisom".utf8)
    let parts = try advice(["part-0.mp4", "part-1.mp4"], mp4)
    #expect(parts.cause == "no known format: 'part-0.mp4' is an MP4 video (2 files end in .mp4)")
    #expect(parts.advice.hasSuffix(#"-i <(printf "file '%s'\n" /videos/*.mp4) -c copy joined.mp4"#), "\(parts.advice)")
    #expect(parts.advice.hasPrefix("if these are finished segments, name each <unix ms of its first picture>.mp4"))
    let folder = try scratch.directory("timed")
    for name in ["1767859512340.mp4", "1767859517340.mp4"] { try scratch.file("timed/" + name, mp4) }
    let timed = try BatchReader(reading: folder)
    #expect(timed.format == FinishedSegmentsFormat.name)
    #expect(timed.batch.frames.map(\.timeMs) == [1_767_859_512_340, 1_767_859_517_340])
    let recordings = try advice(["a.webm", "b.webm"], [0x1A, 0x45, 0xDF, 0xA3] + Array("webm".utf8))
    #expect(recordings.cause.hasSuffix("'a.webm' is a WebM video (2 files end in .webm)"))
    #expect(recordings.advice.contains("/videos/*.webm) -vf 'pad="), "\(recordings.advice)")
  }
}
