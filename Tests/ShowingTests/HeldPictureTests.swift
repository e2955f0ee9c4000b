import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import Films
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions
@testable import Showing

/// A recorder that captures on change sends no picture while nothing changes: the last one stays between two batches.
@Suite struct HeldPictureTests {
  private let package: GrowingPackage
  private let session: SessionDirectory

  init() throws {
    package = try GrowingPackage()
    session = SessionDirectory(output: package.output, session: try package.session)
  }

  /// Writes a batch.
  ///
  /// - Parameter seconds: of its captures, since the session's start.
  private func batch(_ seconds: [Int], capture: String = "onChange", isFinal: Bool = false) throws -> String {
    let path = try package.scratch.directory("walk@\(UUID().uuidString)")
    var frames: [String] = []
    for (index, second) in seconds.enumerated() {
      try FileManager.default.copyItem(
        atPath: Fixture("exact-1fps").path + "/000\(index).jpg", toPath: "\(path)/\(index).jpg")
      frames.append(#"{"file":"\#(index).jpg","timeMs":\#(GrowingPackage.startMs + Int64(second) * 1_000)}"#)
    }
    let json = """
      {"version":1,"session":"walk","intervalMs":1000,"capture":"\(capture)","final":\(isFinal),\
      "frames":[\(frames.joined(separator: ","))]}
      """
    try Data(json.utf8).write(to: URL(fileURLWithPath: path + "/batch.json"))
    return path
  }

  /// Publishes batches; after each, the playlist lists all segments.
  private func publish(_ batches: [String]) throws {
    let (views, staging) = (package.views(), try package.staging())
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: views)
    for batch in batches {
      _ = try encoder.publish(batch)
      #expect(views.flushPending(staging, all: true).isEmpty)
    }
    staging.remove()
  }

  private func segments() throws -> [PublishedSegment] { try session.publishedStarts().map(session.segment) }

  private func index() throws -> SessionIndex {
    try #require(SessionIndex(session: session.session, segments: segments()))
  }

  private static func durationMs(_ playlist: String) -> Int {
    playlist.split(separator: "\n").filter { $0.hasPrefix("#EXTINF:") }
      .reduce(0) { $0 + (Int($1.dropFirst(8).dropLast().filter { $0 != "." }) ?? 0) }
  }

