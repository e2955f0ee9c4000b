import Foundation
import TestSupport
import Testing

/// The playlist that `run --hls` keeps of a growing session.
@Suite struct LivePlaylistTests: PlaylistSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// The worker appends to the playlist with each batch and never changes a line. Each batch here has its own worker,
  /// which flushes all views before it exits. So a late batch leaves a gap of its delay, and an early one follows a
  /// shorter entry.
  @Test func playlistOfAGrowingSessionIsAppendOnly() throws {
    let spool = try TestSpool()
    let session = spool.output + "/walk"
    let hls = session + "/hls"
    var seen = ""
    // The second batch begins 300 ms late, the third 200 ms early; the fourth comes after a gap.
    for (number, startMs) in [0, 2_300, 4_100, 26_100].enumerated() {
      try spool.addSmall("walk@\(number)", startMs: 1_767_859_512_340 + Int64(startMs))
      try #require(try spool.drain("--hls").status == 0)
      let text = try String(contentsOfFile: hls + "/session.m3u8", encoding: .utf8)
      #expect(text.hasPrefix(seen))
      seen = text
      let playlist = try Playlist(hls)
      #expect(playlist.media.count == number + 1)
      #expect(!playlist.lines.contains("#EXT-X-ENDLIST"))
      #expect(playlist.values("EXT-X-PLAYLIST-TYPE") == ["EVENT"])
      #expect(playlist.values("EXT-X-TARGETDURATION") == ["6"])
    }
    let playlist = try Playlist(hls)
    #expect(playlist.lengths == [2_000, 300, 2_000, 1_800, 6_000, 6_000, 6_000, 2_000, 2_000])
    #expect(try EncoderWorker.run("verify", session).status == 0)
    // Each fragment has its own decode time and a sequence number derived from it.
    let starts = try playlist.media.map { file in
      let movie = try #require(try MP4Boxes.read(hls + "/" + file).first { $0.type == "moof" })
      let number = try #require(movie["mfhd"]?.body.integer(at: 4, bytes: 4))
      let start = try #require(movie["traf"]?["tfdt"]?.body.integer(at: 4, bytes: 8))
      #expect(number == start / 90 + 1)
      return start
    }
    #expect(starts.map { $0 / 90 } == [0, 2_300, 4_100, 26_100])
    // `stitch` closes the gaps between late batches.
    let stitched = try Playlist(stitch(PublishedSession(session)))
    #expect(stitched.lengths == [2_300, 1_800, 2_000, 6_000, 6_000, 6_000, 2_000, 2_000])
    // A complete session has an end tag. A worker without `--hls` extends a playlist that exists.
    try spool.add("exact-1fps")
    #expect(try spool.drain("--hls").status == 0)
    #expect(try Playlist(spool.output + "/exact-1fps/hls").lines.last == "#EXT-X-ENDLIST")
    try spool.addSmall("walk@5", startMs: 1_767_859_542_340)
    #expect(try spool.drain().status == 0)
    #expect(try Playlist(hls).media.count == 5)
  }

  /// Captures every 1 050 ms in batches of five, as a recorder sends them: each batch ends 50 ms before the next
  /// begins. The playlist's durations, its dates and a stock reader agree. No line that a player has read changes.
  @Test func liveSessionWithLateSeamsKeepsItsTime() throws {
    let spool = try TestSpool()
    let start: Int64 = 1_767_859_512_340
    let batches = Extent.of(40, full: 686)
    let worker = try spool.start("--hls", "--sandbox", "off", "--jobs", "1")
    let hls = spool.output + "/walk/hls"
    var seen = ""
    for number in 0..<batches {
      let draft = try spool.scratch.directory("spool/tmp/batch")
      for frame in 0..<5 {
        let captureMs = start + Int64(5 * number + frame) * 1_050
        try FileManager.default.copyItem(
          atPath: Fixture("exact-1fps").path + "/000\(frame).jpg", toPath: draft + "/\(captureMs).jpg")
      }
      try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/walk@\(number)")
      guard let text = try? String(contentsOfFile: hls + "/session.m3u8", encoding: .utf8) else { continue }
      #expect(text.hasPrefix(seen))
      seen = text
    }
    // The last segment's duration is unknown until the next one arrives.
    try spool.waitUntil("all segments but the last are listed") { (try? Playlist(hls).media.count) == batches - 1 }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    let playlist = try Playlist(hls)
    #expect(playlist.lines.joined(separator: "\n").hasPrefix(seen.dropLast()))
    #expect(playlist.lengths == Array(repeating: 5_250, count: batches - 1) + [5_200])
    #expect(try Conformance.faults(ofPlaylistsIn: hls) == [])
    let endMs = Int64(batches) * 5_250 - 50
    #expect(try PublishedSession(spool.output + "/walk").index.durationMs == endMs)
    // ffprobe would wait for more segments of a live playlist.
    try (playlist.lines + ["#EXT-X-ENDLIST"]).joined(separator: "\n")
      .write(toFile: hls + "/ended.m3u8", atomically: false, encoding: .utf8)
    let duration = try Probe(hls + "/ended.m3u8").format.duration.flatMap { Double($0) } ?? 0
    #expect(abs(duration * 1_000 - Double(endMs)) < 1)
  }

  /// A worker that is killed while it holds a segment back leaves a dirty-session marker; the next one lists the
  /// segment.
  @Test func segmentHeldBackByAKilledWorkerIsListedByTheNext() throws {
    let spool = try TestSpool()
    let worker = try spool.start("--hls", "--sandbox", "off")
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    try spool.addSmall("walk@2", startMs: 1_767_859_514_440)
    let hls = spool.output + "/walk/hls"
    try spool.waitUntil("the playlist lists the first segment") { (try? Playlist(hls).media.count) == 1 }
    worker.signal(SIGKILL)
    _ = try worker.wait()
    #expect(try Playlist(hls).lengths == [2_100])
    #expect(try spool.drain().status == 0)
    #expect(try Playlist(hls).lengths == [2_100, 2_000])
    #expect(!FileManager.default.fileExists(atPath: spool.output + "/.behind"))
  }

  /// The target duration comes from the first segment. The excess of a longer hold is a gap.
  @Test func targetDurationStaysWhenALongHoldComes() throws {
    let spool = try TestSpool()
    let start: Int64 = 1_767_859_512_340
    try spool.addSmall("walk@1", startMs: start)
    #expect(try spool.drain("--hls").status == 0)
    let draft = try spool.scratch.directory("spool/tmp/long")
    try FileManager.default.copyItem(atPath: Fixture("exact-1fps").path + "/0002.jpg", toPath: draft + "/a.jpg")
    let json = """
      {"version": 1, "session": "walk", "capture": "onChange", "intervalMs": 30000, "endMs": \(start + 22_000), "final": true,
       "frames": [{"file": "a.jpg", "timeMs": \(start + 2_000)}]}
      """
    try Data(json.utf8).write(to: URL(fileURLWithPath: draft + "/batch.json"))
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/long")
    #expect(try spool.drain("--hls").status == 0)
    let hls = spool.output + "/walk/hls"
    let playlist = try Playlist(hls)
    #expect(playlist.values("EXT-X-TARGETDURATION") == ["6"])
    #expect(playlist.lengths == [2_000, 6_499, 6_000, 6_000, 1_501])
    #expect(playlist.files.last == "gap.m4s" && playlist.lines.last == "#EXT-X-ENDLIST")
    #expect(try Conformance.faults(ofPlaylistsIn: hls) == [])
  }

  /// The playlist leaves out a damaged segment and lists the later ones.
  @Test func aDamagedSegmentIsAGapOfALivePlaylist() throws {
    let spool = try TestSpool()
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    #expect(try spool.drain().status == 0)
    try Data([1]).write(to: URL(fileURLWithPath: spool.output + "/walk/segment-1767859512340.mp4"))
    try spool.addSmall("walk@2", startMs: 1_767_859_514_340)
    #expect(try spool.drain("--hls", verifying: false).status == 0)
    #expect(try spool.isAtRest)
    let playlist = try Playlist(spool.output + "/walk/hls")
    #expect(playlist.files[0] == "gap.m4s")
    #expect(playlist.media.count == 1)
  }

  @Test func linkInPlaceOfThePlaylistDirectoryIsNotFollowed() throws {
    let spool = try TestSpool()
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    #expect(try spool.drain().status == 0)
    let elsewhere = try spool.scratch.directory("elsewhere")
    try FileManager.default.createSymbolicLink(
      atPath: spool.output + "/walk/hls", withDestinationPath: elsewhere)
    try spool.addSmall("walk@2", startMs: 1_767_859_514_340)
    _ = try spool.drain("--hls")
    #expect(try names(in: elsewhere).isEmpty)
  }

  /// A batch from before the session's start shifts all later segments.
  @Test func earlierBatchMovesTheStart() throws {
    let spool = try TestSpool()
    try spool.addSmall("walk@2", startMs: 1_767_859_522_340)
    #expect(try spool.drain("--hls").status == 0)
    try spool.addSmall("walk@1", startMs: 1_767_859_520_340)
    #expect(try spool.drain("--hls").status == 0)
    // The test reads the fragments as one file: ffprobe would wait for more segments of a live playlist.
    let hls = spool.output + "/walk/hls/"
    let playlist = try Playlist(hls)
    let maps = playlist.values("EXT-X-MAP").map { String($0.dropFirst(5).dropLast()) }
    let bytes = try (maps + playlist.media).map { [UInt8](try Data(contentsOf: URL(fileURLWithPath: hls + $0))) }
    let packets = try Probe(try spool.scratch.file("all.mp4", Array(bytes.joined()))).packets(of: 0)
    #expect(packets.filter(\.isKey).map(\.pts) == [0, 2_000 * 90])
  }
}
