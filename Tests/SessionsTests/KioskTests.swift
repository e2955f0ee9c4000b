import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import ISOMedia
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions
@testable import Showing

/// A recorder that never pauses, hour by hour for ten days, with a retention of seven days.
@Suite struct KioskTests {
  private static let hourMs: Int64 = 3_600_000

  private let package: GrowingPackage
  private let session: SessionDirectory

  init() throws {
    package = try GrowingPackage()
    session = SessionDirectory(output: package.output, session: try package.session)
  }

  /// Writes the batch of an hour: six pictures, each shown for ten minutes.
  private func batch(_ hour: Int) throws -> String {
    let path = try package.scratch.directory("walk@\(hour)")
    let startMs = GrowingPackage.startMs + Int64(hour) * Self.hourMs
    var frames: [String] = []
    for number in 0..<6 {
      try FileManager.default.copyItem(
        atPath: Fixture("rotation").path + "/000\((hour + number) % 3).jpg", toPath: "\(path)/\(number).jpg")
      frames.append(#"{"file":"\#(number).jpg","timeMs":\#(startMs + Int64(number) * 600_000)}"#)
    }
    let json = """
      {"version":1,"session":"walk","intervalMs":600000,"endMs":\(startMs + Self.hourMs),"capture":"onChange",\
      "frames":[\(frames.joined(separator: ","))]}
      """
    try Data(json.utf8).write(to: URL(fileURLWithPath: path + "/batch.json"))
    return path
  }

  /// The bytes of files that a player may have been told to fetch, by their names.
  private struct Reader {
    var known: [String: Data] = [:]

    /// Fetches some files of a playlist: those it knows have the bytes from before, or are gone.
    mutating func fetch(_ names: some Sequence<String>, in directory: String) throws {
      for name in names {
        guard let bytes = FileManager.default.contents(atPath: directory + "/" + name) else { continue }
        let digest = Data(SHA256.hex(of: [UInt8](bytes)).utf8)
        #expect(known[name] ?? digest == digest, "\(name)")
        known[name] = digest
      }
    }
  }

  @Test func playlistAndPageShowTheLastSevenDaysAtEveryHour() throws {
    let views = SessionViews(
      [.hls, .thumbnails], isWindow: true, clock: { [package] in package.nowMs },
      wallClock: { [package] in package.unixMs })
    let staging = try package.staging()
    var options = BatchEncoder.Options()
    options.segmentMs = 600_000
    let encoder = BatchEncoder(options, staging: staging, index: views)
    let retention = RollingRetention(
      RetentionLimits(ageMs: 7 * 24 * Self.hourMs), output: package.output, views: views,
      temporary: { staging.temporaryFile() })
    let catalog = try SessionCatalog(of: package.output)
    var all: [PublishedSegment] = []
    var reader = Reader()
    var old: [String] = []
    var sequence = HLSPlaylist.Sequence()
    var removed = 0
    for hour in 0..<240 {
      package.pass(ms: Int(Self.hourMs))
      let path = try batch(hour)
      let published = try encoder.publish(path)[0].published
      package.date(published)
      all += published
      try FileManager.default.removeItem(atPath: path)
      #expect(views.flushPending(staging, all: true).isEmpty)
      // A player still has the playlist from before.
      try reader.fetch(old, in: session.path + "/hls")
      // Between its fork and its exec, a program that another test starts has a copy of a lock that this process holds.
      for _ in 0..<100 {
        let report = retention.run(nowMs: package.unixMs)
        #expect(report.failures.isEmpty, "\(report.failures)")
        removed += report.segments
        if report.held.isEmpty { break }
        usleep(50_000)
      }
      try reader.fetch(old, in: session.path + "/hls")

      let kept = all.filter { $0.endMs > package.unixMs - 7 * 24 * Self.hourMs }
      #expect(kept.count == min(6 * (hour + 1), 7 * 24 * 6), "hour \(hour)")
      let index = try #require(SessionIndex(session: session.session, segments: kept))
      #expect(index.gaps.isEmpty && index.endMs == package.unixMs)
      for (name, bytes) in IndexText(index).files {
        #expect(try DurableFile.contents(of: session.path + "/" + name, limit: .max) == bytes, "hour \(hour): \(name)")
      }
      let playlist = try #require(try DurableFile.contents(of: session.path + "/hls/session.m3u8", limit: .max))
      #expect(HLSPlaylist.starts(in: playlist) == kept.map(\.startMs), "hour \(hour)")
      let now = HLSPlaylist.sequence(of: playlist)
      #expect(now.media == Int64(all.count - kept.count) && now.media >= sequence.media, "hour \(hour)")
      sequence = now
      let page = try #require(try catalog.playback(of: session.session))
      #expect(page.problems.isEmpty && page.segments.map(\.startMs) == kept.map(\.startMs), "hour \(hour)")
      let timeline = try JSONParser.parse(page.timeline)
      #expect(timeline.object?["startMs"]?.integer == kept[0].startMs && timeline.object?["gaps"]?.array == [])
      // The first and the last entries, at every hour.
      let named = HLSPlaylist.starts(in: playlist).isEmpty ? [] : HLSPlaylist.files(in: playlist).sorted()
      old = Array(named.prefix(12) + named.suffix(12))
      try reader.fetch(old, in: session.path + "/hls")
      if hour % Extent.of(60, full: 1) == 59 % Extent.of(60, full: 1) {
        #expect(try Verification.report(on: session.path).problems == [], "hour \(hour)")
      }
    }
    #expect(removed == 3 * 24 * 6 && sequence == HLSPlaylist.Sequence(media: Int64(removed)))
    #expect(try Conformance.faults(ofPlaylistsIn: session.path + "/hls", isWindow: true) == [])
    // An instant that was removed is no picture, with a reason.
    let gone = SessionInstant.unixMs(GrowingPackage.startMs)
    let nothing = #expect(throws: NothingOnScreen.self) { try catalog.frame(of: session.session, at: gone) }
    let bounds = "the session is from \((package.unixMs - 7 * 24 * Self.hourMs).instantText())"
    #expect(nothing.map { "\($0)".contains(bounds) } == true)
    // Stock ffmpeg reads what is left as one film of seven days.
    let probe = try Tool.output(
      "ffprobe",
      [
        "-v", "error", "-f", "concat", "-safe", "0", "-i", session.path + "/session.ffconcat", "-show_entries",
        "format=duration", "-of", "csv=p=0",
      ])
    let duration = String(decoding: probe, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(abs(try #require(Double(duration)) - 604_800) < 0.01)
    staging.remove()
    // The fragments and sprites of removed segments are gone.
    package.pass(ms: 301_000)
    let last = try package.staging()
    #expect(views.flushPending(last, all: true).isEmpty)
    last.remove()
    #expect(try package.files() == package.wanted())
    #expect(try names(in: session.path + "/thumbnails").count == 7 * 24 * 6 + 1)
  }
}
