import Foundation
import TestSupport
import Testing

/// A session as HLS, of one that is over and of one that grows.
@Suite struct HLSTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A playlist's lines by what they are.
  private struct Playlist {
    let lines: [String]

    init(_ path: String) throws {
      lines = try String(contentsOfFile: path + "/session.m3u8", encoding: .utf8).split(separator: "\n").map(
        String.init)
    }

    /// What follows a tag, each time.
    func values(_ tag: String) -> [String] {
      lines.filter { $0.hasPrefix("#\(tag):") }.map { String($0.dropFirst(tag.count + 2)) }
    }

    var files: [String] { lines.filter { !$0.hasPrefix("#") } }
    var media: [String] { files.filter { $0 != "gap.m4s" } }
    /// In milliseconds, of each file.
    var lengths: [Int64] { values("EXTINF").map { Int64($0.filter(\.isNumber)) ?? -1 } }
  }

  private func stitch(_ session: PublishedSession, to name: String = "hls") throws -> String {
    let result = try EncoderWorker.run("stitch", session.path, "--to", scratch.path(name), "--format", "hls")
    try #require(result.status == 0, "\(result.errors)")
    return scratch.path(name)
  }

  @Test(arguments: Fixture.all + Fixture.corpus)
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
      "ffmpeg", ["-v", "error", "-i", hls + "/session.m3u8", "-enc_time_base", "-1", "-f", "null", "-"])
    #expect(decoding.errors == "")

    // Players' time, by the playlist alone, is session time.
    let playlist = try Playlist(hls)
    #expect(playlist.lengths.reduce(0, +) == session.manifests[session.manifests.count - 1].endMs - start)
    #expect(playlist.media.count == session.manifests.count)
    let formatter = ISO8601DateFormatter()
    formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
    let dates = playlist.values("EXT-X-PROGRAM-DATE-TIME").compactMap { formatter.date(from: $0) }
    let gaps = session.index.gaps.filter { $0.endMs < session.index.endMs }
    #expect(
      dates.map { Int64(($0.timeIntervalSince1970 * 1_000).rounded()) }
        == (session.manifests.map(\.startMs) + gaps.map(\.startMs)).sorted())
    #expect(
      zip(playlist.files, playlist.lengths).filter { $0.0 == "gap.m4s" }.map(\.1) == gaps.map { $0.endMs - $0.startMs })
    // A new size is a new initialization, and a discontinuity.
    let changes = zip(session.manifests, session.manifests.dropFirst()).filter {
      ($0.codedWidth, $0.codedHeight) != ($1.codedWidth, $1.codedHeight)
    }
    #expect(playlist.values("EXT-X-MAP").count == 1 + changes.count)
    #expect(playlist.lines.filter { $0 == "#EXT-X-DISCONTINUITY" }.count == changes.count)
    #expect(playlist.lines.last == "#EXT-X-ENDLIST")
  }

  /// Fragments cost no more than the segments themselves.
  @Test(arguments: Fixture.all + Fixture.corpus)
  func fragmentsAreNoLargerThanSegments(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let hls = try stitch(session)
    let bytes = try names(in: hls).filter { $0 != "session.m3u8" }.reduce(0) {
      $0 + (try Data(contentsOf: URL(fileURLWithPath: hls + "/" + $1))).count
    }
    // One initialization a size stands beside them.
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
      // Each frame is told as an event at its instant.
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

  @Test func againNothingIsWritten() throws {
    let session = try EncoderWorker.encode(Fixture("rotation"), into: scratch)
    let hls = try stitch(session)
    let before = try snapshot(of: hls)
    _ = try stitch(session)
    let after = try snapshot(of: hls)
    #expect(after.filter { $0.key != "session.m3u8" } == before.filter { $0.key != "session.m3u8" })
    #expect(after["session.m3u8"]?.bytes == before["session.m3u8"]?.bytes)
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

  /// The playlist grows with each batch; at the end it lists what `stitch` does.
  @Test func aSessionIsPlayedWhileItGrows() throws {
    let spool = try TestSpool()
    let session = spool.output + "/walk"
    let hls = session + "/hls"
    var seen: [String] = []
    // The second batch begins 300 ms late, the third 200 ms early; the fourth comes after a gap.
    for (number, startMs) in [0, 2_300, 4_100, 26_100].enumerated() {
      try spool.addSmall("walk@\(number)", startMs: 1_767_859_512_340 + Int64(startMs))
      try #require(try spool.drain("--hls").status == 0)
      let playlist = try Playlist(hls)
      #expect(playlist.media.count == number + 1)
      // All but the last one, whose end was not known, stay what they were.
      #expect(playlist.media.starts(with: seen.dropLast()))
      #expect(!playlist.lines.contains("#EXT-X-ENDLIST"))
      #expect(playlist.values("EXT-X-PLAYLIST-TYPE") == ["EVENT"])
      #expect(playlist.values("EXT-X-TARGETDURATION") == ["10"])
      // Players may still ask for what the last playlist had.
      #expect(Set(try names(in: hls)).isSuperset(of: seen))
      seen = playlist.media
    }
    #expect(try Playlist(hls).lengths == [2_300, 1_800, 2_000, 10_000, 10_000, 2_000])
    let stitched = try stitch(PublishedSession(session))
    #expect(try Playlist(stitched).media == seen)
    for file in seen {
      #expect(FileManager.default.contentsEqual(atPath: hls + "/" + file, andPath: stitched + "/" + file))
    }
    #expect(try EncoderWorker.run("verify", session).status == 0)
    // A session that is complete is told to be, and kept up by a worker that was not asked for it.
    try spool.add("exact-1fps")
    #expect(try spool.drain("--hls").status == 0)
    #expect(try Playlist(spool.output + "/exact-1fps/hls").lines.last == "#EXT-X-ENDLIST")
    try spool.addSmall("walk@5", startMs: 1_767_859_542_340)
    #expect(try spool.drain().status == 0)
    #expect(try Playlist(hls).media.count == 5)
    // What no playlist has listed lately goes.
    #expect(Set(try names(in: hls).filter { $0.hasSuffix(".m4s") }).isSubset(of: Set(try Playlist(hls).files + seen)))
  }

  /// A batch from before the session's beginning moves all that follows.
  @Test func anEarlierBatchMovesTheBeginning() throws {
    let spool = try TestSpool()
    try spool.addSmall("walk@2", startMs: 1_767_859_522_340)
    #expect(try spool.drain("--hls").status == 0)
    try spool.addSmall("walk@1", startMs: 1_767_859_520_340)
    #expect(try spool.drain("--hls").status == 0)
    // Its fragments in one file: of a live playlist ffprobe would wait for more.
    let hls = spool.output + "/walk/hls/"
    let playlist = try Playlist(hls)
    let maps = playlist.values("EXT-X-MAP").map { String($0.dropFirst(5).dropLast()) }
    let bytes = try (maps + playlist.media).map { [UInt8](try Data(contentsOf: URL(fileURLWithPath: hls + $0))) }
    let packets = try Probe(try spool.scratch.file("all.mp4", Array(bytes.joined()))).packets(of: 0)
    #expect(packets.filter(\.isKey).map(\.pts) == [0, 2_000 * 90])
  }
}
