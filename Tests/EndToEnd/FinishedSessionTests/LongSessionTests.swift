import Foundation
import TestSupport
import Testing

/// Stock ffmpeg stitches an hour of 60 jittered batches; the short run has 12 minutes in 12 batches.
@Suite struct LongSessionTests {
  @Test func hourLongSessionStitchesWithoutError() throws {
    let count = Extent.of(12, full: 60)
    let scratch = try ScratchDirectory()
    let folder = try scratch.directory("batches")
    var random = Random(seed: 7)
    let start: Int64 = 1_767_859_512_340
    for batch in 0..<count {
      let name = String(format: "hour@%03d", batch)
      let path = folder + "/" + name
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      for frame in 0..<60 {
        // The batch's first capture is up to 400 ms off, the others up to 30 ms.
        let jitter = batch + frame == 0 ? 0 : random.int(frame == 0 ? -400...400 : -30...30)
        let instant = start + Int64(batch * 60 + frame) * 1_000 + jitter
        let source = Fixture("exact-1fps").path + String(format: "/%04d.jpg", frame % 12)
        #expect(link(source, path + "/\(instant).jpg") == 0 || symlinkFails(source, path + "/\(instant).jpg"))
      }
    }
    let batches = try names(in: folder).map { folder + "/" + $0 }
    let result = try Tool.run(EncoderWorker.path, ["encode"] + batches + ["--output", scratch.path("output")])
    #expect(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("output/hour"))
    #expect(session.manifests.count >= 12 * count)
    #expect(session.captured.count == 60 * count)
    #expect(session.index.gaps.isEmpty)

    let film = scratch.path("film.mp4")
    try stitch(session.path, to: film)
    let probe = try Probe(film)
    let pts = Set(probe.packets(of: 0).map(\.pts))
    let wrong = session.captured.filter { !pts.contains(($0.timeMs - session.index.startMs) * 90) }
    #expect(wrong.isEmpty)
    #expect(probe.streams[0].durationTs == session.index.durationMs * 90)
    #expect(probe.packets(of: 0).allSatisfy { $0.pts == $0.dts })
  }

  /// Copies a file if the scratch directory is on another file system than the fixtures.
  private func symlinkFails(_ source: String, _ target: String) -> Bool {
    (try? FileManager.default.copyItem(atPath: source, toPath: target)) != nil
  }

  private func peakMemory(_ arguments: String...) throws -> Int {
    let run = try EncoderWorker.measure(arguments)
    guard run.status == 0 else { throw Tool.Failure(run.errors) }
    return run.peakBytes
  }

  /// A day may need 64 MiB more than an hour. The short run compares 1 200 segments with 50 and allows 6 MiB, about the
  /// same for each segment.
  @Test func aDayNeedsLittleMoreMemoryThanAnHour() throws {
    let (hour, day) = (try ScratchDirectory(), try ScratchDirectory())
    let film = day.path("film.mp4")
    let (few, many) = (Extent.of(50, full: 720), Extent.of(1_200, full: 17_280))
    let (sessionOfAnHour, sessionOfADay) = (
      try LongSession.make(of: few, in: hour), try LongSession.make(of: many, in: day)
    )
    for (format, target) in [("mp4", "film.mp4"), ("hls", "hls")] {
      let ofAnHour = try peakMemory("stitch", sessionOfAnHour, "--to", hour.path(target), "--format", format)
      let ofADay = try peakMemory("stitch", sessionOfADay, "--to", day.path(target), "--format", format)
      if format == "hls" {
        let playlist = try String(contentsOfFile: day.path(target) + "/session.m3u8", encoding: .utf8)
        #expect(playlist.components(separatedBy: "#EXTINF:5.000,").count - 1 == many)
      }
      #expect(ofADay - ofAnHour <= Extent.of(6, full: 64) << 20, "\(format): \(ofAnHour) and \(ofADay) bytes")
    }
    let head = try Tool.output(
      "ffprobe", ["-v", "error", "-show_entries", "stream=duration_ts,nb_frames", "-of", "csv=p=0", film])
    let (samples, ticks) = (many * 5, many * 450_000)
    // A film has a sample each eighth of a second.
    #expect(String(decoding: head, as: UTF8.self) == "\(ticks),\(8 * samples)\n\(ticks),\(samples)\n")
    let pts = try Tool.output(
      "ffprobe", ["-v", "error", "-select_streams", "v", "-show_entries", "packet=pts", "-of", "csv=p=0", film])
    let found = String(decoding: pts, as: UTF8.self).split(separator: "\n").map { Int($0.filter(\.isNumber)) }
    #expect(found == (0..<8 * samples).map { $0 * 11_250 })
  }

  /// For each output format, `stitch` opens each segment's file once and reads each byte once.
  @Test(arguments: ["mp4", "hls"])
  func eachByteIsReadOnce(format: String) throws {
    let scratch = try ScratchDirectory()
    let path = try LongSession.make(of: 100, in: scratch)
    let log = scratch.path("log")
    try Tool.output(
      "strace",
      [
        // strace follows one thread: overlapping calls of several threads would take two lines. The decoder process
        // opens no file.
        "-E", "ASAN_OPTIONS=detect_leaks=0", "-y", "-e", "trace=read,pread64,mmap", "-e", "signal=none", "-o", log,
        EncoderWorker.path, "stitch", path, "--to", scratch.path("stitched"), "--format", format,
      ])
    var read: [String: Int] = [:]
    for line in try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n") {
      // strace writes letters beyond ASCII of the path in digits.
      guard let file = line.firstMatch(of: /<[^>]*\/exact-1fps\/([^>\/]*\.(?:mp4|json))>/),
        let count = line.firstMatch(of: /= (\d+)$/)
      else {
        continue
      }
      read[String(file.1), default: 0] += Int(count.1) ?? 0
    }
    #expect(read.count == 200)
    for (file, bytes) in read {
      #expect(try Data(contentsOf: URL(fileURLWithPath: path + "/" + file)).count == bytes, "\(file)")
    }
  }
}
