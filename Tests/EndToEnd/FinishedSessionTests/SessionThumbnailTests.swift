import Encoding
import Foundation
import FrameBatches
import Sessions
import Showing
import TestSupport
import Testing

/// Thumbnails of a session, one at a time.
@Suite struct SessionThumbnailTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func thumbnail(_ name: String, at startMs: Int64? = nil, side: Int = 320) throws -> [UInt8]? {
    let session = try #require(SessionID(name))
    return try SessionThumbnail.jpeg(output: scratch.path("output"), session: session, startMs: startMs, side: side)
  }

  private func picture(_ jpeg: [UInt8]) throws -> Pixels {
    let file = try scratch.file("thumbnail.jpg", jpeg)
    let probe = try ImageProbe(file)
    #expect(probe.codec == "mjpeg")
    #expect(probe.pixelFormat == "yuvj420p")
    return try probe.pixels()
  }

  @Test func thumbnailIsTheFirstPictureOfTheSessionOrSegment() throws {
    let session = try EncoderWorker.encode(Fixture("jittered"), into: scratch)
    let first = try picture(try #require(try thumbnail("jittered")))
    #expect(first.number == 0)
    var number = 0
    for manifest in session.manifests {
      #expect(try picture(try #require(try thumbnail("jittered", at: manifest.startMs))).number == number)
      number += manifest.frames.count
    }
    #expect(number > 1)
  }

  @Test(arguments: ["rotation", "odd-size"])
  func thumbnailFitsAndKeepsItsProportions(fixture: String) throws {
    let session = try EncoderWorker.encode(Fixture(fixture), into: scratch)
    for manifest in session.manifests {
      for side in [40, 100, 4_000] {
        let small = try picture(try #require(try thumbnail(fixture, at: manifest.startMs, side: side)))
        let (width, height) = (manifest.width, manifest.height)
        let scale = min(1, Double(side) / Double(max(width, height)))
        #expect(max(small.width, small.height) == min(side, max(width, height)))
        #expect(abs(Double(small.width) - scale * Double(width)) <= 0.5)
        #expect(abs(Double(small.height) - scale * Double(height)) <= 0.5)
      }
    }
  }

  /// The input and the output are full range and BT.601; any other reading changes the colours visibly.
  @Test func thumbnailHasTheColoursOfTheVideo() throws {
    let session = try EncoderWorker.encode(Fixture("colour-bars"), into: scratch)
    let manifest = session.manifests[0]
    let (width, height) = (manifest.codedWidth, manifest.codedHeight)
    let film = try Pixels.decode(session.video(manifest), width: width, height: height)[0]
    let small = try picture(try #require(try thumbnail("colour-bars", side: 4_000)))
    #expect((small.width, small.height) == (manifest.width, manifest.height))
    #expect((width, height) == (manifest.width, manifest.height))
    #expect(small.difference(to: film) < 1)
  }

  @Test func samePictureGivesTheSameBytesWithoutAVersion() throws {
    _ = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let jpeg = try #require(try thumbnail("gap"))
    #expect(try thumbnail("gap") == jpeg)
    #expect(!String(decoding: jpeg, as: UTF8.self).contains("Lavc"))
  }

  @Test func missingEntryHasNoStamp() throws {
    _ = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    #expect(try thumbnail("nobody") == nil)
    #expect(try thumbnail("gap", at: 1_767_859_512_341) == nil)
    _ = try scratch.directory("output/empty")
    #expect(try thumbnail("empty") == nil)
  }

  @Test func damagedSegmentHasNoThumbnail() throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let file = session.video(session.manifests[0])
    var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    bytes[bytes.count - 10] ^= 1
    try bytes.write(to: URL(fileURLWithPath: file))
    #expect(throws: BadSession.self) { try thumbnail("gap") }
    try FileManager.default.removeItem(atPath: file)
    #expect(throws: BadSession.self) { try thumbnail("gap") }
  }
}
