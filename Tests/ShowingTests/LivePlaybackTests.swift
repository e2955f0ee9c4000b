import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions
@testable import Showing

/// The playlist that a server makes of a session that goes on.
@Suite struct LivePlaybackTests {
  private let package: GrowingPackage
  private let catalog: SessionCatalog

  init() throws {
    package = try GrowingPackage()
    _ = try package.scratch.directory("output")
    catalog = try SessionCatalog(of: package.output)
  }

  private func publish(_ seconds: Range<Int>, _ views: SessionViews = SessionViews()) throws {
    try package.publish(seconds, views)
    // By the session's clock: a segment is published when it ends.
    try package.dateNewSegments()
  }

  private func playback(at second: Int) throws -> SessionPlayback {
    try #require(
      try catalog.playback(of: package.session, nowMs: GrowingPackage.startMs + Int64(second) * 1_000))
  }

  private func text(at second: Int) throws -> String {
    let playback = try playback(at: second)
    if let kept = try catalog.keptPlaylist(named: "session.m3u8", of: playback) {
      return String(decoding: kept.text, as: UTF8.self)
    }
    return String(decoding: playback.playlist, as: UTF8.self)
  }

  /// Writes the playlists and their files, and returns the faults.
  private func faults(of playback: SessionPlayback) throws -> [String] {
    let directory = try package.scratch.directory("served-\(UUID().uuidString)")
    func put(_ name: String, _ bytes: [UInt8]?) throws {
      try Data(try #require(bytes, "\(name)")).write(to: URL(fileURLWithPath: directory + "/" + name))
    }
    try put("session.m3u8", playback.playlist)
    for name in [HLSViews.keyFramesFile, HLSViews.multivariantFile] { try put(name, playback.playlist(named: name)) }
    for name in HLSPlaylist.files(in: playback.playlist) {
      try put(
        name, playback.fragment(named: name) ?? playback.initialization(named: name) ?? playback.captions(named: name))
    }
    if let captions = try playback.playlist(named: "captions.m3u8") { try put("captions.m3u8", captions) }
    return try Conformance.faults(ofPlaylistsIn: directory)
  }

  /// The server has the captions of the worker's playlist, file by file.
  @Test func captionsAreThoseOfTheWorker() throws {
    let views = package.views()
    try package.publish(0..<10, steps: [500: "a", 4_900: "goes on"], views)
    try package.publish(10..<20, steps: [11_000: "b"], views)
    try package.dateNewSegments()
    let playback = try playback(at: 90)
    #expect(try faults(of: playback) == [])
    let kept = try #require(try catalog.keptPlaylist(named: "captions.m3u8", of: playback)).text
    #expect(try playback.playlist(named: "captions.m3u8") == kept)
    let names = String(decoding: kept, as: UTF8.self).split(separator: "\n").filter { $0.hasSuffix(".vtt") }
    #expect(Set(names).count == 4)
    for name in names {
      let file = package.output + "/walk/hls/\(name)"
      #expect(try playback.captions(named: String(name)) == Array(Data(contentsOf: URL(fileURLWithPath: file))))
    }
    #expect(playback.captions(named: "captions-1.vtt") == nil)
  }

  @Test func playlistWithoutLabelsHasNoCaptions() throws {
    try publish(0..<10)
    let playback = try playback(at: 60)
    #expect(try playback.playlist(named: "captions.m3u8") == nil)
    #expect(playback.captions(named: "captions-none.vtt") == nil)
    let multivariant = try #require(try playback.playlist(named: "multivariant.m3u8"))
    #expect(!String(decoding: multivariant, as: UTF8.self).contains("MEDIA"))
  }

  @Test func playlistGrowsUntilTheEndAndKeepsItsFiles() throws {
    try publish(0..<4)
    // The next batch tells how long the last picture is shown.
    #expect(try playback(at: 5).playlist.isEmpty)
    var seen = ""
    var fragments: Set<String> = []
    for (seconds, count) in [(4..<8, 1), (8..<18, 3), (18..<20, 4)] {
      try publish(seconds)
      let playback = try playback(at: seconds.upperBound)
      let text = String(decoding: playback.playlist, as: UTF8.self)
      #expect(text.hasPrefix(seen) && text.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n") && !text.contains("ENDLIST"))
      #expect(HLSPlaylist.starts(in: playback.playlist).count == count, "\(seconds)")
      #expect(try faults(of: playback) == [])
      seen = text
      // A page has the names of the timeline, too.
      let timeline = String(decoding: playback.timeline, as: UTF8.self)
      fragments.formUnion(timeline.matches(of: /"fragment":"([^"]+)"/).map { String($0.1) })
      fragments.formUnion(HLSPlaylist.files(in: playback.playlist).filter { $0.hasSuffix(".m4s") })
      for name in fragments { #expect(try playback.fragment(named: name) != nil, "\(name) at \(seconds)") }
    }
    // After some time the last segment is listed, and players learn the end when it is recorded.
    let rest = try text(at: 120)
    #expect(
      rest.hasPrefix(seen) && rest.contains("segment-\(GrowingPackage.startMs + 18_000)-") && !rest.contains("ENDLIST"))
    let directory = SessionDirectory(output: package.output, session: try package.session)
    let staging = try package.staging()
    _ = try SessionViews().record(
      SessionEnd(package.session, .request, endedMs: 1), staging.temporaryFile(), in: directory)
    staging.remove()
    #expect(try text(at: 121) == rest + "#EXT-X-ENDLIST\n")
  }

  @Test func quietSessionHasAnEnd() throws {
    try publish(0..<4)
    let open = try text(at: 3_603)
    #expect(!open.isEmpty && !open.contains("ENDLIST"))
    #expect(try text(at: 3_604) == open + "#EXT-X-ENDLIST\n")
  }

  /// A worker's playlist is the one that `serve` has: also after batches that it listed by its own clock.
  @Test func keptPlaylistIsServedAsItIs() throws {
    let views = package.views()
    let path = package.output + "/walk/hls/session.m3u8"
    for seconds in [0..<4, 4..<8, 9..<12] {
      try publish(seconds, views)
      let text = try text(at: seconds.upperBound)
      #expect(try text == String(contentsOfFile: path, encoding: .utf8))
      #expect(try text != String(decoding: playback(at: seconds.upperBound).playlist, as: UTF8.self))
    }
    for name in try package.files() where !name.hasSuffix("m3u8") {
      #expect(try catalog.file(name, of: package.session) != nil, "\(name)")
    }
    let kept = try String(contentsOfFile: path, encoding: .utf8)
    #expect(try text(at: 3_611) == kept)
    #expect(try text(at: 3_612) == kept + "#EXT-X-ENDLIST\n")
    let playback = try playback(at: 3_612)
    let keyFrames = try #require(try catalog.keptPlaylist(named: "iframes.m3u8", of: playback))
    #expect(String(decoding: keyFrames.text, as: UTF8.self).hasSuffix("#EXT-X-ENDLIST\n"))
    // No worker kept it for the last segment.
    try publish(12..<14)
    try String(kept).write(toFile: path, atomically: true, encoding: .utf8)
    #expect(try text(at: 15) == kept)
    #expect(try text(at: 9_999).contains("segment-\(GrowingPackage.startMs + 12_000)-"))
  }

  /// Anybody may write a file into an output that is shared.
  @Test func playlistOfAnotherSessionIsNotServed() throws {
    try publish(0..<4, package.views())
    let path = package.output + "/walk/hls/session.m3u8"
    let other = try String(contentsOfFile: path, encoding: .utf8).replacing("# session walk", with: "# session other")
    try other.write(toFile: path, atomically: true, encoding: .utf8)
    #expect(try text(at: 60) != other)
  }
}
