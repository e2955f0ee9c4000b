import Foundation
import TestSupport
import Testing

/// HLS output of a finished session and of a growing one.
@Suite struct HLSTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// The lines of a playlist, parsed.
  private struct Playlist {
    let lines: [String]

    init(_ path: String, _ name: String = "session.m3u8") throws {
      lines = try String(contentsOfFile: path + "/" + name, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    /// Returns the values of a tag.
    func values(_ tag: String) -> [String] {
      lines.filter { $0.hasPrefix("#\(tag):") }.map { String($0.dropFirst(tag.count + 2)) }
    }

    var files: [String] { lines.filter { !$0.hasPrefix("#") } }
    var media: [String] { files.filter { $0 != "gap.m4s" } }
    /// The duration of each file, in milliseconds.
    var lengths: [Int64] { values("EXTINF").map { Int64($0.filter(\.isNumber)) ?? -1 } }
  }

  private func stitch(_ session: PublishedSession, to name: String = "hls") throws -> String {
    let result = try EncoderWorker.run("stitch", session.path, "--to", scratch.path(name), "--format", "hls")
    try #require(result.status == 0, "\(result.errors)")
    return scratch.path(name)
  }

  @Test(arguments: Fixture.sample + Fixture.corpus)
  func everyFrameIsAtItsCapture(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let hls = try stitch(session)
    let start = session.index.startMs
    let packets = try Probe(hls + "/session.m3u8").packets(of: 0)
    let instants = Set(packets.map(\.pts))
    for frame in session.captured { #expect(instants.contains((frame.timeMs - start) * 90)) }
    #expect(packets.filter(\.isKey).map(\.pts) == session.manifests.map { ($0.startMs - start) * 90 })
    #expect(packets.count == session.manifests.reduce(0) { $0 + $1.samples })
    let decoding = try Tool.run(
      "ffmpeg", ["-v", "error", "-i", hls + "/session.m3u8", "-enc_time_base", "1:90000", "-f", "null", "-"])
    #expect(decoding.errors == "")

    // The player's time, computed from the playlist alone, equals the session's time.
    let playlist = try Playlist(hls)
    #expect(try Conformance.faults(ofPlaylistsIn: hls) == [])
    #expect(playlist.lengths.reduce(0, +) == session.manifests[session.manifests.count - 1].endMs - start)
    #expect(playlist.media.count == session.manifests.count)
    let formatter = ISO8601DateFormatter()
    formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
    let dates = playlist.values("EXT-X-PROGRAM-DATE-TIME").compactMap { formatter.date(from: $0) }
    let gaps = session.index.gaps.filter { $0.endMs < session.index.endMs }
    #expect(
      dates.map { Int64(($0.timeIntervalSince1970 * 1_000).rounded()) }
        == (session.manifests.map(\.startMs) + gaps.map(\.startMs)).sorted())
    let gapMs = zip(playlist.files, playlist.lengths).filter { $0.0 == "gap.m4s" }.map(\.1)
    #expect(gapMs.reduce(0, +) == gaps.map { $0.endMs - $0.startMs }.reduce(0, +))
    // Each change of size has a new initialization segment and a discontinuity.
    let changes = zip(session.manifests, session.manifests.dropFirst()).filter {
      ($0.codedWidth, $0.codedHeight) != ($1.codedWidth, $1.codedHeight)
    }
    #expect(playlist.values("EXT-X-MAP").count == 1 + changes.count)
    #expect(playlist.lines.filter { $0 == "#EXT-X-DISCONTINUITY" }.count == changes.count)
    #expect(playlist.lines.last == "#EXT-X-ENDLIST")
  }

  /// HLS fragments are no larger than the segments' files.
  @Test(arguments: Fixture.sample + Fixture.corpus)
  func fragmentsAreNoLargerThanSegments(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let hls = try stitch(session)
    let bytes = try names(in: hls).filter { !$0.hasSuffix(".m3u8") }.reduce(0) {
      $0 + (try Data(contentsOf: URL(fileURLWithPath: hls + "/" + $1))).count
    }
    // The directory has one initialization segment for each size.
    #expect(bytes < session.index.bytes + 800 * 2)
    #expect(Double(bytes) <= 1.03 * Double(session.index.bytes + 800))
  }

  @Test func fragmentsAreCMAF() throws {
    let session = try EncoderWorker.encode(Fixture("jittered"), into: scratch)
    let hls = try stitch(session)
    for (file, manifest) in zip(try Playlist(hls).media, session.manifests) {
      let boxes = try MP4Boxes.read(hls + "/" + file)
      let events = boxes.filter { $0.type == "emsg" }
      #expect(boxes.map(\.type) == ["styp"] + events.map(\.type) + ["moof", "mdat"])
      let track = try #require(boxes.first { $0.type == "moof" }?["traf"])
      #expect(track.children.map(\.type) == ["tfhd", "tfdt", "trun"])
      let start = UInt64(manifest.startMs - session.index.startMs) * 90
      #expect(track["tfdt"]?.body.integer(at: 4, bytes: 8) == start)
      #expect(track["trun"]?.body.integer(at: 4, bytes: 4) == UInt64(manifest.samples))
      // Each frame has an event at its instant.
      #expect(events.count == manifest.frames.count)
      for (event, (frame, offset)) in zip(events, zip(manifest.frames, manifest.offsetsMs)) {
        #expect(event.body.integer(at: 8, bytes: 8) == start + UInt64(offset) * 90)
        #expect(event.body.integer(at: 16, bytes: 4) == UInt64(frame.holdMs) * 90)
        let strings = event.body.dropFirst(24).split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
        #expect(strings.first.map { String(decoding: $0, as: UTF8.self) } == "urn:segment-encoder:capture:1")
        #expect(try JSONDecoder().decode(TimingEntry.self, from: Data(strings[2])) == TimingEntry(frame))
      }
    }
    let initialization = try #require(try names(in: hls).first { $0.hasPrefix("init-") })
    let boxes = try MP4Boxes.read(hls + "/" + initialization)
    #expect(boxes.map(\.type) == ["ftyp", "moov"])
    #expect(boxes[1].children.map(\.type) == ["mvhd", "trak", "mvex"])
  }

  @Test func otherFilesInTheDirectoryStay() throws {
    let session = try EncoderWorker.encode(Fixture("rotation"), into: scratch)
    #expect(try FileManager.default.fileExists(atPath: stitch(session, to: "deep/er/hls") + "/session.m3u8"))
    let hls = try scratch.directory("hls")
    for name in ["init-stream0.mp4", "segment-1.m4s", "notes.txt"] { try scratch.file("hls/" + name, [1, 2, 3]) }
    _ = try stitch(session)
    let before = try snapshot(of: hls).mapValues(\.bytes)
    #expect(before.filter { $0.value == Data([1, 2, 3]) }.count == 3)
    // `stitch` rewrites a file that was damaged since.
    let fragment = try #require(try Playlist(hls).media.first)
    try scratch.file("hls/" + fragment, [])
    _ = try stitch(session)
    #expect(try snapshot(of: hls).mapValues(\.bytes) == before)
    // `stitch` does not replace another session's playlist.
    let other = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let result = try EncoderWorker.run("stitch", other.path, "--to", hls, "--format", "hls")
    #expect(result.status == 65)
    #expect(result.errors.contains("another session's playlist is there; name another directory"))
    #expect(try snapshot(of: hls).mapValues(\.bytes) == before)
    #expect(try EncoderWorker.run("stitch", session.path, "--to", hls, "--format", "hls", "--gaps", "cut").status == 64)
  }

  @Test func aDamagedSegmentIsNotStitched() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let file = session.video(session.manifests[1])
    var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    bytes[bytes.count - 10] ^= 1
    try bytes.write(to: URL(fileURLWithPath: file))
    let result = try EncoderWorker.run("stitch", session.path, "--to", scratch.path("hls"), "--format", "hls")
    #expect(result.status == 65)
    #expect(result.errors.contains("\(session.manifests[1].file): not the file its manifest describes"))
    #expect(!FileManager.default.fileExists(atPath: scratch.path("hls/session.m3u8")))
  }

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
      #expect(playlist.values("EXT-X-TARGETDURATION") == ["10"])
    }
    let playlist = try Playlist(hls)
    #expect(playlist.lengths == [2_000, 300, 2_000, 1_800, 10_000, 10_000, 2_000])
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
    #expect(try Playlist(stitch(PublishedSession(session))).lengths == [2_300, 1_800, 2_000, 10_000, 10_000, 2_000])
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
    #expect(playlist.values("EXT-X-TARGETDURATION") == ["10"])
    #expect(playlist.lengths == [2_000, 10_000, 10_000])
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
