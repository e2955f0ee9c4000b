// Imported without @testable, because an embedding server sees only the public API.
import Foundation
import SegmentEncoder
import TestSupport
import Testing

/// A server that uses the public API only. Articles of the documentation have parts of this code.
@Suite struct EmbeddingTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test func aServerTakesBatchesInAndShowsThem() throws {
    let output = try OutputDirectory(scratch.path("replay"))
    let encoder = BatchEncoder(output: output)

    let receipt = try encoder.publish(Fixture("jittered").path, session: "9f0c2a")[0]
    #expect(!receipt.duplicate && receipt.frames == 11)
    #expect(try encoder.publish(Fixture("jittered").path, session: "9f0c2a").duplicate)

    let bad = try scratch.file("upload", Array("no batch".utf8))
    do {
      _ = try encoder.publish(bad, session: "9f0c2a")
      Issue.record("a text file was published")
    } catch {
      guard case .quarantine(let reason) = Disposition(of: error, batch: bad) else {
        Issue.record("\(error)")
        return
      }
      #expect("\(reason)".contains("no known format"))
    }
    #expect(output.close().isEmpty)

    let catalog = try SessionCatalog(of: output.path)
    let summaries = try catalog.sessions()
    #expect(summaries.map(\.session.description) == ["9f0c2a"] && summaries[0].frames == 11)
    let session = try #require(SessionID("9f0c2a"))
    let playback = try #require(try catalog.playback(of: session))
    let playlist = String(decoding: playback.playlist, as: UTF8.self)
    let names = playlist.split(separator: "\n").compactMap { line -> String? in
      line.hasPrefix("#EXT-X-MAP:URI=")
        ? String(line.split(separator: "\"")[1]) : line.hasPrefix("#") ? nil : String(line)
    }
    // One initialization; the last segment waits for the next batch.
    #expect(names.count == receipt.segments)
    for name in names {
      let found = try playback.fragment(named: name) ?? playback.initialization(named: name)
      try scratch.file(name, #require(found))
    }
    // Stock ffmpeg reads the response; it would wait for the end of a session that goes on.
    #expect(playlist.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n") && !playlist.contains("#EXT-X-ENDLIST"))
    try scratch.file("session.m3u8", playback.playlist + Array("#EXT-X-ENDLIST\n".utf8))
    let probe = try Tool.output(
      "ffprobe",
      [
        "-v", "error", "-allowed_extensions", "ALL", "-count_packets", "-select_streams", "v", "-show_entries",
        "stream=nb_read_packets", "-of", "csv=p=0", scratch.path("session.m3u8"),
      ])
    #expect((Int(String(decoding: probe, as: UTF8.self).prefix { $0.isNumber }) ?? 0) >= 10)
    #expect(try playback.thumbnail()?.starts(with: [0xFF, 0xD8]) == true)
    #expect(try playback.fragment(named: "../session.json") == nil)
    #expect(try playback.initialization(named: "session.json") == nil)
    #expect(try catalog.playback(of: #require(SessionID("nobody"))) == nil)
    let film = try playback.film(in: scratch.path)
    let bytes = try FileHandle(fileDescriptor: film.descriptor, closeOnDealloc: false).readToEnd()
    try scratch.file("film.mp4", Array(#require(bytes)))
    #expect(bytes?.count == film.size)
    #expect(try Probe(scratch.path("film.mp4")).packets(of: 0).count >= 11)
  }

  /// The code of the article "Hide parts of a picture".
  @Test func aMaskHidesItsPartAndNothingElse() throws {
    let picture = [UInt8](try Data(contentsOf: URL(fileURLWithPath: Fixture("exact-1fps").path + "/0000.jpg")))

    let name = Mask(x: 0, y: 0, width: 180, height: 40)
    let frame = CapturedFrame(image: picture, timeMs: 1_767_859_512_340, masks: [name])

    var encoder = try FrameEncoder(session: #require(SessionID("lobby")))
    var segments = try encoder.append(frame)
    segments += try encoder.finish()
    let segment = try #require(segments.first)
    let video = try scratch.file(segment.videoName, segment.video)
    let luma = [UInt8](
      try Tool.output(
        "ffmpeg", ["-v", "error", "-i", video, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "gray", "-"]))
    try #require(luma.count == segment.width * segment.height && segment.width == 180)
    #expect(luma[..<(180 * 36)].allSatisfy { $0 < 24 })
    #expect(luma[(180 * 44)...].contains { $0 > 64 })
  }
}
