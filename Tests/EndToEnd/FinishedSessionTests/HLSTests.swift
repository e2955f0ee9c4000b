import Foundation
import TestSupport
import Testing

/// HLS output of a finished session.
@Suite struct HLSTests: PlaylistSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test(arguments: Fixture.sample + Fixture.corpus)
  func everyFrameIsAtItsCapture(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let hls = try stitch(session)
    let start = session.index.startMs
    let packets = try Probe(hls + "/session.m3u8").packets(of: 0)
    let instants = Set(packets.map(\.pts))
    for frame in session.captured { #expect(instants.contains((frame.timeMs - start) * 90)) }
    #expect(packets.filter(\.isKey).map(\.pts) == session.manifests.map { ($0.startMs - start) * 90 })
    #expect(packets.count >= session.manifests.reduce(0) { $0 + $1.samples })
    // WebKitGTK waits for ever in a longer sample.
    #expect(packets.allSatisfy { $0.duration <= 90_000 })
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

  /// A picture that stays for long is repeated each second, and the sizes in the playlists hold for the fragments with repeats.
  @Test func noSampleOfALongSegmentIsLongerThanASecond() throws {
    let session = try EncoderWorker.encode(Fixture("on-change"), into: scratch, "--segment", "60")
    #expect(session.manifests.flatMap(\.frames).contains { $0.holdMs > 10_000 })
    let hls = try stitch(session)
    #expect(try Conformance.faults(ofPlaylistsIn: hls) == [])
    let packets = try Probe(hls + "/session.m3u8").packets(of: 0)
    let bounds = packets.map(\.pts) + [session.index.durationMs * 90]
    #expect(zip(bounds, bounds.dropFirst()).allSatisfy { $1 - $0 <= 90_000 })
    for frame in session.captured { #expect(bounds.contains((frame.timeMs - session.index.startMs) * 90)) }
    #expect(packets.count(where: \.isKey) == session.manifests.count)
    let decoding = try Tool.run("ffmpeg", ["-v", "error", "-i", hls + "/session.m3u8", "-f", "null", "-"])
    #expect(decoding.errors == "")
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
      // A capture that lasts for more than a second has a repeat.
      let long = manifest.frames.count { $0.holdMs > 1_000 }
      #expect(track["trun"]?.body.integer(at: 4, bytes: 4) == UInt64(manifest.samples + long))
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
}