  @Test func pictureStaysUntilTheNextBatch() throws {
    try publish([batch([0, 2, 3]), batch([122, 123])])
    #expect(try index().gaps.isEmpty && index().durationMs == 124_000)
    for (name, bytes) in IndexText(try index()).files {
      #expect(try DurableFile.contents(of: session.path + "/" + name, limit: .max) == bytes)
    }
    #expect(try Verification.report(on: session.path).problems == [])
    let playlist = try String(contentsOfFile: session.path + "/hls/session.m3u8", encoding: .utf8)
    #expect(!playlist.contains("#EXT-X-GAP") && !playlist.contains("#EXT-X-DISCONTINUITY"))
    #expect(Self.durationMs(playlist) == 124_000)
    #expect(try Conformance.faults(ofPlaylistsIn: session.path + "/hls") == [])
    #expect(try package.files() == package.wanted())
    // The picture is the same until the second batch. ffmpeg would wait for the end of a live playlist.
    let ended = session.path + "/hls/ended.m3u8"
    try Data((playlist + "#EXT-X-ENDLIST\n").utf8).write(to: URL(fileURLWithPath: ended))
    let packets = try Tool.output(
      "ffprobe",
      ["-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time", "-of", "csv=p=0", ended])
    let times = String(decoding: packets, as: UTF8.self).split(whereSeparator: { ",\n".contains($0) })
      .compactMap { Double($0) }
    let log = try Tool.run(
      "ffmpeg",
      ["-v", "info", "-i", ended, "-map", "0:v", "-vf", "showinfo", "-vsync", "passthrough", "-f", "null", "-"]
    ).errors
    let shown = Array(zip(times, log.matches(of: /checksum:([0-9A-F]+)/).map { String($0.1) }))
    #expect(shown.count == times.count)
    // A fragment begins with the pictures before it, for a tick each. Then it repeats the last one, each second before its end.
    let held = zip(shown, shown.dropFirst()).filter { $0.0 >= 4 && $0.0 < 122 && $1.0 - $0.0 > 0.5 }.map(\.0.1)
    let last = try #require(shown.last { $0.0 < 4 }).1
    #expect(held.count == 6 * 20 && Set(held) == [last], "\(shown)")
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 < 1.001 })
    let plan = try StitchPlan(segments(), gaps: .hold)
    #expect(plan.gaps == 0 && plan.chapters.isEmpty && plan.durationMs == 124_000)
    let idle = try #require(IdleRule("cut"))
    let short = try StitchPlan(segments(), gaps: .hold, idle: idle) { _, _ in false }
    #expect(short.durationMs < 30_000)
    let frame = try SessionCatalog(of: package.output).frame(
      of: session.session, at: .unixMs(GrowingPackage.startMs + 60_000))
    #expect(frame != nil)
  }

  @Test func pictureOfAStoreStaysUntilTheNextBatch() throws {
    let store = try package.store()
    for batch in [try batch([0, 2, 3]), try batch([122, 123])] {
      _ = try package.encoder(store).publish(batch)
      #expect(store.flushPending(all: true).isEmpty)
    }
    let json = String(decoding: try #require(package.objects["output/walk/session.json"]), as: UTF8.self)
    #expect(json.contains(#""gaps":[]"#))
    let playlist = String(decoding: try #require(package.objects["output/walk/hls/session.m3u8"]), as: UTF8.self)
    #expect(!playlist.contains("#EXT-X-GAP") && Self.durationMs(playlist) == 124_000)
    #expect(try package.storedFiles == package.storedWanted())
  }

  /// The playlist that is made anew, for a late batch, has the same times.
  @Test func lateBatchTakesItsPlace() throws {
    try publish([batch([0, 2, 3]), batch([122, 123]), batch([60])])
    #expect(try index().gaps.isEmpty && index().durationMs == 124_000)
    let playlist = try String(contentsOfFile: session.path + "/hls/session.m3u8", encoding: .utf8)
    #expect(!playlist.contains("#EXT-X-GAP") && Self.durationMs(playlist) == 124_000)
    #expect(try Conformance.faults(ofPlaylistsIn: session.path + "/hls") == [])
  }

  @Test func firstSegmentsAreRemovedWithTheirHold() throws {
    try publish([batch([0, 2, 3]), batch([122, 123]), batch([200])])
    try package.dateNewSegments()
    let report = RollingRetention(
      RetentionLimits(ageMs: 30_000), output: package.output, views: package.views(),
      temporary: { package.output + "/.temporary" }
    ).run(nowMs: GrowingPackage.startMs + 100_000)
    #expect(report.segments == 1 && report.failures.isEmpty)
    let playlist = try String(contentsOfFile: session.path + "/hls/session.m3u8", encoding: .utf8)
    #expect(!playlist.contains("#EXT-X-GAP") && Self.durationMs(playlist) == 79_000)
    #expect(try Conformance.faults(ofPlaylistsIn: session.path + "/hls", isWindow: true) == [])
    #expect(try Verification.report(on: session.path).problems == [])
  }

  @Test func otherDistancesStayGaps() throws {
    try publish([batch([0]), batch([20], capture: "interval"), batch([40]), batch([60], isFinal: true), batch([80])])
    let distances = try index().gaps.map { ($0.startMs - GrowingPackage.startMs) / 1_000 }
    #expect(distances == [1, 21, 61])
    let one = PublishedSegment.made(0, 1_000, batch: "a", capturesChanges: true)
    let limit = SessionEntry.maximumHoldMs
    func gap(at startMs: Int64, batch: String = "b") -> SessionIndex.Gap? {
      one.gap(before: .made(startMs, startMs + 1_000, batch: batch, capturesChanges: true))
    }
    #expect(gap(at: 1_000 + limit) == nil && gap(at: 1_001 + limit)?.lengthMs == limit + 1)
    #expect(gap(at: 2_000, batch: "a")?.lengthMs == 1_000)
  }
}
